"""Every command of the benchmark pages, the model cards and the documents is one that its parser takes; every benchmark stands in a page; figures are
those of the shipped runs; a card says what its weights may not be reported on, and names the splits."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
import runpy
import shlex
import sys
from functools import partial
from pathlib import Path

import pytest

from benchmarks import ambignq, tables
from core.cli import parser as core_parser
from core.errors import InputError
from core.settings import ROOT
from storage.__main__ import _parser as storage_parser

BENCHMARKS = ROOT / "benchmarks"
PAGES = [BENCHMARKS / "README.md", *sorted((BENCHMARKS / "results").glob("*.md"))]
CARDS = sorted((ROOT / "checkpoints").glob("*/README.md"))
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(
        p for p in (ROOT / "docs").glob("*.md") if p.name != "extending.md"
    ),  # tests/test_extending.py runs its commands, with its plugins
]
MODULES = sorted(p for p in BENCHMARKS.rglob("*.py") if p.name != "__init__.py")
COMMAND = re.compile(r"python\s+-m\s+((?:benchmarks|core|storage)(?:\.\w+)*)\s*(.*)", re.DOTALL)


class Parsed(BaseException):
    """Raised in place of what a benchmark does once its words are parsed; nothing that catches errors stops it."""


def commands(page: Path) -> list[tuple[str, str]]:
    """(module, its words) of each command in a fenced block, and in `code` unless the document names parts of commands there."""
    text = page.read_text(encoding="utf-8")
    fenced = re.compile(r"^ *```.*?\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
    spans = [line for block in fenced.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    if page not in DOCUMENTS:
        spans += re.findall(r"`([^`]+)`", fenced.sub("", text))
    matches = [match for span in spans if (match := COMMAND.search(span))]
    return [(match[1], match[2].partition("#")[0]) for match in matches]


ALL = sorted({(module, words) for page in (*PAGES, *CARDS, *DOCUMENTS) for module, words in commands(page)})


def parse_as_module(module: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser of a module that is run by itself is made in its `main`, which goes no further than parsing here."""
    spec = importlib.util.find_spec(module)
    assert spec is not None, f"there is no module {module}"
    loaded = importlib.import_module(module)
    if "argparse" not in Path(spec.origin).read_text(encoding="utf-8") and module.startswith("benchmarks."):
        assert not words, f"{module} takes no arguments"
        return
    real = argparse.ArgumentParser.parse_args

    def parse(self: argparse.ArgumentParser, args: object = None, namespace: object = None) -> None:
        real(self, words)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    monkeypatch.setattr(sys, "argv", [module, *words])
    run = loaded.main if hasattr(loaded, "main") else partial(runpy.run_path, spec.origin, run_name="__main__")
    with pytest.raises(Parsed):
        run()


@pytest.mark.parametrize(("module", "words"), ALL, ids=[f"{m} {w}"[:80] for m, w in ALL])
def test_a_command_is_one_that_its_parser_takes(
    module: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    split = [word for word in shlex.split(words) if word != "..."]
    try:
        if module == "core":
            core_parser().parse_args(split)
        elif module == "storage":
            storage_parser().parse_args(split)
        else:
            parse_as_module(module, split, monkeypatch)
    except (SystemExit, InputError) as error:
        pytest.fail(f"python -m {module} {' '.join(split)}: {capsys.readouterr().err or error}")


@pytest.mark.parametrize("path", MODULES, ids=[p.stem for p in MODULES])
def test_each_benchmark_stands_in_a_page(path: Path) -> None:
    relative = path.relative_to(ROOT)
    names = (relative.as_posix(), ".".join(relative.with_suffix("").parts))
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert any(name in text for name in names), f"no page names {relative}"


@pytest.mark.parametrize("name", tables.DOCUMENTS)
def test_a_document_has_the_figures_of_the_stored_runs(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "<!-- table: " in text
    assert tables.updated(text, *tables.stored()) == text


def test_no_table_is_between_marks_that_nobody_reads() -> None:
    marked = {p.relative_to(ROOT).as_posix() for p in (*PAGES, *DOCUMENTS) if "<!-- table: " in p.read_text(encoding="utf-8")}
    assert marked == set(tables.DOCUMENTS)


def test_every_shipped_run_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"(?m)^\| `([\w-]+)` \|.*\| ([^|]*) \|$", readme))
    measured = {name for name, cell in rows.items() if re.match(r"\d", cell)}
    assert measured == set(tables.stored()[0])


def test_the_readme_has_the_figures_of_the_ambignq_table() -> None:
    if ambignq.packed():
        pytest.skip("the stored runs are compared above")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = (BENCHMARKS / "results" / "systems.md").read_text(encoding="utf-8").partition("**Three hundred questions**")[2]
    in_page = dict(re.findall(r"(?m)^\| `([\w-]+)`[^|]*\| ([\d.]+) / ", page))
    shown = re.findall(r"(?m)^\| `([\w-]+)` \|.*\| ([\d.]+) \| [^|]*\|$", readme)
    assert shown
    assert [(name, figure) for name, figure in shown if in_page[name] != figure] == []


@pytest.mark.parametrize("card", CARDS, ids=lambda p: p.parent.name)
def test_a_card_says_first_what_cannot_be_reported_and_names_the_splits(card: Path) -> None:
    text = card.read_text(encoding="utf-8")
    assert text.splitlines()[2].startswith("**Not to be reported on:** ")
    of_data = re.findall(
        r"(?ms)^\| data .*?\n|^\*\*Data\.\*\* .*?\n\n", text
    )  # a row, or a paragraph: files with several splits
    benchmarks = " ".join("".join(of_data).split())
    assert re.findall(r"(?:ASQA|RAMDocs|QuoteSum|MultiSpanQA|DROP)(?! \*(?:train|dev|test|valid)\*)", benchmarks) == []
