"""Documents with headings: titles, ids, tables and listings, the same of every format; and what is wrong with each."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import FormatError, InputError
from core.retrieval.readers import read_passages
from core.retrieval.readers.lines import Limits, Source
from core.retrieval.readers.structure import MAX_LISTING_WORDS, passages, section_title, slug
from core.types import Passage

Write = Callable[[str, str | bytes], Path]

MARKDOWN = """---
title: Deploy
date: 2024-01-01
---
Where to begin.

## Docker

Set *this*:

```yaml
# the port
port: 8080
```

### Ports

| Option | Default |
|---|---|
| `--port` | 8080 |
| `--host` | |
"""
RST = """
Deploy
======

Where to :ref:`begin <first>`.

.. toctree::

   other

Docker
------

Set *this*:

.. code-block:: yaml
   :caption: settings

   # the port
   port: 8080

Ports
~~~~~

=======  ========
Option   Default
=======  ========
--port   8080
--host
=======  ========
"""
HTML = """<!doctype html><html><head><title>Deploy - Site</title><style>p {color: red}</style></head><body>
<header><h1>The site</h1></header><nav><a>menu</a></nav>
<main><h1>Deploy</h1><p>Where to <b>beg</b>in.<h2>Docker<a class="headerlink">#</a></h2><p>Set this:</p>
<pre><span># the port</span>\n<span>port</span>: 8080</pre>
<h3>Ports</h3><table><thead><tr><th>Option<th>Default</thead><tr><td>--port<td>8080<tr><td>--host<td></table>
</main><aside>news</aside><footer>imprint</footer><script>var x = "code"</script></body></html>"""
SAME = [
    ("", "Deploy", "Where to begin."),
    ("#docker", "Deploy > Docker", "Set this:\n# the port\nport: 8080"),
    ("#docker/ports", "Deploy > Docker > Ports", "Option: --port; Default: 8080. Option: --host."),
]
NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def zip_of(files: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return out.getvalue()


def docx(body: str, **parts: bytes) -> bytes:
    """A Word document of paragraphs and tables; `parts`: further files."""
    names = ("Title", "heading 1", "heading 2", "Code")
    styles = (
        f'<w:style w:type="paragraph" w:styleId="{name.replace(" ", "")}"><w:name w:val="{name}"/></w:style>' for name in names
    )
    files: dict[str, str | bytes] = {
        "word/document.xml": f"<w:document {NAMESPACE}><w:body>{body}</w:body></w:document>",
        "word/styles.xml": f"<w:styles {NAMESPACE}>{''.join(styles)}</w:styles>",
    }
    return zip_of(files | parts)


def paragraph(text: str, style: str = "") -> str:
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def row(*cells: str) -> str:
    return f"<w:tr>{''.join(f'<w:tc>{paragraph(cell)}</w:tc>' for cell in cells)}</w:tr>"


WORD = "".join(
    [
        paragraph("Deploy", "Title"),
        paragraph("Where to begin."),
        paragraph("Docker", "heading1"),
        paragraph("Set this:"),
        paragraph("# the port", "Code"),
        paragraph("port: 8080", "Code"),
        paragraph("Ports", "heading2"),
        f"<w:tbl>{row('Option', 'Default')}{row('--port', '8080')}{row('--host', '')}</w:tbl>",
    ]
)


def read(path: Path, limits: Limits, name: str = "") -> list[Passage]:
    def refuse(row: object) -> None:
        raise AssertionError(row)

    return list(read_passages(Source(path, limits, refuse, name=name)))


MDX = """---
title: Use it
---
import { Tabs } from "components";
export const version = {
  major: 2,
};

# Set the host

<Tabs>
  <Tab title="Python">
    Call `Client(host="a")`.

    ```js
    import ollama from "ollama"
    <Kept />
    ```
  </Tab>
  <Card
    title="Others"
    href="/x"
  />
