"""Corpora as people have them: BEIR folders, data sets, Parquet; vectors computed elsewhere; and what is wrong with each."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import FormatError, InputError
from core.models.encoders.sentence_encoder import HashingEncoder, passage_text
from core.retrieval.library import BuildOptions, Corpus, CorpusLibrary
from core.retrieval.readers import read_passages
from core.retrieval.readers.folders import files_of
from core.retrieval.readers.lines import DEFAULT_COLUMNS, Columns, Limits, Rejected, Source
from core.retrieval.vectors import VectorFiles
from core.retrieval.vectors import files_of as vector_files
from core.settings import Settings
from core.types import Passage

PASSAGES = [
    Passage(f"p{i}", f"Thing {i}", f"the thing number {i} about subject {i % 7} and place {i * i % 11}") for i in range(60)
]
VECTORS = HashingEncoder().encode([passage_text(p) for p in PASSAGES])
IDS = [p.id for p in PASSAGES]
Tree = Callable[[str, dict[str, str]], Path]


def table(**renamed: str) -> pa.Table:
    columns = {"id": IDS, "text": [p.text for p in PASSAGES], "title": [p.title for p in PASSAGES]}
    return pa.table({renamed.get(name, name): values for name, values in columns.items()})


def saved_set(folder: Path, cut: int = 0) -> Path:
    """As `datasets`' save_to_disk writes it: Arrow streams, and a state that lists them."""
    folder.mkdir(parents=True)
    names = [f"data-0000{n}-of-00002.arrow" for n in range(2)]
    for name, part in zip(names, (table().slice(0, 25), table().slice(25)), strict=True):
        with pa.OSFile(str(folder / name), "wb") as file, pa.ipc.new_stream(file, part.schema) as stream:
            stream.write_table(part, max_chunksize=10)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": n} for n in names], "_fingerprint": "x"}))
    (folder / "dataset_info.json").write_text("{}")
    if cut:
        os.truncate(folder / names[1], (folder / names[1]).stat().st_size - cut)
    return folder


def beir(folder: Path) -> Path:
    (folder / "qrels").mkdir(parents=True)
    rows = ({"_id": p.id, "title": p.title, "text": p.text, "metadata": {}} for p in PASSAGES)
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "not a passage"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tp1\t1\n")
    return folder


def parquet(folder: Path, **renamed: str) -> Path:
    folder.mkdir(parents=True)
    for number in (0, 1):
        pq.write_table(table(**renamed).slice(30 * number, 30), folder / f"train-{number}.parquet", row_group_size=7)
    (folder / "README.md").write_text("# Not a passage\nA card of the data set.")
    return folder


def read(path: Path, limits: Limits, columns: Columns = DEFAULT_COLUMNS) -> tuple[list[Passage], list[Rejected]]:
    rejected: list[Rejected] = []
    files = (read_passages(Source(file.path, limits, rejected.append, columns=columns)) for file in files_of([path]))
    return list(chain.from_iterable(files)), rejected


@pytest.mark.parametrize("make", [beir, saved_set, parquet])
def test_a_folder_gives_its_passages(tmp_path: Path, limits: Limits, make: Callable[[Path], Path]) -> None:
    assert read(make(tmp_path / "data"), limits) == (PASSAGES, [])


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path, tree: Tree) -> None:
    tree("", {"a/x.md": "# A\nText", "b/x.md": "# B\nText", "b/c/y.md": "# C\nText"})
    folders, files = [tmp_path / "a", tmp_path / "b"], [tmp_path / "a" / "x.md", tmp_path / "b" / "x.md"]
    assert [f.name for f in files_of(folders)] == ["a/x.md", "c/y.md", "b/x.md"]
    assert [f.name for f in files_of([*files, files[0]])] == ["a/x.md", "b/x.md"]
    assert [f.name for f in files_of([tmp_path / "b"])] == ["c/y.md", "x.md"]


