"""The documents compared with the code: systems, options, settings, metrics, pages, commands, formats, links and files."""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from core import __version__
from core.commands import COMMANDS
from core.datasets import LAYOUTS
from core.datasets.catalogue import DATASETS
from core.metrics import METRICS
from core.metrics.errors import BUCKETS
from core.retrieval import wikipedia
from core.retrieval.readers import READERS
from core.retrieval.vectors import KINDS as VECTOR_FILES
from core.settings import ROOT, Settings
from core.systems import SYSTEMS
from core.text import CHUNK_CHARS, PASSAGE_WORDS
from pages.session import shared
from storage import __main__ as storage_cli
from storage.access.sign_ins import SIGN_IN_LASTS
from storage.exchange.exports.formats import FORMATS
from storage.exchange.exports.snapshots import SNAPSHOT_FORMATS
from storage.exchange.imports.importing import FORMATS as READ

DOCS = ROOT / "docs"
OURS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
SHOWN = [name for name, entry in SYSTEMS.items() if not entry.hidden]
CODE = re.compile(r"`([^`\n]+)`")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """The text below a heading, to the next one of its level or above."""
    match = re.search(rf"(?ms)^#+ {re.escape(heading)}$(.*?)(?=^#{{1,2}} |\Z)", text)
    assert match, heading
    return match[1]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of each row of a text's tables, without heads."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        divides = set(line) <= set("|-: ")
        heads = at + 1 < len(lines) and lines[at + 1].startswith("|--")
        if line.startswith("|") and not divides and not heads:
            yield [cell.strip() for cell in line.strip("|").split("|")]


def names(cell: str) -> list[str]:
    return CODE.findall(cell)


def first_names(text: str) -> list[str]:
    return [name for cells in rows(text) for name in names(cells[0])]


def prose(path: Path) -> str:
    """The document without its blocks of code."""
    return re.sub(r"(?ms)^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"))


# ------------------------------------------------------------ README


def test_the_readme_lists_every_system() -> None:
    assert sorted(first_names(section(text_of("README.md"), "Systems"))) == sorted(SHOWN)


def test_the_readme_names_every_page() -> None:
    tour = section(text_of("README.md"), "A tour")
    assert set(re.findall(r"\*\*(\w+)\*\*:", tour)) == {title for title, _ in shared.PAGES.values()}


def test_documents_name_the_version() -> None:
    assert re.findall(r"(?m)^## \[([\d.]+)\]", text_of("CHANGELOG.md"))[0] == __version__
    assert f"\nversion: {__version__}\n" in text_of("CITATION.cff")
    assert f"Ambiscope {__version__}" in text_of("README.md")


@pytest.mark.parametrize(
    "path",
    [*OURS, ROOT / "CHANGELOG.md", ROOT / "data" / "README.md", *sorted((ROOT / "checkpoints").glob("*/README.md"))],
    ids=lambda p: "/".join(p.parts[-2:]),
)
def test_no_line_or_cell_is_over_200_characters(path: Path) -> None:
    assert [line[:80] for line in path.read_text(encoding="utf-8").splitlines() if len(line) > 200] == []


# ------------------------------------------------------------ registries


@pytest.mark.parametrize(
    ("document", "heading", "known"),
    [
        ("docs/metrics.md", "Metrics", METRICS),
        ("docs/metrics.md", "Errors", BUCKETS),
        ("docs/formats.md", "Corpus files", READERS),
        ("docs/formats.md", "Vectors", VECTOR_FILES),
        ("docs/formats.md", "Question files", LAYOUTS),
        ("docs/formats.md", "Exports", FORMATS),
        ("docs/formats.md", "Imports", READ),
    ],
)
def test_a_table_has_what_the_code_has(document: str, heading: str, known: Any) -> None:
    text = section(text_of(document), heading)
    assert sorted(first_names(text)) == sorted(known)


def test_the_formats_of_a_snapshot() -> None:
    assert [n for n in names(section(text_of("docs/formats.md"), "Snapshots")) if n in FORMATS] == list(SNAPSHOT_FORMATS)


def test_the_data_sets_that_are_named_exist() -> None:
    named = [name for path in OURS for name in re.findall(r"core download ([a-z][\w-]*)", path.read_text(encoding="utf-8"))]
    assert named
    assert set(named) <= {*DATASETS, wikipedia.NAME}


# ------------------------------------------------------------ settings


def shown_default(value: object) -> str:
    if isinstance(value, Path):
        return f"`{value.relative_to(ROOT)}`"
    return f"`{value}`" if value != "" else "empty"


def test_every_setting_is_documented_with_its_default() -> None:
    defaults = {name: cells[1] for cells in rows(text_of("docs/settings.md")) for name in names(cells[0])}
    assert defaults == {f"AMBISCOPE_{f.name.upper()}": shown_default(getattr(Settings, f.name)) for f in fields(Settings)}


@pytest.mark.parametrize("path", OURS, ids=lambda p: p.name)
def test_settings_that_are_named_exist(path: Path) -> None:
    known = {f"AMBISCOPE_{f.name.upper()}" for f in fields(Settings)}
    assert set(re.findall(r"\bAMBISCOPE_[A-Z0-9_]*[A-Z0-9]\b", path.read_text(encoding="utf-8"))) <= known


