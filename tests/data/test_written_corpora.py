"""data/starter, data/starter_test and the practice folders keep the layout that README, training and evaluation rely on."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from core import json_io
from core.datasets import load
from core.disk import plain_or_gz
from core.settings import ROOT
from core.text import contains_tokens, find_spans, normalize_answer
from core.training.data.examples import read_multi

TYPES = {"event references", "properties", "entity references", "answer types", "time dependency", "multiple sub-questions"}
JUDGING = ("starter", "starter_test")
PRACTICE = ("practice", "practice_facts", "practice_documents", "practice_kinds")
RELATIONS = ROOT / "data" / "practice_relations" / "pairs.jsonl"
FOLDERS = [ROOT / "data" / name for name in (*JUDGING, *PRACTICE)]


@cache
def read(folder: Path) -> tuple[dict[str, tuple[str, str]], list[dict[str, Any]]]:
    """(title, text) of each passage by its id, and the questions."""
    path = plain_or_gz(folder / "passages.tsv")
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert header == ["id", "text", "title"]
    passages = {key: (title, text) for key, text, title in rows}
    assert len(passages) == len(rows)
    return passages, json_io.read(plain_or_gz(folder / "questions.json"))


def pairs_of(question: dict[str, Any]) -> list[dict[str, Any]]:
    (annotation,) = question["annotations"]
    if annotation["type"] == "singleAnswer":
        return [{"question": question["question"], **annotation}]
    return list(annotation["qaPairs"])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_each_alias_stands_in_a_supporting_passage(folder: Path) -> None:
    """In the sets that systems are judged by, each supporting passage also holds an alias."""
    passages, questions = read(folder)
    for question in questions:
        for pair in pairs_of(question):
            assert pair["answer"], question["id"]
            assert pair["passages"], question["id"]
            texts = [normalize_answer(passages[p][1]).split() for p in pair["passages"]]
            aliases = [normalize_answer(alias).split() for alias in pair["answer"]]
            for alias in aliases:
                assert any(contains_tokens(text, alias) for text in texts), (question["id"], alias)
            if folder.name in JUDGING:
                assert all(any(contains_tokens(text, alias) for alias in aliases) for text in texts), question["id"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_answer_sets_are_well_formed(folder: Path) -> None:
    _, questions = read(folder)
    assert len({q["id"] for q in questions}) == len(questions)
    assert len({q["question"].lower() for q in questions}) == len(questions)
    for question in questions:
        pairs = pairs_of(question)
        assert question["question"].endswith("?")
        assert 1 <= len(pairs) <= 6
        aliases = [normalize_answer(a) for p in pairs for a in set(map(normalize_answer, p["answer"]))]
        assert len(aliases) == len(set(aliases)), (question["id"], "an alias belongs to two answers")
        if len(pairs) == 1:
            assert question["ambiguity"] is None
        else:
            assert question["ambiguity"] in TYPES
            texts = [p["question"] for p in pairs]
            assert len(set(texts)) == len(texts)
            assert all(q.endswith("?") and q != question["question"] for q in texts)


@pytest.mark.parametrize(
    ("judging", "folder"), [p for p in itertools.combinations(FOLDERS, 2) if p[0].name in JUDGING], ids=lambda f: f.name
)
def test_judging_shares_no_question_or_passage_and_the_test_set_no_subject(judging: Path, folder: Path) -> None:
    (passages, questions), (others, trained) = read(judging), read(folder)
    assert not {q["question"].lower() for q in questions} & {q["question"].lower() for q in trained}
    assert not {text for _, text in passages.values()} & {text for _, text in others.values()}
    if "starter_test" in (judging.name, folder.name):
        assert not {title for title, _ in passages.values()} & {title for title, _ in others.values()}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_the_question_loader_reads_them(folder: Path) -> None:
    _, questions = read(folder)
    loaded = load(plain_or_gz(folder / "questions.json"))
    assert [q.id for q in loaded] == [q["id"] for q in questions]
    assert [q.ambiguous for q in loaded] == [q["ambiguity"] is not None for q in questions]


def test_wrong_relations_are_in_their_passages() -> None:
    """A wrong span that the passage lacks teaches nothing; one that is right, or a passage of another split, teaches a mistake."""
    rows = [json.loads(line) for line in RELATIONS.read_text(encoding="utf-8").splitlines()]
    examples = list(read_multi(RELATIONS))
    assert len(rows) == len(examples) >= 120
    assert len({row["id"] for row in rows}) == len({row["question"].lower() for row in rows}) == len(rows)
    assert 60 <= sum(not row["answers"] for row in rows) <= len(rows) - 60
    corpora = {name: read(ROOT / "data" / name) for name in {row["corpus"] for row in rows}}
    questions = [q for _, questions in corpora.values() for q in questions if q["split"] == "held out"]
    held_out = {key for q in questions for pair in pairs_of(q) for key in pair["passages"]}
    for row, example in zip(rows, examples):
        ((title, text),) = example.passages
        assert corpora[row["corpus"]][0][row["passages"][0]["id"]] == (title, text), row["id"]
        assert row["passages"][0]["id"] not in held_out, row["id"]
        assert example.bad, row["id"]
        for span in (*example.bad, *(alias for names in row["answers"] for alias in names)):
            assert find_spans(text, span), (row["id"], span)
        assert bool(example.gold) == bool(row["answers"]) == (not example.extra.get("no_answer")), row["id"]
        assert [list(names) for names in example.gold] == row["answers"], (row["id"], "an answer is also a wrong span")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_wrong_relations_ask_what_no_other_folder_asks(folder: Path) -> None:
    _, questions = read(folder)
    texts = {text.lower() for q in questions for text in (q["question"], *(pair["question"] for pair in pairs_of(q)))}
    assert not texts & {e.question.lower() for e in read_multi(RELATIONS)}