</Tabs>
{/* for authors */}
import of data: use <Key>Enter</Key> if a < B.
<Unfinished
"""


def test_components_of_mdx_are_read_by_their_titles_and_contents(write: Write, limits: Limits) -> None:
    (passage,) = read(write("a.mdx", MDX), limits)
    assert passage.title == "Use it > Set the host"
    code = 'import ollama from "ollama"\n<Kept />'
    for content in ("Python:", 'Client(host="a")', code, "Others:", "Enter", "a < B", "<Unfinished"):
        assert content in passage.text
    for markup in ("components", "version", "major", "Tab", "href", "authors"):
        assert markup not in passage.text


def test_elements_of_mdx_with_an_expression_are_no_text(write: Write, limits: Limits) -> None:
    text = "Some <i style={{color: 'red'}}>red</i> words, and `<b id={x}>` as code.\n"
    (passage,) = read(write("a.mdx", text), limits)
    assert passage.text == "Some red words, and <b id={x}> as code."


@pytest.mark.parametrize(("name", "content"), [("a.md", MARKDOWN), ("a.rst", RST), ("a.html", HTML), ("a.docx", docx(WORD))])
def test_every_format_gives_the_same_passages(write: Write, limits: Limits, name: str, content: str | bytes) -> None:
    documents = read(write(name, content), limits, f"guide/{name}")
    assert [(p.id.removeprefix(f"guide/{name}"), p.title, p.text) for p in documents] == SAME


def test_ids_stay_when_sections_come(write: Write, limits: Limits) -> None:
    text = "# A\nStart.\n## One\nText.\n### Example\nText.\n## Two\nLong.\n### Example\nText.\n### Example\nAgain.\n"
    before = [p.id for p in read(write("a.md", text), limits)]
    assert before == ["a.md", "a.md#one", "a.md#one/example", "a.md#two", "a.md#two/example", "a.md#two/example~2"]
    longer = text.replace("## One", "## Zero\nNew.\n## One").replace("Long.", "word " * 150)
    after = [p.id for p in read(write("a.md", longer), limits)]
    assert [i for i in after if i in before] == before
    assert set(after) - set(before) == {"a.md#zero", "a.md#two#2"}


def test_titles_and_slugs_are_bounded() -> None:
    assert len(section_title("d" * 300, ["h" * 300] * 9)) <= 300
    assert section_title("A", list("bcdefg")) == "A > ... > e > f > g"
    assert len(slug(["long heading"] * 40)) <= 70
    assert slug(["long heading"] * 40) != slug(["long heading"] * 41)


def test_listings_are_cut_between_lines_and_keep_comments() -> None:
    lines = [line for n in range(60) for line in (f"# what setting {n} is for, in a few words", f"setting_{n}: value of {n}")]
    texts = list(passages([("prose", ["Some words before."]), ("listing", lines)]))
    assert all(len(text.split()) <= MAX_LISTING_WORDS for text in texts)
    assert " ".join(texts).split() == ["Some", "words", "before.", *" ".join(lines).split()]
    for text in texts:
        assert text.startswith(("Some words", "# what setting"))
        assert "value of" in text.split("# what")[-1]
        assert set(text.split("\n")) <= {"Some words before.", *lines}


def test_indents_stay_and_prose_after_a_listing_is_on_its_own_line() -> None:
    blocks = [("listing", ["server:", "\tport: 80  # web", "", "  end"]), ("prose", ["Then start it.", "Done."])]
    assert list(passages(blocks)) == ["server:\n    port: 80 # web\n  end\nThen start it. Done."]


def test_rows_are_never_parted_and_one_long_line_is() -> None:
    rows = [f"Option: --o{n}; Meaning: {'word ' * 30}." for n in range(9)]
    assert all(text.startswith("Option: ") and text.endswith(".") for text in passages([("table", rows)]))
    assert [len(text.split()) for text in passages([("listing", ["w " * 350])])] == [100, 100, 150]


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("<tr><th>Born</th><td>1937</td></tr><tr><th>Died</th><td>2000</td></tr>", "Born: 1937. Died: 2000."),
        ("<tr><th>A<th colspan=2>B<tr><td rowspan=2>1<td>2<td>3<tr><td>4<td>5", "A: 1; B: 2; B: 3. A: 1; B: 4; B: 5."),
        ("<tr><td><table><tr><td>Words<td>of a page</table><td>laid out", "Words; of a page. laid out"),
        ("<tr></tr><tr><td>alone", "alone"),
        *(
            (
                f"<tr><{h} rowspan=2>Team<{h} colspan=2>Season 2023<tr><{h}>Captain<{h}>Coach<tr><td colspan=3>North<tr><td>A<td>Ann<td>Cy"
                "<tr><td colspan=3>South<tr><td>B<td>Bo<td>Di",
                "North; Team: A; Season 2023, Captain: Ann; Season 2023, Coach: Cy. "
                "South; Team: B; Season 2023, Captain: Bo; Season 2023, Coach: Di.",
            )
            for h in ("th", "td")
        ),
        ("<thead><tr><td>A<td>B<tr><td>c<td>d</thead><tr><td>1<td>2", "A, c: 1; B, d: 2."),
        ("<tr><th colspan=2>People<tr><th>Name<th>Age<tr><td>Ann<td>7", "People. Name: Ann; Age: 7."),
    ],
)
def test_tables_of_pages(write: Write, limits: Limits, table: str, text: str) -> None:
    assert [p.text for p in read(write("a.html", f"<table>{table}</table>"), limits)] == [text]


@pytest.mark.parametrize(
    ("codec", "declaration", "text"),
    [
        ("cp1252", "<meta charset=windows-1252>", "Das Café in Zürich schließt früh."),
        ("cp1252", "<meta charset='ISO-8859-1'>", "5 € – it’s paid"),
        ("cp932", '<meta charset="Windows-31J">', "鍵は髙田①の店"),
        ("cp932", '<META HTTP-EQUIV="content-type" CONTENT="text/html; charset=Shift_JIS">', "駅長は岡村"),
        ("euc_jp", "<!-- a --><meta charset=x-euc-jp>", "駅長は岡村"),
        ("iso2022_jp", "<meta charset=iso-2022-jp>", "駅長は岡村"),
        ("gb18030", '<meta http-equiv="Content-Type" content="charset=gb2312">', "站长是王芳"),
        ("cp949", '<?xml version="1.0" encoding="euc-kr"?>', "역장은 김영수 뷁"),
        ("koi8_r", "<meta charset=koi8-r><meta charset=utf-8>", "Смотритель Петров"),
        ("utf-16", "<meta charset=iso-8859-1>", "Zoë Ångström"),
        ("utf-8-sig", "<meta charset=gbk>", "Zoë Ångström"),
        ("utf-8", "<meta charset=iso-8859-1>", "Zoë Ångström"),
        ("cp1252", "", "Das Café in Zürich schließt früh."),
        ("cp1252", "<meta charset=utf-8>", "Das Café in Zürich schließt früh."),
    ],
)
def test_a_page_is_read_as_the_html_standard_says(
    write: Write, limits: Limits, codec: str, declaration: str, text: str
) -> None:
    assert read(write("a.html", f"{declaration}<p>{text}</p>".encode(codec)), limits)[0].text == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<meta charset=klingon><p>caf\xe9", "'klingon'"),
        (b"<meta charset=shift_jis><p>\x82\xff\xff", "cp932"),
    ],
)
def test_a_page_that_cannot_be_read_is_refused(write: Write, limits: Limits, content: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(write("a.html", content), limits)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("cast in 1911<sup><a href='#n3'>[3]</a></sup> by Rolf Dahm<sup>4</sup>.", "cast in 1911 [3] by Rolf Dahm [4]."),
        ("It ended.<sup>12</sup> Then Lee<sup>*</sup>went, Holm<sup>1,2</sup>", "It ended. [12] Then Lee [*] went, Holm [1,2]"),
        ("5 km<sup>2</sup>, 10<sup>-3</sup>, x<sup>n+1</sup>, e<sup>2x</sup>", "5 km², 10⁻³, xⁿ⁺¹, e^2x"),
        ("4<sup>th</sup>, XIX<sup>e</sup> siècle, CO<sub>2</sub>", "4th, XIXe siècle, CO2"),
        (
            "sea&#8203;wall, tan<wbr>ker, Wasser&shy;fall, a&#8288;b&#65279;c, &#8206;x&#8207;",
            "seawall, tanker, Wasserfall, abc, x",
        ),
        ("see <a href='data:text/plain,abc'>this</a> data:image/png;base64,AAAABBBBAAAABBBBAAAABBBB end", "see this end"),
    ],
)
def test_words_of_a_page(write: Write, limits: Limits, html: str, text: str) -> None:
    assert [p.text for p in read(write("a.html", f"<p>{html}</p>"), limits)] == [text]


@pytest.mark.parametrize(
    ("markdown", "title", "text"),
    [
        ("# Build {#build .wide}\nText.", "Build", "Text."),
        ("Build {: #build}\n=====\nText.", "Build", "Text."),
        ("Go [there](x){:target=_blank}, `run`{.py}, {not} {#this}.\n{: .note}", "a", "Go there, run, {not} {#this}."),
        (":::tip[Use the cache]\nQuick.\n:::\nAfter.", "a", "Use the cache: Quick. After."),
        ("::: warning\nCareful.\n:::", "a", "Careful."),
        (":::{note} Read\n:class: wide\nInside.\n:::", "a", "Read: Inside."),
        ('::: {.callout-tip title="Good"}\nInside.\n:::', "a", "Good: Inside."),
        ("> [!IMPORTANT]\n> Read this.", "a", "Read this."),
        ("> [!note]- Own title\n> Folded.", "a", "Own title: Folded."),
        ('??? question "Why?"\n    Because.\n\n    !!! note\n        Deep.\n\nAfter.', "a", "Why? Because. Deep. After."),
        ('=== "Linux"\n\n    ```\n    a:\n      b\n    ```\n', "a", "Linux:\na:\n  b"),
        ("!!! Stop here\nIt is text.", "a", "!!! Stop here It is text."),
        ("```\n:::tip[x]\n```", "a", ":::tip[x]"),
        ("Before ![x](data:image/svg+xml;base64,AAAABBBBAAAABBBB) after.", "a", "Before after."),
    ],
)
@pytest.mark.parametrize("suffix", ["md", "mdx"])
def test_marks_of_a_site_are_no_text(write: Write, limits: Limits, markdown: str, title: str, text: str, suffix: str) -> None:
    (passage,) = read(write(f"a.{suffix}", markdown), limits)
    assert (passage.id, passage.title, passage.text) == (f"a.{suffix}", title, text)


def test_merged_cells_of_a_table_in_word(write: Write, limits: Limits) -> None:
    def cell(text: str, merge: str = "") -> str:
        return f"<w:tc><w:tcPr>{merge}</w:tcPr>{paragraph(text)}</w:tc>"

    rows = [
        cell("Team", '<w:vMerge w:val="restart"/>') + cell("Season 2023", '<w:gridSpan w:val="2"/>'),
        cell("", "<w:vMerge/>") + cell("Captain") + cell("Coach"),
        cell("North", '<w:gridSpan w:val="3"/>'),
        cell("A") + cell("Ann") + cell("Cy"),
        cell("B") + cell("Bo") + cell("Di"),
    ]
    table = f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
    (passage,) = read(write("a.docx", docx(table)), limits)
    assert passage.text == (
        "North; Team: A; Season 2023, Captain: Ann; Season 2023, Coach: Cy. "
        "North; Team: B; Season 2023, Captain: Bo; Season 2023, Coach: Di."
    )


NOTES = f"""<w:footnotes {NAMESPACE}>{
    "".join(
        f'<w:footnote w:id="{n}">{paragraph(text)}</w:footnote>' for n, text in ((1, "Measured in May."), (2, "Not in winter."))
    )
}</w:footnotes>"""


def test_notes_of_word_stay_with_the_section_that_refers_to_them(write: Write, limits: Limits) -> None:
    def referring(text: str, note: int) -> str:
        return f'<w:p><w:r><w:t>{text}</w:t></w:r><w:r><w:footnoteReference w:id="{note}"/></w:r></w:p>'

    cell = f"<w:tbl><w:tr><w:tc>{referring('Ice', 2)}</w:tc><w:tc>{paragraph('none')}</w:tc></w:tr></w:tbl>"
    body = (
        f"{paragraph('Depth', 'heading1')}{referring('It is 9 m deep.', 1)}{paragraph('More.')}{paragraph('Ice', 'heading1')}{cell}"
        f"{paragraph('End', 'heading1')}{paragraph('Words.')}"
    )
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Target="footnotes.xml" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"/></Relationships>'
    )
    content = docx(body, **{"word/footnotes.xml": NOTES.encode(), "word/_rels/document.xml.rels": relations.encode()})
    assert [(p.title.split(" > ")[-1], p.text) for p in read(write("a.docx", content), limits)] == [
        ("Depth", "It is 9 m deep. [1] Measured in May. More."),
        ("Ice", "Ice [2]; none. Not in winter."),
        ("End", "Words."),
    ]


def test_rst_reads_no_other_file(write: Write, limits: Limits) -> None:
    write("secret.txt", "secret words")
    text = ".. include:: secret.txt\n\n.. raw:: html\n   :file: secret.txt\n\n.. csv-table::\n   :file: secret.txt\n\nOther text.\n"
    assert [p.text for p in read(write("a.rst", text), limits)] == ["Other text."]


def test_a_document_with_macros_is_read_without_them(write: Write, limits: Limits) -> None:
    content = docx(paragraph("Some words."), **{"word/vbaProject.bin": b"\xd0\xcf\x11\xe0 macro"})
    assert [p.text for p in read(write("a.docx", content), limits)] == ["Some words."]


BAD: dict[str, tuple[str, Callable[[], str | bytes], str]] = {
    "encrypted": ("a.docx", lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "encrypted"),
    "no zip": ("a.docx", lambda: b"words", "not a Word document"),
    "cut": ("a.docx", lambda: docx(WORD)[:-40], "not a Word document"),
    "another zip": ("a.docx", lambda: zip_of({"x.txt": "words"}), "cannot be read"),
    "bomb": ("a.docx", lambda: docx("", **{"word/media.xml": b"\0" * 40_000_000}), "200 times"),
    "50 MB": ("a.html", lambda: b"<p>words</p>\n" * 4_200_000, "20 MB"),
    "nested": ("a.html", lambda: "<div>" * 10_000 + "words", "nested more than"),
    "mixed encodings": ("a.html", lambda: "<p>Zürich\n".encode() + "Köln\n".encode("latin-1"), "mixes encodings"),
    "binary": ("a.rst", lambda: bytes(range(256)) * 8, "UTF-8"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_documents_are_one_clear_error(write: Write, limits: Limits, what: str) -> None:
    name, make, message = BAD[what]
    with pytest.raises((FormatError, InputError), match=message) as error:
        read(write(name, make()), limits)
    assert name in str(error.value)
    assert "\n" not in str(error.value)
