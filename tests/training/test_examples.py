"""Training files: every layout, and what happens to a line that does not have it."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.datasets.excluded import excluded_questions
from core.errors import FormatError
from core.retrieval.readers import read_passages
from core.retrieval.readers.lines import Limits, Source
from core.settings import Settings
from core.text import find_spans
from core.training.answerer import sample_item
from core.training.data import mixtures
from core.training.data.examples import (
    MultiExample,
    ReadingExample,
    crop,
    read_annotated,
    read_multi,
    read_passages_tsv,
    read_reading,
)
from core.training.data.mining import Miner
from core.training.data.statements import insert, statement

Jsonl = Callable[..., Path]
READING = {"question": "Who?", "title": "T", "passage": "Ada  wrote it.", "answers": ["Ada", "Bob"], "source": "made"}
MULTI = {
    "question": "Which colour?",
    "passages": [{"title": "A", "text": "Red here."}, {"text": "Blue there."}],
    "answers": [["Red", "crimson"], ["Blue"], ["red"], []],
    "negatives": ["green", ["pink", "rose"]],
    "wrong_answers": None,
}
SINGLE = {"type": "singleAnswer", "answer": ["x"]}


@pytest.mark.parametrize("name", ["reading.jsonl", "reading.jsonl.gz"])
def test_reading_rows(jsonl: Jsonl, name: str) -> None:
    nowhere = {**READING, "answers": ["Bob"]}
    joined = {**READING, "passage": "Ada [PAR] Bob"}
    (only,) = read_reading(jsonl(name, READING, "", nowhere, joined))
    assert (only.passage, only.answers, only.source) == ("Ada wrote it.", ("Ada",), "made")


def test_multi_rows(jsonl: Jsonl) -> None:
    (only,) = read_multi(jsonl("m.jsonl.gz", MULTI))
    assert only == MultiExample(
        "Which colour?",
        (("A", "Red here."), ("", "Blue there.")),
        (("Red", "crimson"), ("Blue",)),  # "red" again is the same answer
        "m.jsonl",
        bad=("green", "pink"),
    )


@pytest.mark.parametrize(
    ("read", "row", "message"),
    [
        (read_reading, "{", "line 2: not JSON"),
        (read_reading, {**READING, "passage": None}, "line 2, field 'passage': expected text, found nothing"),
        (read_reading, {**READING, "answers": "Ada"}, "line 2, field 'answers': expected a list"),
        (read_reading, {**READING, "answers": ["Ada", 3]}, "line 2, field 'answers[1]': expected str, found 3"),
        (read_multi, {**MULTI, "passages": [{"title": "A"}]}, "line 2, field 'passages[0].text': expected text"),
        (read_multi, {**MULTI, "answers": ["Red"]}, "line 2, field 'answers[0]': expected list, found 'Red'"),
        (read_multi, {**MULTI, "negatives": [3]}, "line 2, field 'negatives[0]': expected text"),
        (read_multi, {"question": "q"}, "line 2, field 'passages'"),
    ],
)
def test_bad_lines_are_named(jsonl: Jsonl, read: Callable[[Path], Any], row: Any, message: str) -> None:
    path = jsonl("bad.jsonl", READING if read is read_reading else MULTI, row)
    with pytest.raises(FormatError, match=rf"bad\.jsonl.*{re.escape(message)}"):
        list(read(path))


def test_passage_files(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_text("id\ttext\ttitle\np1\tSome text.\tA title\n")
    assert read_passages_tsv(path) == {"p1": ("A title", "Some text.")}
    path.write_text('id\ttext\ttitle\r\np1\t"Help!" is an album\tA\r\np2\t"Not closed\tB\r\np3\t"both ""of"" it"\tC\r\n')
    read = [(p.id, (p.title, p.text)) for p in read_passages(Source(path, Limits.for_own_files(Settings()), lambda row: None))]
    assert read_passages_tsv(path) == dict(read)  # what is trained on is what is searched
    assert len(read) == 3
    for content, message in (
        ("id\ttitle\n", "line 1: the first line"),
        ("", "line 1"),
        ("id\ttext\ttitle\np1\tx\n", "line 2: 2 columns"),
    ):
        path.write_text(content)
        with pytest.raises(FormatError, match=message):
            read_passages_tsv(path)


def annotated(folder: Path, count: int = 60) -> Path:
    """A folder in the layout of data/starter: every question has its own two passages."""
    folder.mkdir(parents=True)
    lines, rows = ["id\ttext\ttitle"], []
    for i in range(count):
        for part in "ab":
            lines.append(f"p{i}{part}\tThing number {i} of sort {part} has the value{part}{i} today.\tThing {i} ({part})")
        pairs = [{"question": f"What is thing {i} {x}?", "answer": [f"value{x}{i}"], "passages": [f"p{i}{x}"]} for x in "ab"]
        many = {"type": "multipleQAs", "qaPairs": pairs}
        one = {"type": "singleAnswer", "answer": [f"valuea{i}"], "passages": [f"p{i}a"]}
        rows.append({"id": str(i), "question": f"What is thing {i}?", "annotations": [many if i % 3 else one]})
    (folder / "passages.tsv").write_text("\n".join(lines) + "\n")
    (folder / "questions.json").write_text(json.dumps(rows))
    return folder


def test_annotated_folders(tmp_path: Path) -> None:
    examples, passages = read_annotated(annotated(tmp_path / "mine", 4))
    assert len(passages) == 8
    assert [len(e.gold) for e in examples] == [1, 2, 2, 1]
    second = examples[1]
    assert (second.passages, second.source) == ((passages["p1a"], passages["p1b"]), "mine")
    assert second.extra["supporting"] == ["p1a", "p1b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("{}", "must be a list"),
        ('[{"question": "q"}]', "question 1 lacks 'annotations'"),
        ('[{"question": "q", "annotations": []}]', "question 1"),
        (json.dumps([{"question": "q", "annotations": [{**SINGLE, "passages": ["p9"]}]}]), "question 1 lacks 'p9'"),
        ("[3]", "question 1"),
    ],
)
def test_bad_annotated_folders(tmp_path: Path, content: str, message: str) -> None:
    folder = annotated(tmp_path / "mine", 2)
    (folder / "questions.json").write_text(content)
    with pytest.raises(FormatError, match=rf"questions\.json.*{message}"):
        read_annotated(folder)


def test_a_packed_folder_is_read_as_a_plain_one(tmp_path: Path) -> None:
    plain, packed = (annotated(tmp_path / kind / "mine", 5) for kind in ("plain", "packed"))
    for file in list(packed.iterdir()):
        (packed / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert read_annotated(packed) == read_annotated(plain)
    (packed / "questions.json.gz").write_bytes(b"no gzip")
    with pytest.raises(FormatError, match=r"questions\.json\.gz.*gzip"):
        read_annotated(packed)


def test_whole_blocks_are_held_out(tmp_path: Path) -> None:
    train, dev = mixtures.annotated_examples(annotated(tmp_path / "mine", 90), held_out=0.2)
    assert (len(train), len(dev)) == (75, 15)
    for texts in (lambda e: [e.question], lambda e: e.extra["supporting"]):
        assert not {text for e in train for text in texts(e)} & {text for e in dev for text in texts(e)}
    assert all(len(e.passages) > len(e.extra["supporting"]) for e in train)  # context was mined
    assert all(len(set(e.extra["context"])) == len(e.passages) for e in train)


def test_questions_that_name_their_split_keep_it(tmp_path: Path) -> None:
    folder = annotated(tmp_path / "mine", 40)
    rows = json.loads((folder / "questions.json").read_text())
    rows = [{**row, "split": "held out" if i in (3, 17) else "train"} for i, row in enumerate(rows)]
    (folder / "questions.json").write_text(json.dumps(rows))
    train, dev = mixtures.annotated_examples(folder, held_out=0.2)
    assert [e.question for e in dev] == [rows[3]["question"], rows[17]["question"]]
    assert len(train) == len(rows) - 2
    assert len(mixtures.annotated_examples(folder, held_out=0.0)[0]) == len(rows)
    rows[5]["split"] = "test"
    del rows[7]["split"]
    for wrong in (rows[:6], rows[6:]):
        (folder / "questions.json").write_text(json.dumps(wrong))
        with pytest.raises(FormatError, match="as its split: each has 'train' or 'held out'"):
            mixtures.annotated_examples(folder, held_out=0.2)


def test_a_clarified_question_is_supported_by_its_own_passages(tmp_path: Path) -> None:
    train, _ = mixtures.annotated_examples(annotated(tmp_path / "mine", 30), held_out=0.0)
    clarified = mixtures.clarified_examples(train)
    assert len(clarified) == 40
    for e in clarified:
        number, sort = e.question.rstrip("?").split()[-2:]
        assert e.extra["supporting"] == [f"p{number}{sort}"]
        assert e.extra["context"][0] == f"p{number}{sort}"
        assert e.passages[0][0] == f"Thing {number} ({sort})"
        assert len(set(e.passages)) == len(e.passages) == len(e.extra["context"])
    # an answer of one word that stands elsewhere too counts in its own passage only
    two = (("A", "Three in the north."), ("B", "Three in the south."))
    extra = {"questions": ["north?", "south?"], "supporting": ["a", "b"], "supporting_of": [["a"], ["b"]]}
    _, south = mixtures.clarified_examples([MultiExample("q", two, (("three", "3"), ("three",)), "x", extra=extra)])
    for seed in range(10):
        item = sample_item(south, 2, 0.0, random.Random(seed))
        ((_, where),) = item.targets
        assert [item.passages[i][0] for i in where or ()] == ["B"]
    plain = mixtures.clarified_examples([MultiExample("q", two, (("x",), ("y",)), "x", extra={"questions": ["1", "2"]})])
    assert all("supporting" not in e.extra and e.passages == two for e in plain)


def test_pairs_of_ambignq(tmp_path: Path) -> None:
    pairs = [{"question": f"Who played it in {y}?|alias", "answer": [f"Actor {y}"]} for y in (1961, 2021)]
    rows = [
        {"question": "Who played it?", "annotations": [SINGLE, {"type": "multipleQAs", "qaPairs": pairs}]},
        {"question": "One?", "annotations": [SINGLE]},
    ]
    path = tmp_path / "ambig.json"
    path.write_text(json.dumps(rows))
    assert mixtures.load_pairs(path) == [
        ("Who played it?", [("Who played it in 1961?", ("Actor 1961",)), ("Who played it in 2021?", ("Actor 2021",))])
    ]
    miner = Miner([(f"T{i}", f"Who played it number {i} said a long passage about playing.") for i in range(30)])
    (example,) = mixtures.statement_examples(path, miner, context=3)
    assert set(example.gold) == {("Actor 1961",), ("Actor 2021",)}
    assert all(any(find_spans(text, names[0]) for _, text in example.passages) for names in example.gold)
    for content in ("{", '[{"question": "q"}]', '[{"annotations": [{"type": "multipleQAs"}]}]', "[3]"):
        path.write_text(content)
        with pytest.raises(FormatError, match=r"ambig\.json"):
            mixtures.load_pairs(path)


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("Who played Corie on Broadway?", "Elizabeth Ashley", {"Elizabeth Ashley played Corie on Broadway."}),
        ("What is the capital of Tuva?", "Kyzyl", {"The capital of Tuva is Kyzyl.", "Kyzyl is the capital of Tuva."}),
        ("Tell me a story", "no", {None}),
        ("Who", "no", {"no ."}),
    ],
)
def test_statements(question: str, answer: str, expected: set[str | None]) -> None:
    assert {statement(question, answer, random.Random(i)) for i in range(20)} <= expected


def test_a_statement_is_never_cut() -> None:
    passage = " ".join(f"Sentence {i} has five words." for i in range(40))
    texts = [insert("The ANSWER stands here.", passage, random.Random(seed), size=50) for seed in range(10)]
    assert all("The ANSWER stands here." in text and len(text.split()) <= 50 for text in texts)


def test_crop_keeps_an_answer() -> None:
    passage = " ".join(f"w{i}" for i in range(300)) + " Ada Lovelace " + " ".join(f"v{i}" for i in range(300))
    texts = [crop(passage, ("Ada Lovelace",), 100, random.Random(seed)) for seed in range(20)]
    assert {(len(text.split()), "Ada Lovelace" in text) for text in texts} == {(100, True)}
    assert crop("short one", ("one",), 100, random.Random(0)) == "short one"
    assert len(crop(passage, (), 100, random.Random(0)).split()) == 100


def test_mining(tmp_path: Path) -> None:
    passages = [
        ("Oslo", "Oslo is the capital of Norway."),
        ("Bergen", "Bergen lies on the coast of Norway."),
        ("Tea", "Tea is a drink."),
    ]
    miner = Miner(passages, tmp_path)
    question = "What is the capital of Norway?"
    neighbours = miner.neighbours([question], 5)
    assert neighbours.tolist() == [[0, 1, 2]]
    assert (miner.neighbours([question], 5) == neighbours).all()  # from the cache
    assert len(list(tmp_path.iterdir())) == 1
    Miner([*passages[:2], ("Tea", "Tea is what the capital of Norway drinks.")], tmp_path).neighbours([question], 5)
    assert len(list(tmp_path.iterdir())) == 2
    assert miner.without(neighbours[0], ["Oslo"], [], 5) == [passages[1], passages[2]]
    assert miner.without(neighbours[0], [], [passages[0][1]], 1) == [passages[1]]
    assert Miner([]).neighbours(["a", "b"], 3).shape == (2, 0)
    assert miner.neighbours([], 3).shape == (0, 0)


def test_reader_rows(jsonl: Jsonl) -> None:
    def row(i: int) -> dict[str, Any]:
        text = f"Ada{i} wrote book {i} in the town."
        return {"question": f"Who wrote book {i}?", "title": f"T{i % 3}", "passage": text, "answers": [f"Ada{i}"]}

    reading = mixtures.load_reading([jsonl("r.jsonl", *map(row, range(40)))])
    assert mixtures.context_passages(None, reading)[0] == ("T0", "Ada0 wrote book 0 in the town.")
    rows = mixtures.reader_rows(reading, Miner(mixtures.context_passages(None, reading)), log=lambda _: None)
    assert rows == mixtures.reader_rows(reading, Miner(mixtures.context_passages(None, reading)), log=lambda _: None)
    without = [r for r in rows if not r.answers]
    assert len(rows) - len(without) == 40
    assert 5 < len(without) < 35
    assert not any(find_spans(r.passage[1], "Ada" + r.question.split()[-1].rstrip("?")) for r in without)


def test_reader_rows_of_multi_leave_out_what_may_answer_and_take_few_empty_ones() -> None:
    """B may or may not answer."""
    two = MultiExample("q", (("A", "Red here."), ("B", "Nothing.")), (("Red", "crimson"), ("Blue",)), "x")
    assert [(r.passage[0], r.answers) for r in mixtures.reader_rows_of_multi([two])] == [("A", ("Red",)), ("B", ())]
    passages = (("A", "Red here."), ("B", "Red there, too."), *((f"C{i}", f"Nothing {i}.") for i in range(9)))
    example = MultiExample("q", passages, (("Red",),), "x", extra={"supporting": ["a"]})
    rows = mixtures.reader_rows_of_multi([example], empty=2)
    assert [r.passage[0] for r in rows if r.answers] == ["A"]
    silent = {r.passage[0] for r in rows if not r.answers}
    assert len(rows) == 3
    assert silent < {"C0", "C1", "C2", "C3"}
    assert rows == mixtures.reader_rows_of_multi([example], empty=2)
    assert len(mixtures.reader_rows_of_multi([example])) == 10


def test_questions_to_be_evaluated_on_are_left_out(tmp_path: Path, jsonl: Jsonl) -> None:
    """Also where only a disambiguated question, or its spelling, is the same."""
    light = tmp_path / "dev.json"
    pairs = [{"question": "Who played Ada in 1960?", "answer": ["A"]}]
    light.write_text(json.dumps([{"question": "Who played Ada?", "annotations": [{"type": "multipleQAs", "qaPairs": pairs}]}]))
    rows = jsonl("dev.jsonl", {"question": "where  is THE harbour", "answers": ["x"]})
    excluded = excluded_questions([light, rows])
    other = MultiExample("Who played Bo?", (), (), "s")
    same = [
        ReadingExample("Where is the harbour?", "", "p", ("x",), "s"),
        MultiExample("who played ada", (), (), "s"),
        MultiExample("Who was Ada?", (), (), "s", extra={"questions": ["who played Ada in 1960"]}),
    ]
    assert excluded.without([*same, other]) == [other]
    light.write_text("[1]")
    with pytest.raises(FormatError, match=r"dev\.json"):
        excluded_questions([light])
