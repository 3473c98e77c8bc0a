"""The passage store: round trip, lookup, damage, memory."""

from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path

import pytest

from core.errors import FormatError, IndexMismatchError, NotFoundError
from core.retrieval.corpus import FACTS, PASSAGES, PassageStore, PassageWriter
from core.types import Passage

ROWS = [Passage("a", "Tïtle", "text one"), Passage("b", "", "東京 🎬"), Passage("c#1", "T", "x")]


def new_store(folder: Path, rows: list[Passage]) -> PassageStore:
    with PassageWriter(folder) as writer:
        for row in rows:
            writer.add(row)
        writer.finish(source="test")
    return PassageStore(folder)


def test_round_trip(tmp_path: Path) -> None:
    store = new_store(tmp_path / "s", ROWS)
    assert len(store) == 3
    assert list(store) == ROWS
    assert [store.passages(*part) for part in ((1, 1), (2, 10**30), (10**30, 5))] == [ROWS[1:2], ROWS[2:], []]
    assert store.get("b") == ROWS[1]
    assert (store.row_of("c#1"), store.row_of("nope")) == (2, None)
    assert store.facts["source"] == "test"
    store.verify()


def test_digest_is_that_of_id_title_and_text(tmp_path: Path) -> None:
    expected = hashlib.sha256("".join(f"{p.id}\t{p.title}\t{p.text}\n" for p in ROWS).encode()).hexdigest()
    assert new_store(tmp_path / "s", ROWS).digest == expected
    assert new_store(tmp_path / "t", ROWS[::-1]).digest != expected


def test_minus_one_is_no_passage(tmp_path: Path) -> None:
    store = new_store(tmp_path / "s", ROWS)
    for row in (-1, 3):
        with pytest.raises(IndexError, match=f"row {row} of a corpus of 3"):
            store[row]


def test_duplicates_and_separators_are_refused(tmp_path: Path) -> None:
    with PassageWriter(tmp_path / "s") as writer:
        writer.add(ROWS[0])
        assert writer.has_id("a")
        assert not writer.has_id("b")
        with pytest.raises(FormatError, match="duplicate passage id 'a'"):
            writer.add(ROWS[0])
        for title, text in ("t", "x\ty"), ("t\nu", "x"):
            with pytest.raises(FormatError, match="must not contain a tab"):
                writer.add(Passage("q", title, text))
        writer.add(two_lines := Passage("q", "t", "two\n  lines"))
        writer.finish()
    assert PassageStore(tmp_path / "s").get("q") == two_lines


def test_an_unfinished_store_does_not_open(tmp_path: Path) -> None:
    with PassageWriter(tmp_path / "s") as writer:
        writer.add(ROWS[0])
    with pytest.raises(NotFoundError, match="no finished passage store"):
        PassageStore(tmp_path / "s")
    assert list(new_store(tmp_path / "s", ROWS)) == ROWS  # and is written again


@pytest.mark.parametrize("name", [PASSAGES, FACTS])
def test_a_truncated_file_is_noticed(tmp_path: Path, name: str) -> None:
    new_store(tmp_path / "s", ROWS)
    path = tmp_path / "s" / name
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(IndexMismatchError, match="build it again"):
        PassageStore(tmp_path / "s")


def test_changed_text_fails_verification_and_damage_is_named(tmp_path: Path) -> None:
    new_store(tmp_path / "s", ROWS)
    path = tmp_path / "s" / PASSAGES
    path.write_bytes(path.read_bytes().replace(b"text one", b"text two"))
    with pytest.raises(IndexMismatchError, match="changed after the index was built"):
        PassageStore(tmp_path / "s").verify()
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(IndexMismatchError, match="is damaged"):
        PassageStore(tmp_path / "s")


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    def peak(count: int, attempt: int) -> int:
        folder = tmp_path / f"{count}-{attempt}"
        tracemalloc.start()
        with PassageWriter(folder) as writer:
            for i in range(count):
                writer.add(Passage(f"passage-{i}", "Title", "word " * 20 + str(i)))
            writer.finish()
        assert sum(1 for _ in PassageStore(folder)) == count
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(10, 0)  # what is made once
    # Python counts what every thread of the process takes, also those that other tests left: the least of three
    small, large = (min(peak(count, attempt) for attempt in range(3)) for count in (1000, 8000))
    assert large < 2 * small + 100_000  # a set of 8,000 ids alone would take a megabyte
