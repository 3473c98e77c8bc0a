"""Corpora end to end: build, search in each mode, resume, lock, replace, delete, the starter corpus."""

from __future__ import annotations

import dataclasses
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core.engine import Engine
from core.errors import ConflictError, IndexMismatchError, InputError, NotFoundError, NothingRetrievedError, StorageError
from core.models.encoders.sentence_encoder import HashingEncoder, passage_text
from core.retrieval import index as ix
from core.retrieval.corpus import PassageWriter
from core.retrieval.hybrid import BM25_WEIGHT
from core.retrieval.library import BuildOptions, Corpus, CorpusInfo, CorpusLibrary
from core.retrieval.readers.lines import Limits
from core.settings import ROOT, Settings

Write = Callable[[str, str | bytes], Path]


def many(write: Write, count: int = 150, name: str = "many.tsv") -> Path:
    return write(name, "".join(f"{i}\tpassage {i} speaks of topic {i % 11}\tTitle {i}\n" for i in range(count)))


@pytest.fixture
def facts(library: CorpusLibrary, facts_file: Path) -> Corpus:
    library.create("facts", [facts_file])
    return library.open("facts")


def test_build_open_search(library: CorpusLibrary, facts_file: Path) -> None:
    steps: list[tuple[int, int, str]] = []
    report = library.create("facts", [facts_file], lambda *step: steps.append(step))
    assert report.passages == sum(f.passages for f in report.files) == 5
    assert {stage for *_, stage in steps} == {"reading", "words", "encoding", "indexing"}
    assert (5, 5, "encoding") in steps
    corpus = library.open("facts")
    assert (len(corpus), corpus.digest) == (5, report.digest)
    assert "facts" in library.names()
    (info,) = library.list()
    assert info.size_bytes > 1000
    assert info.built
    facts = ("facts", 5, report.digest, "hashing", "flat", info.built, info.size_bytes, "facts.tsv")
    assert info == CorpusInfo(*facts, complete=True)


@pytest.mark.parametrize("mode", ["dense", "bm25", "hybrid"])
def test_every_mode_finds_the_passages_with_their_cosines(facts: Corpus, mode: str) -> None:
    query = "Who played Maria in the 2021 remake?"
    results = facts.search(query, 3, mode)
    assert results[0].passage.id == "p2"
    assert [r.rank for r in results] == list(range(1, len(results) + 1))
    assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)
    encoder = HashingEncoder()
    for r in results:
        cosine = encoder.encode([passage_text(r.passage)])[0] @ encoder.encode([query], "query")[0]
        assert r.similarity == pytest.approx(cosine, abs=1e-5)
        if mode == "dense":
            assert r.score == r.similarity


def test_hybrid_score_is_the_documented_combination(facts: Corpus) -> None:
    query = "dark volcanic rock played by lava"
    words, dense = ({r.passage.id: r.score for r in facts.search(query, 5, mode)} for mode in ("bm25", "dense"))
    for r in facts.search(query, 5, "hybrid"):
        cosine, bm25 = dense[r.passage.id], words.get(r.passage.id, 0.0)
        expected = (1 - BM25_WEIGHT) * (cosine + 1) / (max(dense.values()) + 1) + BM25_WEIGHT * bm25 / max(words.values())
        assert r.score == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("query", ["", "   ", "who is the", "?!", "zzzzqq"])
def test_a_query_without_known_words(facts: Corpus, query: str) -> None:
    assert facts.search(query, 3, "bm25") == []
    assert len(facts.search(query, 3, "dense")) == 3
    assert facts.search(query, 3, "hybrid") == facts.search(query, 3, "dense")


def test_wrong_arguments_of_search(facts: Corpus) -> None:
    with pytest.raises(InputError, match="ask for at least 1"):
        facts.search("x", 0)
    with pytest.raises(InputError, match="retriever 'magic' is unknown; use one of dense, bm25, hybrid"):
        facts.search("x", 1, "magic")
    assert facts.search_many([], 3) == []


