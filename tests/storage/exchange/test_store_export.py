"""Exports: what each format means, who wins a disagreement, and that a file is of one moment."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import single
from storage_helpers import exported, vote
from storage_samples import annotate, fill, known, noted_exports, passage, prediction

from core import types as t
from core.errors import InputError
from core.training.data.examples import read_multi
from storage.exchange import dump
from storage.exchange.consensus import CONSENSUS_RULE, Statement, consensus, held_answers, latest
from storage.exchange.exports.files import manifest_path
from storage.exchange.filters import Filters
from storage.schema.creation import head
from storage.store import Store


def ambignq(store: Store, tmp_path: Path, **filters: Any) -> list[dict[str, Any]]:
    return exported(store, "ambignq", tmp_path / "out.json", **filters)


def counts_of(path: Path) -> dict[str, int]:
    return json.loads(manifest_path(path).read_text())["counts"]


def test_ambignq_has_one_annotation_per_question(store: Store, tmp_path: Path) -> None:
    fill(store)
    question = "Who played Maria in West Side Story?"
    first, second = ambignq(store, tmp_path)  # nobody wrote answers to the first, and two people differ over its second answer
    assert first == {"id": "q-1", "question": question, "annotations": [{"type": "singleAnswer", "answer": ["Natalie Wood"]}]}
    assert second["annotations"] == [{"type": "noAnswer"}]  # the validator's word
    (cleo, bob) = ambignq(store, tmp_path, answers="all")[0]["annotations"]
    assert cleo["qaPairs"][0] == {"question": "When was Sydney's opened?", "answer": ["1932", "19 March 1932"]}
    assert {name: cleo[name] for name in ("stage", "annotator", "version", "counts")} == {
        "stage": "generation",
        "annotator": "Cleo",
        "version": 2,
        "counts": True,
    }
    assert (bob["type"], bob["stage"], bob["annotator"]) == ("noAnswer", "validation", "Bob")


def test_labels_alone_make_a_disambiguated_question_of_those_that_fit(store: Store, tmp_path: Path) -> None:
    saved = store.predictions.save_prediction(prediction(id="q-1"))
    plain = store.predictions.save_prediction(prediction("Who else?", ["Ann", "Ben"], id="q-2", clarified=False))
    for name in (saved, plain):
        store.labels.judge(name, 0, "Ada", "correct")
        store.labels.judge(name, 1, "Ada", "correct")
    (row,) = ambignq(store, tmp_path)  # of the other, nobody has said what its two answers answer
    asked = [pair["question"] for pair in row["annotations"][0]["qaPairs"]]
    assert asked == [f"Who played Maria in West Side Story ({name})?" for name in ("Natalie Wood", "Rachel Zegler")]
    assert counts_of(tmp_path / "out.json")["questions_without_an_answer_set"] == 1


def test_questions_with_nothing_correct_are_counted_not_written(store: Store, tmp_path: Path) -> None:
    saved = store.predictions.save_prediction(prediction())
    store.labels.judge(saved, 0, "Ada", "wrong")
    store.labels.judge(saved, 1, "Ada", "duplicate")
    assert ambignq(store, tmp_path) == []
    assert counts_of(tmp_path / "out.json")["questions_without_an_answer_set"] == 1


def test_drafts_and_skipped_judgments_never_leave(store: Store, tmp_path: Path) -> None:
    saved = store.predictions.save_prediction(prediction())
    store.labels.judge(saved, 0, "Ada", "correct", state="draft")
    store.labels.judge(saved, 1, "Ada", "correct", state="skipped")
    question = store.predictions.get_prediction(saved).question_id
    annotate(store, question, "Bob", t.Annotation("single", (t.QAPair("Q?", ("x",)),)), state="draft")
    for format in ("ambignq", "fid", "training"):
        assert store.exports.export(format, tmp_path / format).counts["questions"] == 0


def test_filters_narrow_the_words_that_count(store: Store, tmp_path: Path) -> None:
    fill(store)
    assert [q["question"][:4] for q in ambignq(store, tmp_path, annotators=("Bob",))] == ["Who ", "When"]
    assert [q["question"][:4] for q in ambignq(store, tmp_path, annotators=("Ada",))] == ["Who "]
    rows = ambignq(store, tmp_path, system="fid", stages=("generation", "validation"))
    assert [q["question"][:4] for q in rows] == ["When"]  # annotations have no system
    known(store, "Jos\u00e9")
    assert ambignq(store, tmp_path, annotators=("Jose\u0301",)) == []  # typed in another form, it is the same name
    with pytest.raises(InputError, match=r"unknown annotator 'Zoe'.*Ada, Bob, Cleo, Jos"):
        ambignq(store, tmp_path, annotators=("Zoe",))
    with pytest.raises(InputError, match="everything"):
        store.exports.export("jsonl", tmp_path / "x", filters=Filters(system="fid"))
    with pytest.raises(InputError, match="xls"):
        store.exports.export("xls", tmp_path / "x")


def test_fid_and_training_follow_the_majority(store: Store, tmp_path: Path) -> None:
    answers = ["Ann", "Ben", "Cid", "Dan", "Eve"]
    saved = store.predictions.save_prediction(prediction("Who?", answers, id="w"))
    verdicts = {
        "a1": ("correct", "correct", "wrong", "wrong", "duplicate"),
        "a2": ("correct", "wrong", "unsupported", "correct", "duplicate"),
        "a3": ("correct", "wrong", "wrong", "duplicate", "duplicate"),
    }
    for annotator, labels in verdicts.items():
        for position, verdict in enumerate(labels):
            store.labels.judge(saved, position, annotator, verdict)
    (row,) = exported(store, "fid", tmp_path / "fid.json")
    assert (row["id"], row["question"], row["target"], row["answers"]) == ("w", "Who?", "Ann", [["Ann"]])
    assert row["negatives"] == ["Ben", "Cid"]  # Dan: one against one is a tie, Eve: nobody voted
    assert [c["id"] for c in row["ctxs"]] == ["p1", "p2"]
    assert set(row["ctxs"][0]) == {"id", "title", "text", "score"}
    assert counts_of(tmp_path / "fid.json")["ties"] == 1
    (row,) = exported(store, "training", tmp_path / "t.jsonl")
    assert list(row) == ["id", "source", "question", "passages", "answers", "negatives", "supporting"]
    assert (row["source"], row["answers"], row["negatives"]) == ("ambiscope", [["Ann"]], ["Ben", "Cid"])
    assert set(row["passages"][0]) == {"id", "title", "text"}


def test_the_trainer_reads_a_training_file_back(store: Store, tmp_path: Path) -> None:
    fill(store)
    store.exports.export("training", tmp_path / "t.jsonl")
    first, second = read_multi(tmp_path / "t.jsonl")
    assert (first.question, first.gold) == ("Who played Maria in West Side Story?", (("Natalie Wood",),))
    assert [title for title, _ in first.passages] == ["Title 1", "Title 2"]
    assert (second.gold, second.bad) == ((), ("1932", "19 March 1932", "1937"))  # the validator's word: there is no answer
    assert second.extra["no_answer"] is True
    exported(store, "training", tmp_path / "g.jsonl", stages=("generation",), answers="all")
    (second,) = read_multi(tmp_path / "g.jsonl")
    assert second.gold == (("1932", "19 March 1932"), ("1937",))
    assert second.extra["supporting"] == ["p1"]


def test_passages_of_several_predictions_join_by_rank(store: Store, tmp_path: Path) -> None:
    ours = [passage(1), passage(2, "another corpus' p2")]
    saved = store.predictions.save_prediction(prediction())
    store.predictions.save_prediction(prediction(passages=ours, system="fid"))
    store.labels.judge(saved, 0, "Ada", "correct")
    (row,) = exported(store, "fid", tmp_path / "fid.json")
    assert [c["id"] for c in row["ctxs"]] == ["p1", "p2", "p2"]
    assert len({c["text"] for c in row["ctxs"]}) == 3


# ---------------------------------------------------------------- the rules themselves


def test_the_latest_verdict_on_an_answer_counts() -> None:
    votes = [vote("a", "The Beatles", "wrong", minutes=2), vote("a", "beatles", "correct", minutes=1)]
    assert consensus(votes, []).negatives == ("The Beatles",)
    assert held_answers("a", votes, []) == held_answers("a", votes[::-1], []) == []
    # a duplicate is no vote, so the earlier one stands
    assert latest([vote("a", "x", "correct"), vote("a", "X", "duplicate", minutes=9)])["a", "x"].label == "correct"


def test_a_duplicate_is_a_further_form_of_the_answer_that_it_says_again() -> None:
    votes = [
        vote("a", "Natalie Wood", "correct"),
        vote("a", "Wood", "duplicate"),
        vote("a", "actress Natalie Wood of California", "duplicate"),
        vote("a", "Rachel Zegler", "correct"),
        vote("a", "the star of it", "duplicate"),  # in other words: of which one is not known
    ]
    expected = (("Natalie Wood", "Wood", "actress Natalie Wood of California"), ("Rachel Zegler",))
    assert tuple(held_answers("a", votes, [])) == expected
    assert (consensus(votes, []).answers, consensus(votes, []).negatives) == (expected, ())
    statement = Statement("a", "generation", single("Natalie Wood"))
    assert consensus(votes[1:2], [statement]).answers == (("Natalie Wood", "Wood"),)  # held correct in an annotation
    assert held_answers("a", votes[1:2], [statement]) == [("Natalie Wood",)]  # but judging changes no annotation


@pytest.mark.parametrize(
    "others",
    [
        [("a", "Lana Wood", "correct")],  # two fit
        [("a", "Wood", "wrong")],  # they said otherwise of the same words
        [("b", "Natalie Wood", "correct"), ("b", "Wood", "wrong")],  # as many call the form wrong
        [("b", "Lana Wood", "correct"), ("b", "Wood", "duplicate")],  # they mean different ones
    ],
)
def test_a_duplicate_of_which_it_is_not_known_changes_nothing(others: list[tuple[str, str, str]]) -> None:
    votes = [vote("a", "Natalie Wood", "correct"), *(vote(*other) for other in others)]
    without = consensus([v for v in votes if v.label != "duplicate"], [])
    assert consensus([*votes, vote("a", "Wood", "duplicate")], []).answers[0] == without.answers[0] == ("Natalie Wood",)
    if others[0][0] == "a":
        assert held_answers("a", [*votes, vote("a", "Wood", "duplicate")], []) == held_answers("a", votes, [])


def test_the_majority_decides_of_what_a_form_is_a_duplicate() -> None:
    first = [vote("a", "Natalie Wood", "correct"), vote("a", "Wood", "duplicate")]
    second = [vote("b", "Natalie Wood", "correct"), vote("b", "Wood", "duplicate")]
    third = [vote("c", "Natalie Wood", "correct"), vote("c", "Wood", "wrong")]
    view = consensus([*first, *second, *third], [])
    assert (view.answers, view.negatives, view.ties) == ((("Natalie Wood", "Wood"),), (), 0)
    # who holds the form correct and did not see the whole name is no obstacle, and it is no answer of its own any more
    assert consensus([*first, vote("b", "Wood", "correct")], []).answers == (("Natalie Wood", "Wood"),)
    # of an answer that most hold wrong: no form of a correct answer, and no negative either
    view = consensus([*first, vote("b", "Natalie Wood", "wrong"), vote("c", "Natalie Wood", "wrong")], [])
    assert (view.answers, view.negatives) == ((), ("Natalie Wood",))
    # each is called a duplicate of the other: one answer remains
    view = consensus([*first, vote("b", "Wood", "correct"), vote("b", "Natalie Wood", "duplicate")], [])
    assert [set(a) for a in view.answers] == [{"Natalie Wood", "Wood"}]


def test_wrong_answers_alone_are_negatives_and_no_claim_of_silence(store: Store, tmp_path: Path) -> None:
    missed = store.predictions.save_prediction(prediction("Who missed?", ["Natalie Wood", "Nobody"], id="m"))
    for name in ("Ada", "Bob"):
        store.labels.judge(missed, 0, name, "wrong")
        store.labels.judge(missed, 1, name, "unsupported")
    halved = store.predictions.save_prediction(prediction("Who knows?", ["Natalie Wood", "Rachel Zegler"], id="h"))
    for name, verdict in (("Ada", "wrong"), ("Bob", "correct")):  # half hold something correct
        store.labels.judge(halved, 0, name, verdict)
        store.labels.judge(halved, 1, name, "wrong")
    absent = store.predictions.save_prediction(prediction("Who else?", ["Somebody Absent"], id="e"))
    store.labels.judge(absent, 0, "Ada", "wrong")  # in no passage: there is no span to avoid
    (row,) = exported(store, "training", tmp_path / "t.jsonl")
    assert (row["id"], row["answers"], row["negatives"]) == ("m", [], ["Natalie Wood", "Nobody"])
    assert row["answers_known"] is False
    assert not {"no_answer", "supporting"} & row.keys()
    counts = counts_of(tmp_path / "t.jsonl")
    assert (counts["questions"], counts["questions_with_negatives_only"], counts["questions_with_no_answer"]) == (0, 1, 0)
    assert counts["questions_without_a_correct_answer"] == 3
    assert exported(store, "fid", tmp_path / "fid.json") == []  # FiD's layout needs a target
    # somebody says that there is none: this is what the row says then
    annotate(store, "m", "Ada", t.Annotation("none"))
    (row,) = exported(store, "training", tmp_path / "t.jsonl")
    assert (row["no_answer"], "answers_known" in row) == (True, False)


@pytest.mark.parametrize(("one", "other"), [("O\u2019Rourke", "O'Rourke"), ("1914\u20131918", "1914-1918")])
def test_spellings_of_one_answer_are_one_answer(one: str, other: str) -> None:
    view = consensus([vote("a", one, "correct"), vote("b", other, "wrong"), vote("c", other, "correct")], [])
    assert ([set(names) <= {one, other} for names in view.answers], view.negatives) == ([True], ())


@pytest.mark.parametrize(("one", "other"), [("1.5 million", "15 million"), ("C++", "C#"), ("-40", "40"), ("10\u00b2", "102")])
def test_answers_that_a_sign_tells_apart_are_never_aliases(one: str, other: str) -> None:
    view = consensus([vote("a", one, "correct"), vote("b", other, "correct"), vote("c", other, "correct")], [])
    assert view.answers == ((one,), (other,))
    assert consensus([vote("a", one, "correct"), vote("b", other, "wrong")], []).negatives == (other,)


def test_aliases_join_what_people_said_apart() -> None:
    generation = Statement("a", "generation", t.Annotation("single", (t.QAPair("Q1?", ("New York City", "NYC")),)))
    votes = [vote("b", "NYC", "correct"), vote("c", "new york city", "correct"), vote("d", "N.Y.C.", "wrong")]
    view = consensus(votes, [generation])
    assert (view.answers, view.negatives) == ((("New York City", "NYC", "new york city", "N.Y.C."),), ())
    assert held_answers("a", [vote("a", "Boston", "correct")], [generation]) == [("New York City", "NYC")]
    validation = Statement("a", "validation", t.Annotation("none"))
    assert held_answers("a", [], [validation, generation]) == []  # validation replaces generation
    assert consensus([], [generation, validation]).answers == ()


def test_answers_of_punctuation_only_are_told_apart_by_their_text() -> None:
    assert held_answers("a", [vote("a", "?!", "correct"), vote("a", "!", "correct")], []) == [("?!",), ("!",)]


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(("format", "content"), [("fid", "[]"), ("jsonl", f'{{"kind":"ambiscope","layout":{dump.LAYOUT}}}')])
def test_an_empty_database_gives_a_valid_file(store: Store, tmp_path: Path, format: Any, content: str) -> None:
    out = tmp_path / "new folder" / "out"
    assert set(store.exports.export(format, out).counts.values()) == {0}
    assert "".join(out.read_text().split()) == content


@pytest.mark.parametrize("format", ["ambignq", "fid", "training", "jsonl"])
def test_the_manifest_tells_what_went_out(store: Store, tmp_path: Path, format: Any) -> None:
    fill(store)
    out = tmp_path / "out"
    manifest = store.exports.export(format, out)
    assert {p.name for p in tmp_path.iterdir()} == {"home", "out", "out.manifest.json"}
    body = json.loads(manifest_path(out).read_text())
    assert body == json.loads(json.dumps(manifest.to_json()))
    assert (body["sha256"], body["bytes"]) == (hashlib.sha256(out.read_bytes()).hexdigest(), out.stat().st_size)
    assert (body["schema"], body["layout"], body["format"], body["rule"]) == (head(), dump.LAYOUT, format, CONSENSUS_RULE)
    assert (body["filters"]["annotators"], body["filters"]["pseudonyms"]) == ([], False)
    (row,) = noted_exports(store)
    assert (row.sha256, row.counts, row.created) == (manifest.sha256, manifest.counts, manifest.created)


def test_a_file_is_of_one_moment(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = fill(store)
    store.exports.export("jsonl", tmp_path / "before.jsonl")
    columns_of = dump._columns

    def judged_meanwhile(table: Any) -> Any:
        if table.name == "judgment":
            store.labels.judge(first, 0, "Late", "wrong")  # another writer, while the file is being written
        return columns_of(table)

    monkeypatch.setattr(dump, "_columns", judged_meanwhile)
    store.exports.export("jsonl", tmp_path / "during.jsonl")
    assert (tmp_path / "during.jsonl").read_bytes() == (tmp_path / "before.jsonl").read_bytes()
    assert [j.annotator for j in store.labels.judgments(first)][-1] != "Late"
    assert any(j.annotator == "Late" for j in store.labels.judgments(first))