# ------------------------------------------------------------ commands


def all_commands() -> set[str]:
    """As one types them."""
    ours = {f"core {module.rpartition('.')[2].replace('_', '-')}" for module in COMMANDS}
    subcommands = next(a for a in storage_cli._parser()._actions if isinstance(a, argparse._SubParsersAction)).choices
    return ours | {f"storage {name}" for name in subcommands}


@pytest.mark.parametrize("path", OURS, ids=lambda p: p.name)
def test_commands_that_are_named_exist(path: Path) -> None:
    spans = [re.match(r"(?:python -m )?((?:core|storage) [a-z][\w-]*)", span) for span in names(prose(path))]
    assert {match[1] for match in spans if match} <= all_commands()


def test_every_command_is_in_some_document() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in OURS)
    assert [name for name in sorted(all_commands()) if not re.search(rf"{name}(?![\w-])", text)] == []


# ------------------------------------------------------------ files and links

FOLDERS = "core|storage|pages|tests|benchmarks|docs|data|checkpoints|\\.ci|\\.streamlit"
OURS_BY_TABLE = [ROOT / "CONTRIBUTING.md", DOCS / "architecture.md", DOCS / "security.md", DOCS / "systems.md"]


def files_of(path: Path) -> list[str]:
    """The files and folders of the repository that a document names in code, without those that stand for any name."""
    spans = [word for span in names(path.read_text(encoding="utf-8")) for word in span.split()]
    paths = [s for s in spans if re.fullmatch(rf"(?:{FOLDERS})/[\w./-]*|[\w-]+\.(?:py|txt|md|toml)", s)]
    return [path for path in paths if not re.search(r"NAME|NUMBER|secrets", path)]


@pytest.mark.parametrize("path", OURS_BY_TABLE, ids=lambda p: p.name)
def test_files_that_are_named_exist(path: Path) -> None:
    files = files_of(path)
    assert files
    missing = [f for f in files if not (ROOT / f).exists() and not (ROOT / f"{f}.py").exists() and not (DOCS / f).exists()]
    assert missing == []


def test_the_architecture_names_every_module_and_folder() -> None:
    """Those of the first level; the contents of a folder are described by its own docstrings."""
    text = text_of("docs/architecture.md")
    paths = [path for layer in ("core", "storage", "pages") for path in (ROOT / layer).iterdir() if path.name[0] != "_"]
    known = [
        p.relative_to(ROOT).as_posix() + "/" * p.is_dir() for p in paths if p.suffix == ".py" or (p / "__init__.py").is_file()
    ]
    assert [name for name in sorted(known) if f"`{name}`" not in text] == []


def test_each_value_is_where_the_architecture_says() -> None:
    for change, *cells in rows(section(text_of("docs/architecture.md"), "Where one value or rule is")):
        spans = names(cells[0])
        files = [ROOT / span for span in spans if (ROOT / span).exists()]
        text = "".join(path.read_text(encoding="utf-8") for path in files)
        assert files, change
        assert spans[0] in text or (ROOT / spans[0]).exists(), change


def test_documents_have_the_values_of_the_code() -> None:
    for document, words in {
        "README.md": f"passages of about {PASSAGE_WORDS} words",
        "CONTRIBUTING.md": f"at most {PASSAGE_WORDS} words of a titled document",
        "docs/formats.md": f"{PASSAGE_WORDS} words or {CHUNK_CHARS:,} characters",
        "docs/security.md": f"lasts {SIGN_IN_LASTS.days} days",
        "docs/deploy.md": f"signed in for {SIGN_IN_LASTS.days} days",
    }.items():
        assert words in text_of(document), document


def test_recipes_name_what_the_files_hold() -> None:
    """A registry that CONTRIBUTING names in capitals stands in a file or folder of its row or list."""
    missing = []
    recipes = section(text_of("CONTRIBUTING.md"), "Where things go")
    longer = re.split(r"(?m)^### .*$", recipes)[1:]
    assert longer
    for cells in (*rows(recipes), *([text] for text in longer)):
        where = [ROOT / f for cell in cells for f in names(cell) if (ROOT / f).exists()]
        sources = [p for w in where for p in ([w] if w.is_file() else sorted(w.rglob("*.py")))]
        text = "".join(p.read_text(encoding="utf-8") for p in sources if p.suffix == ".py")
        missing += [name for name in names(cells[-1]) if re.fullmatch(r"[A-Z_]{4,}", name) and name not in text]
    assert missing == []


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    heads = re.findall(r"(?m)^#+ (.*)$", prose(path))
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def tracked_documents() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:  # not a clone: the documents that a person reads first
        return OURS
    return sorted({*OURS, *(p for name in listed.stdout.split("\n") if name and (p := ROOT / name).is_file())})


@pytest.mark.parametrize("path", tracked_documents(), ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_lead_somewhere(path: Path) -> None:
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            wrong.append(target)
    assert wrong == []