def test_an_empty_corpus_cannot_be_created_and_finds_nothing(library: CorpusLibrary, write: Write) -> None:
    with pytest.raises(InputError, match=r"empty\.tsv: no passage could be read; they are empty"):
        library.create("empty", [write("empty.tsv", "id\ttext\ttitle\n")])
    with pytest.raises(InputError, match=r"the first rejected: bad\.tsv, line 1: 1 column"):
        library.create("empty", [write("bad.tsv", "one column\n")])
    with pytest.raises(InputError, match="no file was given"):
        library.create("empty", [])
    assert library.list() == []
    folder = library.folder / "hollow"
    with PassageWriter(folder) as writer:
        digest = writer.finish()
    ix.IndexManifest("hashing", 64, 0, "flat", digest, "1.0", "2026-01-01").save(folder)
    with pytest.raises(NothingRetrievedError, match="'hollow' is empty"):
        library.open("hollow").search("x", 1)


def test_report_counts_every_row_and_caps_the_list(library: CorpusLibrary, write: Write) -> None:
    path = write("mixed.tsv", "".join(f"{i}\ttext {i}\tT\n" if i % 2 else f"broken {i}\n" for i in range(1000)) + "\n")
    report = library.create("mixed", [path, write("second.txt", "one more text")])
    first = report.files[0]
    assert first.read == first.blank + first.header + first.rejected + first.documents == 1001
    assert (report.rejected_total, len(report.rejected)) == (500, 200)
    assert report.passages == 501 == len(library.open("mixed"))


def test_ids_are_unique_over_files(library: CorpusLibrary, write: Write) -> None:
    report = library.create("two", [write("a.tsv", "1\tx\tT\n"), write("b.tsv", "1\ty\tT\n2\tz\tT\n")])
    assert (report.passages, *map(str, report.rejected)) == (2, "b.tsv, line 1: duplicate id '1'")


def test_a_corpus_that_an_english_encoder_cannot_read_is_found_by_words_and_warned_of(settings: Settings, write: Write) -> None:
    encoder = HashingEncoder()
    encoder.name = "minilm"
    library = CorpusLibrary(dataclasses.replace(settings, encoder="minilm"), encoder)
    texts = ("東京は日本の首都です。人口は約千四百万人です。", "大阪は日本の都市です。", "An English text.")
    files = [write(f"{name}.txt", text) for name, text in zip("abc", texts)]
    report = library.create("mixed", files)
    (warning,) = report.warnings
    assert "minilm" in warning
    assert [r.passage.id for r in library.open("mixed").search("東京の人口", 1, "bm25")] == ["a.txt"]
    assert library.create("mixed", files).warnings == report.warnings  # of a corpus that is there already, too
    assert library.create("english", files[2:]).warnings == ()


def test_an_encoding_is_reported(library: CorpusLibrary, write: Write) -> None:
    files = [write("a.txt", "Zürich".encode("cp1252")), write("b.txt", "Zürich"), write("c.txt", "é".encode() + b" \xe9")]
    report = library.create("mixed", files)
    assert [f.encoding for f in report.files] == ["cp1252", "", ""]
    assert ["a.txt" in w for w in report.warnings] == [True]
    assert [(r.file, r.unit) for r in report.rejected] == [("c.txt", "file")]
    assert [p.text for p in library.open("mixed").passages()] == ["Zürich", "Zürich"]


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "A", "a b", "x" * 65, ".hidden", "a\n", "ü"])
def test_names_that_could_leave_the_folder_are_refused(library: CorpusLibrary, facts_file: Path, name: str) -> None:
    for action in (lambda: library.create(name, [facts_file]), lambda: library.open(name), lambda: library.delete(name)):
        with pytest.raises(InputError, match="cannot be a corpus name; use 1 to 64"):
            action()