def test_a_saved_data_set_of_one_split_is_read_and_of_several_asks_which(tmp_path: Path, limits: Limits) -> None:
    saved_set(tmp_path / "all" / "train")
    (tmp_path / "all" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    assert read(tmp_path / "all", limits) == (PASSAGES, [])
    saved_set(tmp_path / "all" / "test")
    with pytest.raises(InputError, match=r"has these splits: test, train; give the folder of one, such as .*all/train"):
        files_of([tmp_path / "all"])


def test_columns_are_named(tmp_path: Path, limits: Limits) -> None:
    folder = parquet(tmp_path / "data", text="paragraph", title="heading")
    with pytest.raises(FormatError, match=r"train-0\.parquet: no column text, .* id, paragraph, heading: .* --text-column"):
        read(folder, limits)
    assert read(folder, limits, Columns(text=("paragraph",), title=("heading",))) == (PASSAGES, [])


def test_shards_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        (tmp_path / f"shard_{number}.npy").touch()
    assert [p.name for p in vector_files([tmp_path / "shard_*.npy"])] == ["shard_1.npy", "shard_9.npy", "shard_10.npy"]


@pytest.mark.parametrize("cut", [1, 8, 200])
def test_arrow_cut_short(tmp_path: Path, limits: Limits, cut: int) -> None:
    with pytest.raises(FormatError, match=r"data-00001-of-00002\.arrow: not an Arrow file, or .* cut short; copy it again"):
        read(saved_set(tmp_path / "data", cut=cut), limits)


def test_parquet_cut_short_and_rows_without_text(tmp_path: Path, limits: Limits) -> None:
    folder = parquet(tmp_path / "data")
    os.truncate(folder / "train-1.parquet", 400)
    with pytest.raises(FormatError, match=r"train-1\.parquet: not a complete Parquet file .*; copy it again"):
        read(folder, limits)
    pq.write_table(pa.table({"id": [1, 2], "text": [None, "words"]}), tmp_path / "one.parquet")
    accepted, rejected = read(tmp_path / "one.parquet", limits)
    assert [p.id for p in accepted] == ["2"]
    assert [(r.file, r.number, r.unit) for r in rejected] == [("one.parquet", 1, "row")]


def test_a_file_of_a_saved_set_is_missing(tmp_path: Path) -> None:
    folder = saved_set(tmp_path / "data")
    (folder / "data-00000-of-00002.arrow").unlink()
    with pytest.raises(InputError, match=r"data-00000-of-00002\.arrow of state\.json is missing; copy the folder again"):
        files_of([folder])


# ---------------------------------------------------------------- vectors


@pytest.fixture
def passages(write: Callable[[str, str], Path]) -> Path:
    return write("things.tsv", "id\ttext\ttitle\n" + "".join(f"{p.id}\t{p.text}\t{p.title}\n" for p in PASSAGES))


@pytest.fixture
def numbered(passages: Path) -> Path:
    """The same with whole numbers as ids."""
    passages.write_text(re.sub(r"(?m)^p", "", passages.read_text()))
    return passages


class Questions(HashingEncoder):
    """Encodes questions, and the few passages that are compared; more would mean that the given vectors are not used."""

    def encode(self, texts: Any, kind: Any = "passage") -> Any:
        assert len(texts) <= 16
        return super().encode(texts, kind)


def built(home: Path, passages: Path, *files: Path, **options: Any) -> Corpus:
    library = CorpusLibrary(Settings(home=home, encoder="hashing", device="cpu", **options.pop("settings", {})), Questions())
    vectors = VectorFiles(vector_files(files), **options)
    report = library.create("things", [passages], options=BuildOptions(vectors=vectors))
    assert not report.already_built
    assert library.create("things", [passages], options=BuildOptions(vectors=vectors)).already_built
    return library.open("things")


def npy(folder: Path, vectors: Any = VECTORS) -> Path:
    np.save(folder / "v.npy", vectors)
    return folder / "v.npy"


def shards(folder: Path) -> list[Path]:
    paths = [folder / f"v_{number}.npy" for number in range(3)]
    for path, part in zip(paths, np.split(VECTORS, [20, 40]), strict=True):
        np.save(path, part.astype(np.float16))
    return paths


def flat_index(folder: Path) -> Path:
    index = faiss.IndexFlatIP(64)
    index.add(VECTORS)
    faiss.write_index(index, str(folder / "v.faiss"))
    return folder / "v.faiss"


def numbered_index(folder: Path, rows: slice = slice(None)) -> Path:
    """With the ids of some rows, in another order."""
    order = np.random.default_rng(0).permutation(60)[rows]
    index = faiss.IndexIDMap(faiss.IndexFlatIP(64))
    index.add_with_ids(VECTORS[order], order)
    faiss.write_index(index, str(folder / "v.faiss"))
    return folder / "v.faiss"


@pytest.mark.parametrize("make", [npy, shards, flat_index, numbered_index])
def test_vectors_of_every_kind_are_those_of_the_corpus(tmp_path: Path, numbered: Path, make: Callable[[Path], Any]) -> None:
    files = make(tmp_path)
    corpus = built(tmp_path / "home", numbered, *(files if isinstance(files, list) else [files]))
    assert np.allclose(corpus.vectors, VECTORS, atol=1e-3)
    assert corpus.search("thing number 33", 1, "dense")[0].passage.id == "33"


def one_value(column: str, value: Any, rows: int) -> Any:
    """A table of one value, which Parquet stores once."""
    return pa.table({column: pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([value]))})


