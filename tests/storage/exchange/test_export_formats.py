"""AmbigNQ full, preferences, tables, filters, pseudonyms and snapshots, out of a small project of the workbench."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from annotation_samples import judge_all, multiple, project, take
from storage_helpers import exported, read_lines, vote
from storage_samples import known, prediction

from core import types as t
from core.errors import InputError, NotFoundError, StorageError
from storage.access.throttle import digest
from storage.exchange.consensus import ContributedQuestion, Statement, Vote, agreement_of, consensus, held_answers
from storage.exchange.exports import hub
from storage.exchange.exports.files import manifest_path
from storage.exchange.exports.tables import COLUMNS, safe_cell, schema
from storage.exchange.exports.training_formats import supporting
from storage.exchange.filters import Filters
from storage.exchange.votes import contributed_questions
from storage.records.annotation import SignInError
from storage.schema import engine
from storage.store import Store

QUESTION = "Who played part 0?"
FORMULA = "=cmd|'/C calc'!A0"


def test_ambignq_full_has_searches_and_evidence(worked: Store, tmp_path: Path) -> None:
    row, _ = exported(worked, "ambignq-full", tmp_path / "full.json")
    assert row["used_queries"] == [{"query": "maria film", "results": []}]  # once, although two people searched for it
    assert (row["viewed_doc_titles"], row["nq_answer"], row["nq_doc_title"]) == (["Title 1"], [], "")
    (annotation,) = row["annotations"]  # validated: the validator's alone
    assert [p["answer"] for p in annotation["qaPairs"]] == [["Natalie Wood"], ["Rachel Zegler"]]
    assert json.loads(manifest_path(tmp_path / "full.json").read_text())["counts"]["used_queries"] == 1
    row, _ = exported(worked, "ambignq-full", tmp_path / "before.json", stages=("generation",), answers="all")
    assert row["annotations"][0]["qaPairs"][0]["passages"] == ["p1"]
    assert [(p["id"], p["text"][:9]) for p in row["evidence"]] == [("p1", "Passage 1")]


def test_training_rows_hold_evidence_and_what_was_rejected(worked: Store, tmp_path: Path) -> None:
    row, _ = exported(worked, "training", tmp_path / "t.jsonl")
    # Carol was taken out by the validator; Nobody judged wrong
    assert row["answers"] == [["Natalie Wood"], ["Rachel Zegler"]]
    assert (row["negatives"], row["supporting"]) == (["Carol", "Nobody"], ["p1"])
    row, _ = exported(worked, "training", tmp_path / "all.jsonl", answers="all")
    # Maria Lopez was added by both judges, with an alias
    assert row["answers"] == [["Natalie Wood"], ["Rachel Zegler"], ["Maria Lopez", "M. Lopez"]]


def test_a_folder_that_the_datasets_library_loads(worked: Store, tmp_path: Path) -> None:
    from datasets import load_dataset
    from huggingface_hub import DatasetCard

    out = tmp_path / "hub"
    manifest = worked.exports.export("datasets", out)
    expected = {row["id"]: row for row in exported(worked, "ambignq-full", tmp_path / "full.json")}
    loaded = load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {"train"}  # none of these questions is in the other split
    rows = [dict(row) for row in loaded["train"]]
    assert {row["id"] for row in rows} == expected.keys()
    for row in rows:
        there = expected[row["id"]]
        assert (row["question"], row["evidence"]) == (there["question"], there["evidence"])
        assert row["used_queries"] == [q["query"] for q in there["used_queries"]]
        for ours, theirs in zip(row["annotations"], there["annotations"], strict=True):
            assert ours["answer"] == theirs.get("answer", [])
            assert [(p["question"], p["answer"]) for p in ours["qaPairs"]] == [
                (p["question"], p["answer"]) for p in theirs.get("qaPairs", [])
            ]
    assert (manifest.counts["train"], manifest.counts["validation"]) == (len(rows), 0)
    card = (out / "README.md").read_text()
    assert DatasetCard(card).data.license == "unknown"
    assert all(f"| `{name}` |" in card for name in loaded["train"].column_names)
    assert '`["starter"]`' in card
    files = ("README.md", "data/train.parquet")
    listed = "".join(f"{hashlib.sha256((out / name).read_bytes()).hexdigest()}  {name}\n" for name in files)
    assert manifest.sha256 == hashlib.sha256(listed.encode()).hexdigest()
    assert json.loads(manifest_path(out).read_text())["sha256"] == manifest.sha256


def test_a_data_set_without_rows_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to make a data set of"):
        store.exports.export("datasets", tmp_path / "hub")
    assert [p.name for p in tmp_path.iterdir()] == ["home"]


def test_a_folder_that_holds_something_is_left_alone(worked: Store, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("kept")
    with pytest.raises(InputError, match="exists already"):
        worked.exports.export("datasets", tmp_path / "mine")
    with pytest.raises(InputError, match="a snapshot has files"):
        worked.exports.take_snapshot(tmp_path / "snapshots", formats=["datasets"])
    assert [p.name for p in tmp_path.rglob("*")] == ["mine", "notes.txt"]


def test_one_question_in_ten_is_for_validation() -> None:
    splits = [hub.split_of(f"Who played part {i}?") for i in range(2000)]
    assert 0.08 < splits.count("validation") / 2000 < 0.12


LAKE = [
    {"id": "p1", "text": "Evergreen won in 1977."},
    {"id": "p2", "text": "Shallow won in 2019."},
    {"id": "p3", "text": "A deep lake that Evergreen Park has, since 2019."},
]


def supported(votes: list[Vote], answers: list[list[str]], statements: list[Statement] | None = None) -> set[str]:
    return supporting(ContributedQuestion(1, "q", "Which song won?", votes, statements or []), answers, LAKE)


def test_an_added_answer_without_a_passage_is_supported_by_the_one_that_holds_it() -> None:
    """Else training takes it for absent, and [EOI] after the others for right."""
    given, added = vote("Ada", "Evergreen", passage_ids=("p1",)), vote("Ada", "Shallow")
    assert supported([given, added], [["Evergreen"], ["Shallow"]]) == {"p1", "p2"}
    wrong = vote("Ada", "Lake", "wrong", passage_ids=("p3",))
    assert supported([wrong, added], [["Shallow"]]) == {"p2"}  # nothing that was given is right
    assert supported([vote("Ada", "deep lake")], [["deep lake"]]) == {"p3"}


def test_a_word_or_number_that_occurs_here_and_there_supports_nothing() -> None:
    given, year = vote("Ada", "Evergreen", passage_ids=("p1",)), vote("Ada", "2019")
    assert supported([year], [["2019"]]) == set()
    assert supported([given, year], [["Evergreen"], ["2019"]]) == set()  # with p1 alone, 2019 would be taken for absent
    assert supported([given, year], [["Evergreen"], ["in 2019", "2019"]]) == {"p1"}  # training looks for two words everywhere


def test_evidence_that_was_judged_as_a_whole_counts_for_the_chosen_passage() -> None:
    given = vote("Ada", "Evergreen", passage_ids=("p1", "p3"))
    assert supported([given], [["Evergreen"]]) == {"p1"}
    pairs = (t.QAPair("", ("Evergreen",), ("p1", "p3")), t.QAPair("", ("Lake",), ("p2",)))
    statements = [Statement("Bob", "generation", t.Annotation("multiple", pairs))]
    assert supported([], [["Evergreen"]], statements) == {"p1", "p3"}  # what a person cites, for an answer that stands


def test_preferences_are_pairs_of_answer_sets(worked: Store, tmp_path: Path) -> None:
    (row,) = exported(worked, "preferences", tmp_path / "p.jsonl")
    assert json.loads(manifest_path(tmp_path / "p.jsonl").read_text())["counts"]["pairs"] == 1
    assert (row["prompt"], row["preferring"], row["against"], row["undecided"]) == (QUESTION, 2, 0, 0)
    assert (row["chosen_set"]["system"], row["rejected_set"]["system"]) == ("ambigprompt", "fid")
    assert row["chosen"].splitlines()[0] == "Who played part 0 (Natalie Wood)? | Natalie Wood"
    assert exported(worked, "preferences", tmp_path / "none.jsonl", annotators=("Val",)) == []


def test_a_prediction_may_be_preferred_in_two_projects(store: Store, tmp_path: Path) -> None:
    ours = store.predictions.save_prediction(prediction(QUESTION, ["Natalie Wood"], id="q0"))
    for name in ("fid", "refuel"):
        store.predictions.save_prediction(prediction(QUESTION, ["Nobody"], id="q0", system=name))
        item = take(
            store, project(store, 1, name=name, stages=("judging",), systems=("ambigprompt", name)), "Ada", "judging"
        ).item
        sheet = store.reviews.judging_sheet(item, "Ada")
        preferred = next(side.name for side in sheet.sides if side.prediction_id == ours)
        store.submissions.submit(item, "Ada", "judging", judge_all(sheet, preference=preferred), seconds=1)
    rows = exported(store, "preferences", tmp_path / "p.jsonl")
    assert [(row["prompt"], row["chosen_set"]["prediction"]) for row in rows] == [(QUESTION, ours)] * 2
    assert {row["rejected_set"]["system"] for row in rows} == {"fid", "refuel"}


def test_a_question_that_does_not_fit_is_left_out(worked: Store, tmp_path: Path) -> None:
    with worked.database.reading() as session:
        (question,) = contributed_questions(session, Filters(stages=("judging",), annotators=("Ada",)))
    asked = {vote.answer: vote.clarified for vote in question.votes if vote.label == "correct"}
    assert asked == {"Natalie Wood": "Who played part 0 (Natalie Wood)?", "Rachel Zegler": "", "Maria Lopez": ""}
    # 'ambiguous still', and the prompt is no disambiguated question
    assert exported(worked, "ambignq", tmp_path / "a.json", stages=("judging",), annotators=("Ada",)) == []


def test_filters_choose_the_questions(worked: Store, tmp_path: Path) -> None:
    (parts,) = worked.projects.projects()

    def ids(**filters: Any) -> list[str]:
        return [row["id"] for row in exported(worked, "training", tmp_path / "t.jsonl", **filters)]

    assert ids() == ids(project=parts.id) == ["q0", "q1"]
    assert ids(stages=("validation",)) == ["q0", "q1"]  # the second by agreement
    assert ids(stages=("generation",)) == []  # what was written is validated
    assert ids(stages=("generation",), answers="all") == ["q0", "q1"]
    assert ids(minimum_agreement=0.9) == ["q1"]  # of q0, Ada and Bob share one of two answers
    assert ids(stages=("validation",), minimum_agreement=0.9) == ["q1"]  # they agreed before the validation
    assert ids(annotators=("Ada",), minimum_agreement=0.1) == []  # one person agrees with nobody
    later = engine.now() + timedelta(hours=1)
    assert ids(since=later) == []
    assert ids(until=later) == ["q0", "q1"]
    with pytest.raises(NotFoundError, match="no project"):
        ids(project="nowhere")
    for wrong in ({"stages": ("drafts",)}, {"minimum_agreement": 1.5}, {"since": later, "until": later}):
        with pytest.raises(InputError):
            Filters(**wrong)
    with pytest.raises(InputError, match="time zone"):
        Filters(since=later.replace(tzinfo=None))
    assert {row["question_id"] for row in exported(worked, "csv", tmp_path / "t.csv", minimum_agreement=0.9)} == {"q1"}


def test_csv_is_safe_and_parquet_is_exact(worked: Store, tmp_path: Path) -> None:
    rows = exported(worked, "csv", tmp_path / "a.csv")
    counts = worked.exports.export("parquet", tmp_path / "a.parquet").counts
    assert json.loads(manifest_path(tmp_path / "a.csv").read_text())["counts"] == counts
    exact = pq.read_table(tmp_path / "a.parquet")
    assert exact.schema.equals(schema())
    assert len(rows) == exact.num_rows == counts["rows"] > 8
    assert list(rows[0]) == [name for name, _ in COLUMNS]
    assert [r["answers"] for r in rows if "cmd" in r["answers"]] == [f"'{FORMULA}"]
    assert [r["answers"] for r in exact.to_pylist() if "cmd" in r["answers"][0]] == [[FORMULA]]
    assert {r["stage"] for r in rows} == {"validation", "judging"}


def test_snapshots_of_an_empty_database_are_valid(store: Store, tmp_path: Path) -> None:
    snapshot = store.exports.take_snapshot(tmp_path)
    assert {count for counts in snapshot.counts.values() for count in counts.values()} == {0}
    assert pq.read_table(store.exports.snapshot_files(1, tmp_path)["parquet"]).schema.equals(schema())


def test_what_is_no_formula_stays_as_it_is() -> None:
    assert safe_cell("a = b - c @ d\nAda's ‘x’ 1") == "a = b - c @ d\nAda's ‘x’ 1"


INVISIBLE = "\u00ad\u034f\u061c\u115f\u180e\u200b\u200d\u200e\u202a\u202e\u2060\u2066\u2800\u3164\ufe0f\ufeff\uffa0\u0001\U000e0041\ue000\u0301"


@pytest.mark.parametrize("before", [*INVISIBLE, INVISIBLE, f" {INVISIBLE}\t", ""])
@pytest.mark.parametrize("sign", "=+-@＝＋－＠﹢﹣﹦﹫⁺⁻⁼₊₋₌\u2212")
def test_a_formula_behind_what_is_not_seen(before: str, sign: str) -> None:
    for line in ("", "x\n", "x\u2028"):
        assert safe_cell(f"{line}{before}{sign}1+1") == f"{line}'{before}{sign}1+1"


def test_names_are_replaced_everywhere(worked: Store, tmp_path: Path) -> None:
    for format in ("jsonl", "csv", "training", "ambignq-full"):
        worked.exports.export(format, tmp_path / format, filters=Filters(pseudonyms=True))
        text = (tmp_path / format).read_text() + manifest_path(tmp_path / format).read_text()
        assert not re.search(r'"(Ada|Bob|Val|Mia)"', text), format
    rows = exported(worked, "csv", tmp_path / "again", pseudonyms=True)
    assert all(re.fullmatch(r"annotator \d{4}( \| annotator \d{4})*", row["annotator"]) for row in rows)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "csv").read_bytes()  # the same numbers each time
    row, *_ = exported(worked, "csv", tmp_path / "one", annotators=("Ada",), pseudonyms=True)
    assert json.loads(manifest_path(tmp_path / "one").read_text())["filters"]["annotators"] == [row["annotator"]]


def test_with_pseudonyms_no_digest_of_a_name_goes_out(store: Store, tmp_path: Path) -> None:
    known(store, "Ada")
    with pytest.raises(SignInError):
        store.people.sign_in("Ada", "a wrong password")
    for pseudonyms in (False, True):
        store.exports.export("jsonl", tmp_path / "a", filters=Filters(pseudonyms=pseudonyms))
        assert (digest("Ada")[:16] in (tmp_path / "a").read_text()) != pseudonyms


def test_snapshots_are_numbered_and_do_not_change(worked: Store, tmp_path: Path) -> None:
    exports, folder = worked.exports, tmp_path / "snapshots"
    filters = Filters(minimum_agreement=0.9)
    first = exports.take_snapshot(folder, note="the first", formats=("training", "csv"), filters=filters)
    (folder / f"{first.number + 1:04d}").mkdir()  # left by another database
    second = exports.take_snapshot(folder, filters=Filters(pseudonyms=True))
    assert [s.number for s in exports.snapshots()] == [second.number, first.number] == [first.number + 2, first.number]
    files = exports.snapshot_files(first.number, folder)
    assert set(files) == {"training", "csv"}
    assert [r["id"] for r in read_lines(files["training"])] == ["q1"]
    manifest = files["training"].parent / "manifest.json"
    assert hashlib.sha256(manifest.read_bytes()).hexdigest() == first.sha256
    body = json.loads(manifest.read_text())
    assert (body["number"], body["note"]) == (first.number, "the first")
    assert {f["format"]: f["sha256"] for f in body["files"]}["csv"] == hashlib.sha256(files["csv"].read_bytes()).hexdigest()
    assert all(p.stat().st_mode & 0o222 == 0 for p in manifest.parent.iterdir())
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]  # no draft is left
    files["csv"].chmod(0o600)
    files["csv"].write_text("else")
    with pytest.raises(StorageError, match=r"csv\.csv was changed"):
        exports.snapshot_files(first.number, folder)
    files["csv"].unlink()
    with pytest.raises(StorageError, match="cannot be read"):
        exports.snapshot_files(first.number, folder)
    with pytest.raises(NotFoundError, match="no snapshot 99"):
        exports.get_snapshot(99)
    with pytest.raises(InputError, match="once"):
        exports.take_snapshot(folder, formats=("csv", "csv"))
    with pytest.raises(StorageError, match="cannot be written"):
        exports.take_snapshot(manifest)
    assert len(exports.snapshots()) == 2


# ---------------------------------------------------------------- the rules


def test_validation_stands_for_all_annotations() -> None:
    statements = [
        Statement("a", "generation", multiple("x", "y")),
        Statement("b", "generation", multiple("x", "new york")),
        Statement("v", "validation", multiple("x", "New York City")),
    ]
    view = consensus([], statements)
    assert view.answers == (("x",), ("New York City",))
    assert view.negatives == ("y",)  # "new york" is part of a correct answer: no negative
    assert consensus([], statements[:2]).answers == (("x",), ("y",), ("new york",))
    assert agreement_of([], statements) == 0.5  # before validation


def test_a_rejected_suggestion_is_a_soft_negative() -> None:
    own = [Statement("a", "generation", multiple("New York City", "Boston"))]
    votes = [vote("a", "New York", "wrong", soft=True), vote("a", "Paris", "wrong", soft=True)]
    assert consensus(votes, own).negatives == ("Paris",)
    assert consensus([vote("a", "New York", "wrong")], own).negatives == ("New York",)  # judged wrong in so many words
    assert agreement_of([vote("a", "x"), vote("b", "x")], []) == 1.0
    assert agreement_of([vote("a", "x"), vote("b", "x", "wrong")], []) == 0.0
    assert agreement_of([vote("a", "x")], []) is None


def test_missing_answers_bring_their_aliases() -> None:
    view = consensus([vote("a", "Maria Lopez", aliases=("M. Lopez",)), vote("b", "m. lopez")], [])
    assert view.answers == (("Maria Lopez", "M. Lopez", "m. lopez"),)


@pytest.mark.parametrize("first", ["given", "added"])
def test_aliases_of_an_answer_that_was_given_do_not_depend_on_the_order(first: str) -> None:
    given = vote("a", "1,235 kilometres per hour", minutes=first == "added")
    added = vote("a", given.answer, minutes=first == "given", aliases=("343 metres per second",))
    for votes in ([given, added], [added, given]):
        (forms,) = consensus(votes, []).answers
        assert set(forms) == {given.answer, "343 metres per second"}
        assert [set(held) for held in held_answers("a", votes, [])] == [set(forms)]
    refused = vote("a", given.answer, "wrong", minutes=9)
    assert consensus([added, refused], []).answers == ()  # what they no longer hold correct has no aliases


def test_what_another_document_disputes_is_neither_correct_nor_a_negative() -> None:
    votes = [vote("a", "Oslo"), vote("a", "Bergen", "outdated"), vote("a", "Moss", "contradicts"), vote("a", "Hamar", "wrong")]
    view = consensus(votes, [])
    assert (view.answers, view.negatives) == ((("Oslo",),), ("Hamar",))
