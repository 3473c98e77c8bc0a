"""AmbigNQ full, preferences, tables, filters, pseudonyms and snapshots, out of a small project of the workbench."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from annotation_samples import multiple, project, single
from storage_samples import prediction

from core import types as t
from core.errors import InputError, NotFoundError, StorageError
from core.training.data.examples import read_multi
from storage.exchange.consensus import ContributedQuestion, Statement, Vote, agreement_of, annotation_of, consensus
from storage.exchange.exports import hub
from storage.exchange.exports.tables import COLUMNS, safe_cell, schema
from storage.exchange.exports.training_formats import supporting
from storage.exchange.filters import Filters
from storage.records.annotation import (
    GenerationWork,
    JudgedAnswer,
    JudgingWork,
    MissingAnswer,
    SuggestionUse,
    ValidationWork,
)
from storage.schema import engine
from storage.store import Store

QUESTION = "Who played part 0?"


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str]]:
    """A store in which Ada and Bob annotated and judged one question, Ada a second one, and Val validated the first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "SYNCHRONOUS", "OFF")
        with Store(f"sqlite:///{tmp_path_factory.mktemp('worked') / 'ambiscope.db'}") as store:
            yield store, work(store)


def work(store: Store) -> str:
    made = project(
        store, 2, stages=("generation", "validation", "judging"), systems=("ambigprompt", "fid"), annotators_per_item=2
    )
    first = store.predictions.save_prediction(prediction(QUESTION, ["Natalie Wood", "Rachel Zegler"], id="q0"))
    second = store.predictions.save_prediction(prediction(QUESTION, ["Natalie Wood", "Nobody"], id="q0", system="fid"))
    store.intake.link_predictions("Mia", made.id)
    items = {i.question: i.id for i in store.items.items(made.id, "Mia", stage="generation")}
    item, other = items[QUESTION], items["Who played part 1?"]
    for who, annotation in (("Ada", multiple("Natalie Wood", "Rachel Zegler")), ("Bob", multiple("Natalie Wood", "Carol"))):
        store.queue.claim_item(item, who, "generation")
        store.drafts.log_search(item, who, "generation", "maria film")
        store.drafts.log_view(item, who, "generation", "p1", "Title 1")
        cited = t.Annotation(annotation.type, tuple(t.QAPair(p.question, p.answers, ("p1",)) for p in annotation.pairs))
        uses = (SuggestionUse(second, 1, "Nobody", "rejected"), SuggestionUse(first, 0, "Natalie Wood", "accepted"))
        store.submissions.submit(item, who, "generation", GenerationWork(cited, uses), seconds=60)
    for who in ("Ada", "Bob"):
        store.queue.claim_item(other, who, "generation")
        store.submissions.submit(other, who, "generation", GenerationWork(single("=cmd|'/C calc'!A0")), seconds=30)
    given_ = store.reviews.validation_input(item, "Val")
    store.queue.claim_item(item, "Val", "validation")
    final = multiple("Natalie Wood", "Rachel Zegler")
    store.submissions.submit(
        item, "Val", "validation", ValidationWork(final), seconds=20, expected_version=given_.expected_version
    )
    for who in ("Ada", "Bob"):
        store.queue.claim_item(item, who, "judging")
        sheet = store.reviews.judging_sheet(item, who)
        ours = next(side.name for side in sheet.sides if side.prediction_id == first)
        answers = tuple(
            JudgedAnswer(p, i, "correct" if (p, i) != (second, 1) else "wrong", verdict)
            for p, i, verdict in (
                (first, 0, "fits"),
                (first, 1, "ambiguous_still"),
                (second, 0, "fits"),
                (second, 1, "changes_meaning"),
            )
        )
        missing = (MissingAnswer("Maria Lopez", ("M. Lopez",)),)
        store.submissions.submit(item, who, "judging", JudgingWork(answers, missing, ours), seconds=40)
    return made.id


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))


def test_ambignq_full_has_searches_and_evidence(worked: tuple[Store, str], tmp_path: Path) -> None:
    store, _ = worked
    manifest = store.exports.export("ambignq-full", tmp_path / "full.json")
    row = json.loads((tmp_path / "full.json").read_text())[0]
    assert row["used_queries"] == [{"query": "maria film", "results": []}]  # once, although two people searched for it
    assert row["viewed_doc_titles"] == ["Title 1"]
    assert (row["nq_answer"], row["nq_doc_title"]) == ([], "")
    (annotation,) = row["annotations"]  # validated: the validator's alone
    assert [p["answer"] for p in annotation["qaPairs"]] == [["Natalie Wood"], ["Rachel Zegler"]]
    assert manifest.counts["used_queries"] == 1
    store.exports.export("ambignq-full", tmp_path / "before.json", filters=Filters(stages=("generation",)))
    row = json.loads((tmp_path / "before.json").read_text())[0]
    assert row["annotations"][0]["qaPairs"][0]["passages"] == ["p1"]
    assert [p["id"] for p in row["evidence"]] == ["p1"]
    assert row["evidence"][0]["text"].startswith("Passage 1")