def test_a_small_parquet_file_does_not_take_all_memory(tmp_path: Path, limits: Limits) -> None:
    """60 MB in one page, 20 million rows, and 8 GB of one long text: the first two are refused before they are unpacked, the last is read
    few rows at a time."""
    path = tmp_path / "small.parquet"
    for table, options in (
        (pa.table({"text": ["word " * 12_000_000]}), {"use_dictionary": False}),
        (one_value("text", "some words", 20_000_000), {}),
    ):
        pq.write_table(table, path, compression="zstd", **options)
        assert path.stat().st_size < 100_000
        with pytest.raises(FormatError, match=r"^small\.parquet: \d+ bytes unpack to \d+ MB"):
            read(path, limits)
    pq.write_table(one_value("text", "word " * 160_000, 10_000), path, compression="zstd")
    before = pa.default_memory_pool().max_memory()
    wide = replace(limits, max_line_chars=1_000_000)
    assert next(read_passages(Source(path, wide, lambda row: None))).text.startswith("word word")
    assert pa.default_memory_pool().max_memory() - before < 200_000_000


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        (([{"a": "x"}],), ("text",), r"the column 'text' is nested \(struct<a: .*\)"),
        ((["x"], [["T"]]), ("text", "title"), r"the column 'title' is nested \(list<"),
        ((["x"], [{"a": 1}]), ("text", "id"), r"the column 'id' is nested"),
        ((["x"], ["y"]), ("text", "text"), r"the column 'text' is there 2 times; keep one"),
        ((["x"], ["y"], ["z"]), ("text", "id", "id"), r"the column 'id' is there 2 times; keep one"),
    ],
)
def test_nested_and_repeated_columns_are_refused(
    tmp_path: Path, limits: Limits, suffix: str, columns: tuple[Any, ...], names: tuple[str, ...], message: str
) -> None:
    table, path = pa.Table.from_arrays([pa.array(c) for c in columns], names=list(names)), tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_stream(path, table.schema) as out:
            out.write_table(table)
    with pytest.raises(FormatError, match=rf"^a\.{suffix}: {message}"):
        read(path, limits)


def test_a_text_that_is_not_utf8_is_rejected_alone(tmp_path: Path, limits: Limits) -> None:
    wrong = pa.array([b"one", b"\xff", b"three"]).view(pa.string())
    pq.write_table(pa.table({"text": wrong}), tmp_path / "a.parquet")
    accepted, rejected = read(tmp_path / "a.parquet", limits)
    assert [p.text for p in accepted] == ["one", "three"]
    assert [row.number for row in rejected] == [2]


def test_a_wrong_title_is_named_as_the_file_names_it(tmp_path: Path, limits: Limits) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "Words.", "headline": [3]}\n{"text": "Words.", "docid": 1.5}\n')
    accepted, rejected = read(tmp_path / "a.jsonl", limits, Columns(title=("headline",)))
    assert accepted == []
    expected = ["'headline' is a list; expected text", "'docid' is a float; expected text or a whole number"]
    assert [r.reason for r in rejected] == [f"field {reason}" for reason in expected]


@pytest.mark.parametrize("rows", [7, 8192])  # of a block
def test_ids_beside_the_vectors(tmp_path: Path, passages: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr("core.retrieval.vectors.BLOCK_ROWS", rows)
    for file, text in (("ids.txt", "".join(f"{i}\n" for i in reversed(IDS))), ("ids.json", json.dumps(IDS[::-1]))):
        (tmp_path / file).write_text(text)
        corpus = built(tmp_path / f"of-{file}", passages, npy(tmp_path, VECTORS[::-1]), ids=tmp_path / file)
        assert np.allclose(corpus.vectors, VECTORS)


def test_a_row_with_vectors_is_a_passage_however_long(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps({"id": "a", "text": "word " * 300}) + "\n" + json.dumps({"id": "b", "text": "other"}) + "\n")
    corpus = built(tmp_path / "home", path, npy(tmp_path, VECTORS[:2]))
    assert [len(p.text.split()) for p in corpus.store] == [300, 1]


@pytest.mark.parametrize("kind", ["ivfpq", "hnsw"])
def test_a_finished_index_is_kept(tmp_path: Path, kind: str) -> None:
    many = [f"thing number {i} about subject {i % 7} in place {i * i % 101}" for i in range(300)]
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps({"id": str(i), "text": text}) + "\n" for i, text in enumerate(many)))
    vectors = HashingEncoder().encode(many)
    index: Any = faiss.IndexHNSWFlat(64, 16, faiss.METRIC_INNER_PRODUCT)
    if kind == "ivfpq":
        index = faiss.IndexIVFPQ(faiss.IndexFlatIP(64), 64, 4, 16, 8, faiss.METRIC_INNER_PRODUCT)
        index.train(vectors)
    index.add(vectors)
    faiss.write_index(index, str(tmp_path / "v.faiss"))
    corpus = built(tmp_path / "home", path, tmp_path / "v.faiss")
    assert (corpus.manifest.kind, corpus.manifest.given) == (kind, 1)
    assert (tmp_path / "home/corpora/things/index.faiss").read_bytes() == (tmp_path / "v.faiss").read_bytes()
    assert "123" in [result.passage.id for result in corpus.search(many[123], 5, "dense")]