def test_unknown_corpus(library: CorpusLibrary) -> None:
    for action in (library.open, library.delete):
        with pytest.raises(NotFoundError, match="no corpus is named 'nope'"):
            action("nope")


def test_a_corpus_that_is_open_when_it_is_deleted_goes_on(library: CorpusLibrary, facts_file: Path, facts: Corpus) -> None:
    facts.warm()
    library.delete("facts")
    assert library.list() == []
    assert facts.search("maria", 1)
    library.create("facts", [facts_file])


@pytest.fixture
def elsewhere(library: CorpusLibrary, facts: Corpus, tmp_path: Path) -> Path:
    """The folder to which the corpus of facts is a link."""
    (library.folder / "facts").rename(tmp_path / "elsewhere")
    (library.folder / "facts").symlink_to(tmp_path / "elsewhere")
    return tmp_path / "elsewhere"


@pytest.mark.parametrize("whole", [True, False])
def test_a_link_to_a_corpus_is_deleted_alone(library: CorpusLibrary, facts_file: Path, elsewhere: Path, whole: bool) -> None:
    before = sorted(elsewhere.rglob("*"))
    if not whole:
        elsewhere.rename(elsewhere.with_name("moved"))  # the link leads nowhere
    library.delete("facts")
    assert library.list() == []
    assert not [p for p in library.folder.iterdir() if not p.name.startswith(".lock-")]
    assert sorted(elsewhere.rglob("*")) == (before if whole else [])
    with pytest.raises(NotFoundError):
        library.delete("facts")
    library.create("facts", [facts_file])


def test_a_link_is_replaced_by_a_corpus_of_other_files(library: CorpusLibrary, elsewhere: Path, write: Write) -> None:
    library.create("facts", [write("other.txt", "Other words.")], options=BuildOptions(replace=True))
    assert not (library.folder / "facts").is_symlink()
    assert elsewhere.is_dir()
    assert not list(library.folder.glob(".old-*"))