def test_training_rows_hold_evidence_and_what_was_rejected(worked: tuple[Store, str], tmp_path: Path) -> None:
    store, _ = worked
    store.exports.export("training", tmp_path / "t.jsonl")
    row = lines(tmp_path / "t.jsonl")[0]
    # Carol was taken out by the validator; Nobody judged wrong; Maria Lopez was added by both judges, with an alias
    assert row["answers"] == [["Natalie Wood"], ["Rachel Zegler"], ["Maria Lopez", "M. Lopez"]]
    assert row["negatives"] == ["Carol", "Nobody"]
    assert row["supporting"] == ["p1"]
    (first, _) = read_multi(tmp_path / "t.jsonl")
    assert first.bad == ("Carol", "Nobody")


def test_a_folder_that_the_datasets_library_loads(
    worked: tuple[Store, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datasets import load_dataset
    from huggingface_hub import DatasetCard

    store, _ = worked
    out = tmp_path / "hub"
    manifest = store.exports.export("datasets", out)
    store.exports.export("ambignq-full", tmp_path / "full.json")
    loaded = load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {"train"}  # none of these questions is in the other split
    rows = [dict(row) for row in loaded["train"]]
    expected = {row["id"]: row for row in json.loads((tmp_path / "full.json").read_text())}
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
    listed = "".join(
        f"{hashlib.sha256((out / name).read_bytes()).hexdigest()}  {name}\n" for name in ("README.md", "data/train.parquet")
    )
    assert manifest.sha256 == hashlib.sha256(listed.encode()).hexdigest()
    assert json.loads((tmp_path / "hub.manifest.json").read_text())["sha256"] == manifest.sha256


def test_a_data_set_without_rows_is_refused(tmp_path: Path) -> None:
    with (
        Store(f"sqlite:///{tmp_path / 'home' / 'empty.db'}") as store,
        pytest.raises(InputError, match="nothing to make a data set of"),
    ):
        store.exports.export("datasets", tmp_path / "hub")
    assert [p.name for p in tmp_path.iterdir()] == ["home"]


def test_a_folder_that_holds_something_is_left_alone(worked: tuple[Store, str], tmp_path: Path) -> None:
    store, _ = worked
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("kept")
    with pytest.raises(InputError, match="exists already"):
        store.exports.export("datasets", tmp_path / "mine")
    with pytest.raises(InputError, match="a snapshot has files"):
        store.exports.take_snapshot(tmp_path / "snapshots", formats=["datasets"])
    assert [p.name for p in tmp_path.rglob("*")] == ["mine", "notes.txt"]


def test_one_question_in_ten_is_for_validation_and_stays_there() -> None:
    found = [hub.split_of(f"Who played part {i}?") for i in range(2000)]
    assert 0.08 < found.count("validation") / 2000 < 0.12
    assert hub.split_of("who played  part 7") == hub.split_of("Who played part 7?")


MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
LAKE = [
    {"id": "p1", "text": "Evergreen won in 1977."},
    {"id": "p2", "text": "Shallow won in 2019."},
    {"id": "p3", "text": "A deep lake that Evergreen Park has, since 2019."},
]


def supported(votes: list[Vote], answers: list[list[str]], statements: list[Statement] | None = None) -> set[str]:
    return supporting(ContributedQuestion(1, "q", "Which song won?", votes, statements or []), answers, LAKE)


def test_an_added_answer_without_a_passage_is_supported_by_the_one_that_holds_it() -> None:
    """Else training takes it for absent, and [EOI] after the others for right."""
    given = Vote("Ada", "Evergreen", "", "correct", MOMENT, passage_ids=("p1",))
    added = Vote("Ada", "Shallow", "", "correct", MOMENT)
    assert supported([given, added], [["Evergreen"], ["Shallow"]]) == {"p1", "p2"}
    wrong = Vote("Ada", "Lake", "", "wrong", MOMENT, passage_ids=("p3",))
    assert supported([wrong, added], [["Shallow"]]) == {"p2"}  # nothing that was given is right
    assert supported([Vote("Ada", "deep lake", "", "correct", MOMENT)], [["deep lake"]]) == {"p3"}


def test_a_word_or_number_that_occurs_here_and_there_supports_nothing() -> None:
    year = Vote("Ada", "2019", "", "correct", MOMENT)
    assert supported([year], [["2019"]]) == set()
    given = Vote("Ada", "Evergreen", "", "correct", MOMENT, passage_ids=("p1",))
    assert supported([given, year], [["Evergreen"], ["2019"]]) == set()  # with p1 alone, 2019 would be taken for absent
    assert supported([given, year], [["Evergreen"], ["in 2019", "2019"]]) == {"p1"}  # training looks for two words everywhere


def test_evidence_that_was_judged_as_a_whole_counts_for_the_chosen_passage() -> None:
    given = Vote("Ada", "Evergreen", "", "correct", MOMENT, passage_ids=("p1", "p3"))
    assert supported([given], [["Evergreen"]]) == {"p1"}
    pairs = (t.QAPair("", ("Evergreen",), ("p1", "p3")), t.QAPair("", ("Lake",), ("p2",)))
    said = [Statement("Bob", "generation", t.Annotation("multiple", pairs))]
    assert supported([], [["Evergreen"]], said) == {"p1", "p3"}  # what a person cites, for an answer that stands


def test_preferences(worked: tuple[Store, str], tmp_path: Path) -> None:
    store, _ = worked
    manifest = store.exports.export("preferences", tmp_path / "p.jsonl")
    (row,) = lines(tmp_path / "p.jsonl")
    assert manifest.counts["pairs"] == 1
    assert (row["prompt"], row["preferring"], row["against"], row["undecided"]) == (QUESTION, 2, 0, 0)
    assert row["chosen_set"]["system"] == "ambigprompt"
    assert row["rejected_set"]["system"] == "fid"
    assert row["chosen"].splitlines()[0] == "Who played part 0 (Natalie Wood)? | Natalie Wood"
    store.exports.export("preferences", tmp_path / "none.jsonl", filters=Filters(annotators=("Val",)))
    assert lines(tmp_path / "none.jsonl") == []


def test_a_prediction_may_be_preferred_in_two_projects(store: Store, tmp_path: Path) -> None:
    ours = store.predictions.save_prediction(prediction(QUESTION, ["Natalie Wood"], id="q0"))
    for name in ("fid", "refuel"):
        store.predictions.save_prediction(prediction(QUESTION, ["Nobody"], id="q0", system=name))
        judged_project = project(store, 1, name=name, stages=("judging",), systems=("ambigprompt", name))
        store.intake.link_predictions("Mia", judged_project.id)
        (item,) = store.items.items(judged_project.id, "Mia", stage="judging")
        store.queue.claim_item(item.id, "Ada", "judging")
        sides = store.reviews.judging_sheet(item.id, "Ada").sides
        answers = tuple(JudgedAnswer(s.prediction_id, a.position, "correct", "fits") for s in sides for a in s.answers)
        preferred = next(side.name for side in sides if side.prediction_id == ours)
        store.submissions.submit(item.id, "Ada", "judging", JudgingWork(answers, (), preferred), seconds=1)
    store.exports.export("preferences", tmp_path / "p.jsonl")
    rows = lines(tmp_path / "p.jsonl")
    assert [row["prompt"] for row in rows] == [QUESTION, QUESTION]
    assert [row["chosen_set"]["prediction"] for row in rows] == [ours, ours]
    assert {row["rejected_set"]["system"] for row in rows} == {"fid", "refuel"}


def test_a_question_that_does_not_fit_is_left_out(worked: tuple[Store, str], tmp_path: Path) -> None:
    store, _ = worked
    store.exports.export("ambignq", tmp_path / "a.json", filters=Filters(stages=("judging",), annotators=("Ada",)))
    (row,) = json.loads((tmp_path / "a.json").read_text())
    asked = {p["answer"][0]: p["question"] for p in row["annotations"][0]["qaPairs"]}
    assert asked["Natalie Wood"] == "Who played part 0 (Natalie Wood)?"
    assert asked["Rachel Zegler"] == QUESTION  # 'ambiguous still': the prompt stands


def test_filters(worked: tuple[Store, str], tmp_path: Path) -> None:
    store, made = worked
    out = tmp_path / "t.jsonl"

    def ids(**values: Any) -> list[str]:
        store.exports.export("training", out, filters=Filters(**values))
        return [row["id"] for row in lines(out)]

    assert ids() == ids(project=made) == ["q0", "q1"]
    assert ids(stages=("validation",)) == ["q0"]
    assert ids(minimum_agreement=0.9) == ["q1"]  # of q0, Ada and Bob share one of two answers
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
    store.exports.export("csv", out, filters=Filters(minimum_agreement=0.9))
    assert {row["question_id"] for row in table(out)} == {"q1"}


def test_csv_is_safe_and_parquet_is_exact(worked: tuple[Store, str], tmp_path: Path) -> None:
    store, _ = worked
    counts = store.exports.export("csv", tmp_path / "a.csv").counts
    assert counts == store.exports.export("parquet", tmp_path / "a.parquet").counts
    rows, exact = table(tmp_path / "a.csv"), pq.read_table(tmp_path / "a.parquet")
    assert exact.schema.equals(schema())
    assert len(rows) == exact.num_rows == counts["rows"] > 10
    assert list(rows[0]) == [name for name, _ in COLUMNS]
    formulas = [r["answers"] for r in rows if "cmd" in r["answers"]]
    assert formulas == ["'=cmd|'/C calc'!A0"] * 2
    assert [r["answers"] for r in exact.to_pylist() if "cmd" in r["answers"][0]] == [["=cmd|'/C calc'!A0"]] * 2
    assert {r["stage"] for r in rows} == {"generation", "validation", "judging"}


def test_empty_tables_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SYNCHRONOUS", "OFF")
    with Store(f"sqlite:///{tmp_path / 'x.db'}") as store:
        for format in ("csv", "parquet", "preferences", "ambignq-full"):
            assert set(store.exports.export(format, tmp_path / format).counts.values()) == {0}  # type: ignore[arg-type]
        assert pq.read_table(tmp_path / "parquet").schema.equals(schema())
        assert table(tmp_path / "csv") == []
        made = store.exports.take_snapshot(tmp_path / "snapshots")
        assert (made.number, made.counts["training"]["questions"]) == (1, 0)


def test_what_is_no_formula_stays_as_it_is() -> None:
    assert safe_cell("a = b - c @ d\nAda's ‘x’ 1") == "a = b - c @ d\nAda's ‘x’ 1"


INVISIBLE = "\u00ad\u034f\u061c\u115f\u180e\u200b\u200d\u200e\u202a\u202e\u2060\u2066\u2800\u3164\ufe0f\ufeff\uffa0\u0001\U000e0041\ue000\u0301"


@pytest.mark.parametrize("before", [*INVISIBLE, INVISIBLE, f" {INVISIBLE}\t", ""])
@pytest.mark.parametrize("sign", "=+-@＝＋－＠﹢﹣﹦﹫⁺⁻⁼₊₋₌\u2212")
def test_a_formula_behind_what_is_not_seen(before: str, sign: str) -> None:
    for line in ("", "x\n", "x\u2028"):
        assert safe_cell(f"{line}{before}{sign}1+1") == f"{line}'{before}{sign}1+1"


def test_names_are_replaced_everywhere(worked: tuple[Store, str], tmp_path: Path) -> None:
    store, _ = worked
    hidden = Filters(pseudonyms=True)
    for format in ("jsonl", "csv", "training", "ambignq-full"):
        store.exports.export(format, tmp_path / format, filters=hidden)  # type: ignore[arg-type]
        text = (tmp_path / format).read_text() + (tmp_path / f"{format}.manifest.json").read_text()
        assert not re.search(r'"(Ada|Bob|Val|Mia)"', text), format
    people = {row["annotator"] for row in table(tmp_path / "csv")}
    assert all(re.fullmatch(r"annotator \d{4}", p) for p in people)
    store.exports.export("csv", tmp_path / "again", filters=hidden)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "csv").read_bytes()  # the same numbers each time
    store.exports.export("csv", tmp_path / "one", filters=Filters(annotators=("Ada",), pseudonyms=True))
    manifest = json.loads((tmp_path / "one.manifest.json").read_text())
    assert manifest["filters"]["annotators"] == [table(tmp_path / "one")[0]["annotator"]]


# ---------------------------------------------------------------- snapshots


def test_snapshots_are_numbered_and_do_not_change(worked: tuple[Store, str], tmp_path: Path) -> None:
    store, made = worked
    folder = tmp_path / "snapshots"
    first = store.exports.take_snapshot(
        folder, note="the first", formats=("training", "csv"), filters=Filters(minimum_agreement=0.9)
    )
    (folder / f"{first.number + 1:04d}").mkdir()  # left by another database
    second = store.exports.take_snapshot(folder, filters=Filters(project=made, pseudonyms=True))
    assert second.number == first.number + 2
    assert [s.number for s in store.exports.snapshots()][:2] == [second.number, first.number]
    files = store.exports.snapshot_files(first.number, folder)
    assert set(files) == {"training", "csv"}
    assert [r["id"] for r in lines(files["training"])] == ["q1"]
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
        store.exports.snapshot_files(first.number, folder)
    files["csv"].unlink()
    with pytest.raises(StorageError, match="cannot be read"):
        store.exports.snapshot_files(first.number, folder)
    with pytest.raises(NotFoundError, match="no snapshot 99"):
        store.exports.get_snapshot(99)
    with pytest.raises(InputError, match="once"):
        store.exports.take_snapshot(folder, formats=("csv", "csv"))
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(StorageError, match="cannot be written"):
        store.exports.take_snapshot(blocked)
    assert len(store.exports.snapshots()) >= 2


# ---------------------------------------------------------------- the rules


def vote(annotator: str, answer: str, verdict: str = "correct", **more: Any) -> Vote:
    return Vote(annotator, answer, "", verdict, engine.now(), **more)


def test_validation_stands_for_all_annotations() -> None:
    said = [
        Statement("a", "generation", multiple("x", "y")),
        Statement("b", "generation", multiple("x", "new york")),
        Statement("v", "validation", multiple("x", "New York City")),
    ]
    view = consensus([], said)
    assert view.answers == (("x",), ("New York City",))
    assert view.negatives == ("y",)  # "new york" is part of a correct answer: no negative
    assert consensus([], said[:2]).answers == (("x",), ("y",), ("new york",))
    assert agreement_of([], said, "Q?") == 0.5  # before validation


def test_a_rejected_suggestion_is_a_soft_negative() -> None:
    own = [Statement("a", "generation", multiple("New York City", "Boston"))]
    votes = [vote("a", "New York", "wrong", soft=True), vote("a", "Paris", "wrong", soft=True)]
    assert consensus(votes, own).negatives == ("Paris",)
    assert consensus([vote("a", "New York", "wrong")], own).negatives == ("New York",)  # judged wrong in so many words
    assert agreement_of([vote("a", "x"), vote("b", "x")], [], "Q?") == 1.0
    assert agreement_of([vote("a", "x"), vote("b", "x", "wrong")], [], "Q?") == 0.0
    assert agreement_of([vote("a", "x")], [], "Q?") is None


def test_missing_answers_bring_their_aliases() -> None:
    view = consensus([vote("a", "Maria Lopez", aliases=("M. Lopez",)), vote("b", "m. lopez")], [])
    assert view.answers == (("Maria Lopez", "M. Lopez", "m. lopez"),)


@pytest.mark.parametrize("first", ["given", "added"])
def test_aliases_of_an_answer_that_was_given_do_not_depend_on_the_order(first: str) -> None:
    given = Vote("a", "1,235 kilometres per hour", "", "correct", MOMENT + timedelta(seconds=first == "added"))
    added = Vote("a", given.answer, "", "correct", MOMENT + timedelta(seconds=first == "given"), ("343 metres per second",))
    for votes in ([given, added], [added, given]):
        (forms,) = consensus(votes, []).answers
        assert set(forms) == {given.answer, "343 metres per second"}
        made = annotation_of("a", votes, [], "How fast?")
        assert [set(p.answers) for p in made.pairs] == [set(forms)]
    refused = replace(given, label="wrong", updated=MOMENT + timedelta(seconds=9))
    assert consensus([added, refused], []).answers == ()  # what they no longer hold correct has no aliases


def test_what_another_document_disputes_is_neither_correct_nor_a_negative(store: Store, tmp_path: Path) -> None:
    votes = [vote("a", "Oslo"), vote("a", "Bergen", "outdated"), vote("a", "Moss", "contradicts"), vote("a", "Hamar", "wrong")]
    view = consensus(votes, [])
    assert (view.answers, view.negatives) == ((("Oslo",),), ("Hamar",))
    saved = store.predictions.save_prediction(prediction())
    store.labels.judge(saved, 0, "Ada", "outdated")
    store.labels.judge(saved, 1, "Ada", "contradicts")
    store.exports.export("csv", tmp_path / "out.csv")
    assert [row["verdict"] for row in table(tmp_path / "out.csv")] == ["outdated", "contradicts"]
    with Store(f"sqlite:///{tmp_path / 'other.db'}") as other:
        store.exports.export("jsonl", tmp_path / "all.jsonl")
        other.imports.import_file(tmp_path / "all.jsonl")
        assert [j.verdict for j in other.labels.judgments(saved)] == ["outdated", "contradicts"]
