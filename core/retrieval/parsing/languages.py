"""Converts Markdown, reStructuredText and Word to HTML, the one form that sections.py reads, with the libraries that know each
structure best.

Sources: markdown.py, https://docutils.sourceforge.io, https://github.com/mwilliamson/python-mammoth.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.retrieval.parsing.mdx import as_markdown

MAX_UNPACKED, MAX_RATIO = 16 * 1024**2, 200  # of a Word document: what it may unpack to in any case, and by its size
OLE_MARK = b"\xd0\xcf\x11\xe0"  # of encrypted documents and of those before 2007
STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Code'] => pre:separator('\\n')
p[style-name='Source Code'] => pre:separator('\\n')
p[style-name='HTML Preformatted'] => pre:separator('\\n')
p[style-name='Plain Text'] => pre:separator('\\n')
"""
WORD_NOTES = "li[id^=footnote-], li[id^=endnote-]"  # as mammoth writes them, at the end
# directives of Sphinx and docutils that hold code, and those whose content is made elsewhere or is none for a reader
CODE_DIRECTIVES = ("code", "code-block", "sourcecode", "parsed-literal", "prompt", "doctest", "testcode", "testoutput")
SILENT = re.compile(
    r"auto\w+|toctree|index|include|literalinclude|raw|highlight|currentmodule|default-domain|only|image|meta|graphviz|plantuml|mermaid"
    r"|tags|sectionauthor|codeauthor|contents"
)

VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
}


class DocumentRefusedError(Exception):
    """The reason why a document isn't read."""


def html(request: dict[str, Any]) -> str:
    """The document of a request as HTML.  Raises DocumentRefusedError, and whatever the libraries raise for a damaged file."""
    kind = request["kind"]
    if kind == "docx":
        return _docx(Path(request["path"]))
    text: str = request["text"]
    if kind == "mdx":
        text, kind = as_markdown(text), "md"
    return _markdown(text) if kind == "md" else _rst(text) if kind == "rst" else text


def _markdown(text: str) -> str:
    from core.retrieval.parsing.markdown import to_html

    return to_html(text)


def _docx(path: Path) -> str:
    """Word's headings, tables, lists and paragraphs.  Macros and anything outside the file aren't read."""
    import mammoth

    with path.open("rb") as file:
        if file.read(len(OLE_MARK)) == OLE_MARK:
            raise DocumentRefusedError(
                "the document is encrypted, or older than Word 2007; save it as .docx without a password"
            )
        try:
            with zipfile.ZipFile(file) as packed:
                unpacked = sum(part.file_size for part in packed.infolist())
        except zipfile.BadZipFile as e:
            raise DocumentRefusedError(f"not a Word document ({e}); save it as .docx again") from e
        if unpacked > max(MAX_UNPACKED, MAX_RATIO * path.stat().st_size):
            raise DocumentRefusedError("the document unpacks to more than 200 times its size, which looks like an attack")
        file.seek(0)
        nothing = mammoth.images.img_element(lambda image: {})
        result: str = mammoth.convert_to_html(file, style_map=STYLES, convert_image=nothing).value
        return result


def _rst(text: str) -> str:
    from docutils.core import publish_parts

    settings = {
        "file_insertion_enabled": False,
        "raw_enabled": False,
        "report_level": 5,
        "halt_level": 6,
        "warning_stream": False,
        "syntax_highlight": "none",
        "smart_quotes": False,
        "math_output": "latex",
        "line_length_limit": 2**31,
        "_disable_config": True,
        "embed_stylesheet": False,
        "stylesheet_path": "",
        "toc_backlinks": False,
        "section_self_link": False,
        "initial_header_level": 1,
        "doctitle_xform": False,
    }
    with _tolerant():
        parts: dict[str, str] = publish_parts(text, writer="html5", settings_overrides=settings)
    return parts["html_body"]


class _AnyOption(dict[str, Callable[[Any], Any]]):
    """The options of an unknown directive."""

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> Callable[[Any], Any]:
        return lambda value: value


@contextmanager
def _tolerant() -> Iterator[None]:
    """Makes docutils read Sphinx's roles as their text and its directives as their content: `.. option:: --port` becomes a
    paragraph, followed by the indented text."""
    from docutils import nodes
    from docutils.parsers.rst import Directive, directives, roles

    class Code(Directive):  # type: ignore[misc]
        optional_arguments, final_argument_whitespace, has_content, option_spec = 1, True, True, _AnyOption()

        def run(self) -> list[nodes.Node]:
            code = "\n".join(self.content)
            return [nodes.literal_block(code, code)] if code.strip() else []

    class Silent(Code):
        def run(self) -> list[nodes.Node]:
            return []

    class Other(Code):
        def run(self) -> list[nodes.Node]:
            content: list[nodes.Node] = []
            if self.arguments and (words := " ".join([VERSIONS.get(self.name, ""), *self.arguments[0].split()]).strip()):
                content.append(nodes.paragraph(words, words))
            inside = nodes.container()
            self.state.nested_parse(self.content, self.content_offset, inside)
            return [*content, inside]

    def role(name: str, rawtext: str, text: str, *args: Any, **options: Any) -> tuple[list[nodes.Node], list[nodes.Node]]:
        plain = re.sub(r"<[^<>]*>\Z", "", text).rstrip().lstrip("~!") or text
        return [nodes.inline(rawtext, plain)], []

    known_directive, known_role = directives.directive, roles.role

    def directive(name: str, language: Any, document: Any) -> Any:
        if name in CODE_DIRECTIVES:
            return Code, []
        if SILENT.fullmatch(name):
            return Silent, []
        handler, messages = known_directive(name, language, document)
        return (handler, messages) if handler else (Other, [])

    def any_role(name: str, *args: Any) -> Any:
        handler, messages = known_role(name, *args)
        return (handler, messages) if handler else (role, [])

    directives.directive, roles.role = directive, any_role
    try:
        yield
    finally:
        directives.directive, roles.role = known_directive, known_role
