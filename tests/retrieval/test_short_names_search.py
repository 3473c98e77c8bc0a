"""Short names that a corpus never writes find what it writes in full."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import IndexMismatchError
from core.retrieval import short_names
from core.retrieval.library import Corpus, CorpusLibrary

ROWS = [
    ("p1", "The Nintendo 64 went on sale in Japan.", "Nintendo 64 (Japanese launch)"),
    ("p2", "The Northern Insurance Society (NIS) was set up in Brevik. The NIS has a seat in Torsby.", "Insurance"),
    ("p3", "The National Ice Survey (NIS) is based in Jarn.", "National Ice Survey"),
    ("p4", "The President, Franklin D. Roosevelt, pressed a key.", "Opening of a bridge"),
    ("p5", "Basalt is a dark volcanic rock.", "Basalt"),
    ("p6", "A series about houses that fight for a throne.", "Game of Thrones"),
]


@pytest.fixture
def corpus(library: CorpusLibrary, write: Callable[[str, str | bytes], Path]) -> Corpus:
    file = write("names.tsv", "id\ttext\ttitle\n" + "".join("\t".join(row) + "\n" for row in ROWS))
    library.create("names", [file])
    return library.open("names")


@pytest.mark.parametrize(
    ("query", "expanded"),
    [
        ("When did the N64 come out?", "When did the Nintendo 64 come out?"),
        ("when did the n64 come out", "when did the Nintendo 64 come out"),
        ("Who made GoT?", "Who made Game of Thrones?"),
        ("What did FDR press?", "What did Franklin D. Roosevelt press?"),
        ("what did fdr press?", "what did fdr press?"),  # in small letters it takes a title
        ("Where is the NIS?", "Where is the NIS (National Ice Survey; Northern Insurance Society)?"),
        ("What is basalt, and who has it?", "What is basalt, and who has it?"),
    ],
)
def test_a_query_gets_the_names_of_the_corpus(corpus: Corpus, query: str, expanded: str) -> None:
    assert corpus.expanded(query) == expanded


def test_a_short_name_finds_its_passage(corpus: Corpus) -> None:
    assert corpus.search("N64", 1, "bm25")[0].passage.id == "p1"
    assert {f.passage.id for f in corpus.search("Where is the NIS?", 2, "bm25")} == {"p2", "p3"}


@pytest.mark.parametrize("damage", [lambda file: file.write_bytes(b"no table" * 200), Path.unlink])
def test_a_damaged_or_missing_table_is_named(library: CorpusLibrary, corpus: Corpus, damage: Callable[[Path], object]) -> None:
    damage(library.folder / "names" / short_names.FILE)
    with pytest.raises(IndexMismatchError, match="short_names"):
        library.open("names").search("N64", 1)


def test_a_large_corpus_keeps_titles_and_explanations(corpus: Corpus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(short_names, "WHOLE_TEXTS", 3)
    short_names.build(corpus.store, len(corpus.store), tmp_path / "table")
    table = short_names.ShortNames(tmp_path / "table")
    assert table.names("FDR", False) == []
    assert table.names("N64", False) == ["Nintendo 64"]