def test_a_deletion_that_ends_in_the_middle_says_which_half(
    library: CorpusLibrary, facts_file: Path, facts: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("core.retrieval.library.shutil.rmtree", refuse)
        with pytest.raises(StorageError, match="is deleted, but") as error:
            library.delete("facts")
    assert library.list() == []
    assert "cannot be deleted" not in str(error.value)
    library.create("facts", [facts_file])  # what was left goes now
    assert not list(library.folder.glob(".deleted-*"))


KILLED = """
import os, signal, sys
from pathlib import Path
from core.retrieval import index
from core.retrieval.library import CorpusLibrary
from core.settings import Settings
index.SHARD_TEXTS = 32
stage, at = sys.argv[3], int(sys.argv[4])
def progress(done, total, now):
    if now == stage and done >= at:
        os.kill(os.getpid(), signal.SIGKILL)
library = CorpusLibrary(Settings(home=Path(sys.argv[1]), encoder="hashing", large_corpus=int(sys.argv[5])))
library.create("many", [Path(sys.argv[2])], progress)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("large_corpus", "vectors"), [(1000, ix.VECTORS), (100, ix.HALVES)], ids=["flat", "ivfpq"])
@pytest.mark.parametrize(
    ("stage", "at", "left"), [("reading", 1, 0), ("words", 150, 0), ("encoding", 64, 64), ("indexing", 0, 150)]
)
def test_a_killed_build_is_resumed_to_the_same_vectors(
    settings: Settings, write: Write, stage: str, at: int, left: int, large_corpus: int, vectors: str
) -> None:
    library, path = CorpusLibrary(dataclasses.replace(settings, large_corpus=large_corpus)), many(write)
    argv = [sys.executable, "-c", KILLED, str(settings.home), str(path), stage, str(at), str(large_corpus)]
    killed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    by_words = stage != "reading"
    assert ("many" in library.names()) == by_words
    assert [(i.name, i.complete, i.by_words_only) for i in library.list()] == [("many", False, by_words)]
    if not by_words:
        with pytest.raises(NotFoundError, match=r"'many' is not complete.*give the same files again"):
            library.open("many")
    report = library.create("many", [path])
    assert (report.resumed_at, report.passages) == (left, 150)
    assert not list(library.folder.glob(".building-*"))
    library.create("whole", [path])
    resumed, whole = ((library.folder / name / vectors).read_bytes() for name in ("many", "whole"))
    assert resumed == whole
    assert library.open("many").search("topic 3", 4) == library.open("whole").search("topic 3", 4)


def test_a_build_is_searched_by_words_until_its_vectors_are_there(settings: Settings, facts_file: Path) -> None:
    engine, corpora = Engine(settings), []

    def meanwhile(done: int, total: int, stage: str) -> None:
        if stage == "encoding" and not corpora:
            corpora.append(engine.corpus("facts"))

    engine.library.create("facts", [facts_file], meanwhile)
    (corpus,) = corpora
    for mode in "bm25", "hybrid":  # its folder has another name by now
        (first, *_) = corpus.search("Who played Maria in the 2021 remake?", 3, mode)
        assert (first.passage.id, first.rank, first.similarity) == ("p2", 1, None)
    assert corpus.search("zebra", 3) == []
    assert corpus.store.get("p5").title == "Zürich"
    with pytest.raises(NotFoundError, match="search by words"):
        corpus.search("Maria", 3, "dense")
    assert not engine.corpus("facts").by_words_only


def test_two_builds_of_one_corpus(library: CorpusLibrary, facts_file: Path) -> None:
    other = CorpusLibrary(library.settings)
    stages: list[str] = []

    def meanwhile(done: int, total: int, stage: str) -> None:
        stages.append(stage)
        if stage == "encoding":
            for action in (lambda: other.create("facts", [facts_file]), lambda: other.delete("facts")):
                with pytest.raises(ConflictError, match="'facts' is being built or deleted by another process"):
                    action()

    library.create("facts", [facts_file], meanwhile)
    assert "encoding" in stages
    assert len(other.open("facts")) == 5


def test_a_complete_corpus_is_found_without_the_lock(library: CorpusLibrary, facts_file: Path, facts: Corpus) -> None:
    with CorpusLibrary(library.settings)._locked("facts"):
        assert library.create("facts", [facts_file]).already_built


def test_creating_again(library: CorpusLibrary, facts_file: Path, facts: Corpus, write: Write) -> None:
    assert library.create("facts", [facts_file]).already_built
    with pytest.raises(InputError, match=r"'facts' exists and holds facts\.tsv; delete it first"):
        library.create("facts", [many(write)])
    assert len(library.open("facts")) == 5
    with pytest.raises(InputError, match="no passage could be read"):
        library.create("facts", [write("bad.tsv", "x\n")], options=BuildOptions(replace=True))
    assert len(library.open("facts")) == 5
    assert library.create("facts", [many(write)], options=BuildOptions(replace=True)).passages == 150
    assert len(library.open("facts")) == 150


def test_a_kill_between_old_and_new_keeps_one_of_them(library: CorpusLibrary, facts: Corpus, write: Write) -> None:
    (library.folder / "facts").rename(library.folder / ".old-facts")
    assert len(library.open("facts")) == 5
    (library.folder / "facts").rename(library.folder / ".old-facts")
    library.create("facts", [many(write)], options=BuildOptions(replace=True))
    assert len(library.open("facts")) == 150
    assert not list(library.folder.glob(".old-*"))


def test_another_encoder_is_mended_by_building_again(library: CorpusLibrary, facts_file: Path, facts: Corpus) -> None:
    path = library.folder / "facts" / ix.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "encoder": "minilm"}))
    with pytest.raises(IndexMismatchError, match=r"encoder: the index has minilm.*python -m core index .*--name facts"):
        library.open("facts")
    assert not library.create("facts", [facts_file]).already_built
    assert library.open("facts").search("maria", 1)


@pytest.mark.parametrize("name", ["passages.json", "passages.sqlite", ix.VECTORS, "words/meta.json"])
def test_a_lost_file_is_mended_by_building_again(library: CorpusLibrary, facts_file: Path, facts: Corpus, name: str) -> None:
    (library.folder / "facts" / name).unlink()
    with pytest.raises(IndexMismatchError):
        library.open("facts").search("maria", 1)
    library.delete("facts")
    library.create("facts", [facts_file])
    assert library.open("facts").search("maria", 1)


def test_a_damaged_corpus_does_not_hide_the_others(library: CorpusLibrary, facts_file: Path) -> None:
    library.create("good", [facts_file])
    library.create("bad", [facts_file])
    (library.folder / "bad" / ix.MANIFEST).write_text("{")
    assert [(i.name, i.complete) for i in library.list()] == [("bad", False), ("good", True)]


def test_starter_is_built_on_first_use_and_again_when_its_file_changes(
    settings: Settings, facts_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    passages = facts_file.rename(tmp_path / "passages.tsv")
    monkeypatch.setattr(Settings, "starter_dir", tmp_path)
    library = CorpusLibrary(settings)
    assert library.names() == ["starter"]
    library.open("starter")
    infos = library.list()
    CorpusLibrary(settings).open("starter")
    assert library.list() == infos
    with passages.open("a") as f:
        f.write("p6\tA sixth passage.\tSix\n")
    assert len(library.open("starter")) == 6
    # an index kind from the settings applies at once, since the file is at hand
    hnsw = CorpusLibrary(dataclasses.replace(settings, index_kind="hnsw"))
    assert hnsw.open("starter").manifest.kind == "hnsw"


def test_upload_limits_hold_by_default(settings: Settings, write: Write) -> None:
    library = CorpusLibrary(dataclasses.replace(settings, max_upload_lines=10))
    with pytest.raises(InputError, match="AMBISCOPE_MAX_UPLOAD_LINES"):
        library.create("many", [many(write)])
    assert library.list() == []
    assert library.create("many", [many(write)], options=BuildOptions(limits=Limits.for_own_files(settings))).passages == 150


DAMAGED = {
    "cut.tsv.gz": gzip.compress(b"".join(b"d%d\ttext %d\tT\n" % (i, i) for i in range(5000)))[:-2000],
    "no.jsonl.gz": b"this is no gzip",
    "no.pdf": b"%PDF-1.7 and then nothing",
    "gone.txt": None,  # a link to nowhere
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_listed_like_a_bad_line(library: CorpusLibrary, write: Write, facts_file: Path, name: str) -> None:
    content = DAMAGED[name]
    last = write("last.tsv", "d1\tthe last one\tT\n")
    bad = last.with_name(name)
    bad.symlink_to("nowhere") if content is None else write(name, content)
    files = [facts_file, bad, last]
    report = library.create("mixed", files)
    (row,) = report.rejected
    assert (row.file, row.unit, report.rejected_total) == (name, "file", 1)
    assert str(row).startswith(f"{name}: the file is skipped: ")
    assert [f.passages for f in report.files] == [5, 0, 1]
    corpus = library.open("mixed")
    corpus.store.verify()
    assert [p.id for p in corpus.passages()] == ["p1", "p2", "p3", "p4", "p5", "d1"]  # "d1" of the damaged file is not taken
    assert corpus.store.get("d1").text == "the last one"
    assert library.create("mixed", files).already_built
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        library.create("alone", [bad])
    with pytest.raises(InputError, match=r"no passage could be read; the first rejected"):
        library.create("both", [bad, write("other.pdf", DAMAGED["no.pdf"])])


def test_a_home_that_cannot_be_written(tmp_path: Path, facts_file: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StorageError, match="cannot be written"):
        CorpusLibrary(Settings(home=tmp_path / "file", encoder="hashing")).create("x", [facts_file])