# ---------------------------------------------------------------- what is wrong


def broken(row: int, value: float) -> Any:
    vectors = VECTORS.copy()
    vectors[row] = value
    return vectors


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (broken(41, np.nan), r"v\.npy, row 42: the vector has a number that is NaN or infinite; compute this row again"),
        (broken(0, np.inf), r"v\.npy, row 1: the vector has a number that is NaN or infinite"),
        (broken(7, 0), r"v\.npy, row 8: the vector is zero"),
        (VECTORS[:, :32], r"v\.npy: vectors of 32 dimensions, and the encoder 'hashing' .* gives 64; set AMBISCOPE_ENCODER"),
        (VECTORS[:58], r"v\.npy: 58 vectors for 60 passages; 2 passages without one, first 'p58', 'p59': is a shard missing\?"),
        (np.concatenate([VECTORS, VECTORS]), r"v\.npy, row 1: more vectors than the 60 passages; rows without ids"),
        (VECTORS[::-1], r"not the vectors of these passages by the encoder 'hashing': of 16 .* check their order"),
        (np.random.default_rng(0).standard_normal((60, 64)), "not the vectors of these passages by the encoder 'hashing'"),
        (VECTORS.astype(np.int32), r"v\.npy: an array of the shape \(60, 64\) and the type int32; expected a row of floats"),
        (VECTORS[0], r"an array of the shape \(64,\)"),
    ],
)
def test_wrong_vectors(tmp_path: Path, passages: Path, vectors: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        built(tmp_path / "home", passages, npy(tmp_path, vectors))
    assert CorpusLibrary(Settings(home=tmp_path / "home", encoder="hashing")).names() == ["starter"]
    rows = tmp_path / "home/corpora/.building-things/passages.sqlite"
    before = rows.stat().st_ino
    corpus = built(tmp_path / "home", passages, npy(tmp_path))  # right ones go on from there
    assert np.allclose(corpus.vectors, VECTORS, atol=1e-6)
    assert (tmp_path / "home/corpora/things/passages.sqlite").stat().st_ino == before


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([*IDS[:59], "p999"], r"v\.npy, row 60: no passage has the id 'p999'; give the passages that these .* were made of"),
        ([*IDS[:59], "p3"], r"v\.npy, row 60: id 'p3' is there twice; leave one of its vectors out"),
        (IDS[:50], r"ids\.txt has fewer ids than the vectors have rows: it ends within v\.npy; give one id a row"),
        ([*IDS, "p60"], r"ids\.txt has more ids than the 60 rows of the vectors"),
    ],
)
def test_wrong_ids(tmp_path: Path, passages: Path, ids: list[str], message: str) -> None:
    (tmp_path / "ids.txt").write_text("".join(f"{i}\n" for i in ids))
    with pytest.raises(InputError, match=message):
        built(tmp_path / "home", passages, npy(tmp_path), ids=tmp_path / "ids.txt")


def test_files_with_and_without_ids(tmp_path: Path, numbered: Path) -> None:
    np.save(tmp_path / "w.npy", VECTORS[:30])
    with pytest.raises(InputError, match=r"w\.npy has no ids, and files before it have; give the ids of all with --ids"):
        built(tmp_path / "home", numbered, numbered_index(tmp_path, slice(30)), tmp_path / "w.npy")


@pytest.mark.parametrize("make", [npy, flat_index])
def test_a_shard_cut_short(tmp_path: Path, passages: Path, make: Callable[[Path], Path]) -> None:
    path = make(tmp_path)
    os.truncate(path, path.stat().st_size * 2 // 3)
    with pytest.raises(FormatError, match=rf"{path.name}: not .*(copy it again|cut short)"):
        built(tmp_path / "home", passages, path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x.parquet", r"x\.parquet: vectors are read from \.npy and \.faiss files; .* numpy\.save"),
        ("none.npy", r"none\.npy: there is no such file"),
        ("none_*.npy", "no file has such a name"),
    ],
)
def test_files_that_hold_no_vectors(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "x.parquet").write_text("words")
    with pytest.raises(InputError, match=message):
        vector_files([tmp_path / name])
