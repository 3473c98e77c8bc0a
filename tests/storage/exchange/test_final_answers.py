"""The final answer set of each finished item: who decides it, what is left out and counted, and that it survives an export and an import."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from annotation_samples import Clock, do, judge_all, multiple, project, questions, single, take, validate, work
from hypothesis import given, settings
from hypothesis import strategies as st
from storage_helpers import exported
from storage_samples import annotate, prediction

from core import datasets
from core import types as t
from core.annotating.agreement import settled
from core.errors import AmbiscopeError, InputError
from storage.exchange.exports.files import manifest_path
from storage.exchange.filters import Filters
from storage.exchange.final_answers import LEFT_OUT
from storage.records.annotation import GenerationWork
from storage.records.projects import Project
from storage.store import Store

# ---------------------------------------------------------------- the round trip

NAMES = ("Ada", "Bob", "Cleo", "Dan")
ANSWER_SETS = (
    t.Annotation("none"),
    single("Natalie Wood"),
    t.Annotation("single", (t.QAPair("", ("Wood", "Natalie Wood")),)),
    single("Rachel Zegler"),
    multiple("Natalie Wood", "Rachel Zegler"),
    multiple("Rachel Zegler", "Natalie Wood"),
    multiple("Natalie Wood", "Rachel Zegler", question="Who starred as {}?"),
    t.Annotation(
        "multiple", (t.QAPair("Film?", ("a | b", "C\u00e9line\u00a0D."), ("p1",)), t.QAPair("Stage?", ('"x"\u2028y',)))
    ),
)
STEPS = {
    "open": 4,
    "write": 12,
    "draft": 2,
    "wait": 2,
    "validate": 8,
    "return": 1,
    "return validation": 1,
    "undo": 1,
    "judge": 3,
}
STAGES = (
    ("generation",),
    ("generation", "validation"),
    ("generation", "validation", "judging"),
    ("validation",),
    ("generation", "judging"),
)


def apply(store: Store, clock: Clock, chance: Random, items: list[str]) -> str:
    """A random step.  Raises AmbiscopeError where the project does not allow it."""
    (step,) = chance.choices(list(STEPS), list(STEPS.values()))
    person, number = chance.choice(NAMES), chance.randrange(len(items))
    item, agreeing = items[number], chance.random() < 0.6
    annotation = ANSWER_SETS[number] if agreeing else chance.choice(ANSWER_SETS)
    clock.pass_(minutes=300 if step == "wait" else 1)  # longer than an item stays reserved
    if step in ("open", "draft"):
        store.queue.claim_item(item, person, "generation")
        if step == "draft":
            store.drafts.save_draft(item, person, "generation", {"text": "half"})
    elif step == "write":
        with suppress(AmbiscopeError):  # others may have all its slots: who opened it before is late
            store.queue.claim_item(item, person, "generation")
        store.submissions.submit(item, person, "generation", GenerationWork(annotation), seconds=1)
    elif step == "validate":
        store.queue.claim_item(item, "Val", "validation")
        validate(store, item, "Val", annotation)
    elif step == "return":
        store.returns.return_item(item, person, "generation", "look again", by="Val")
    elif step == "return validation":
        store.returns.return_item(item, "Val", "validation", "look again", by="Val")
    elif step == "undo":
        store.returns.undo(item, person, "generation")
    elif step == "judge":
        store.queue.claim_item(item, person, "judging")
        store.submissions.submit(item, person, "judging", judge_all(store.reviews.judging_sheet(item, person)), seconds=1)
    return step


def finished(store: Store, parts: Project) -> dict[str, t.Annotation | None]:
    """Question -> the answer set that its item should come to, from the public methods alone; None: its annotators disagree.  Others are not
    finished."""
    outcome: dict[str, t.Annotation | None] = {}
    last = "validation" if "validation" in parts.stages else "generation"
    for item in store.items.items(parts.id, "Mia", stage=last, limit=500):
        if item.state != "done" or item.gold:
            continue
        counted = [s for s in store.submissions.submissions(parts.id, "Mia", item=item.id, stage=last) if s.counted]
        sets = [s.content.annotation for s in counted]
        if last == "validation" or len(sets) == 1:
            (outcome[item.question],) = sets
            continue
        result = settled(sets)
        outcome[item.question] = result[0] if result else None
    return outcome


def written_as(annotation: t.Annotation) -> dict[str, Any]:
    """AmbigNQ's form, made by hand."""
    if annotation.type == "none":
        return {"type": "noAnswer"}
    pairs = [{"question": p.question, "answer": list(p.answers)} for p in annotation.pairs]
    return (
        {"type": "singleAnswer", "answer": pairs[0]["answer"]}
        if annotation.type == "single"
        else {"type": "multipleQAs", "qaPairs": pairs}
    )


SEEN: Counter[str] = Counter()  # over all projects: that the random ones are worth something


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(
    stages=st.sampled_from(STAGES),
    people=st.integers(1, 3),
    with_gold=st.booleans(),
    chance=st.randoms(use_true_random=True),
)
def test_what_a_team_made_comes_out_once_and_survives_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory, stages: Any, people: int, with_gold: bool, chance: Random
) -> None:
    folder = tmp_path_factory.mktemp("round")
    with (
        pytest.MonkeyPatch.context() as patch,
        Store(f"sqlite:///{folder / 'a.db'}") as store,
        Store(f"sqlite:///{folder / 'b.db'}") as other,
    ):
        clock = Clock(patch)
        systems = ("fid",) if "judging" in stages else ()
        for number in range(5 * bool(systems)):
            answers = ["Natalie Wood", "Maria Lopez"]
            store.predictions.save_prediction(prediction(f"Who played part {number}?", answers, id=f"q{number}", system="fid"))
        parts = project(store, 4, stages=stages, systems=systems, annotators_per_item=people)
        if with_gold and stages != ("validation",):
            store.intake.add_items("Mia", parts.id, questions(1, start=4), gold=True)
        items = [item.id for item in store.items.items(parts.id, "Mia", stage=stages[0])]
        for _ in range(60):
            with suppress(AmbiscopeError):
                SEEN[apply(store, clock, chance, items)] += 1
        expected = finished(store, parts)
        rows = exported(store, "ambignq", folder / "a.json")
        assert {row["question"]: row["annotations"] for row in rows} == {
            question: [written_as(annotation)] for question, annotation in expected.items() if annotation is not None
        }
        assert len(rows) == len({row["id"] for row in rows})
        counts = json.loads(manifest_path(folder / "a.json").read_text())["counts"]
        assert counts["items_in_disagreement"] == sum(annotation is None for annotation in expected.values())
        assert len(rows) + sum(counts[name] for name in LEFT_OUT) == 4
        SEEN.update({name: counts[name] for name in LEFT_OUT} | {"finished": len(rows)})
        SEEN["late"] += sum(task.over for task in store.queue.tasks(parts.id, "Mia", limit=500))
        if rows:
            other.imports.import_file(folder / "a.json")
            other.exports.export("ambignq", folder / "b.json")
            assert (folder / "b.json").read_bytes() == (folder / "a.json").read_bytes()


@pytest.mark.slow
def test_the_random_projects_had_everything() -> None:
    assert not SEEN or not [name for name in (*STEPS, *LEFT_OUT, "finished", "late") if not SEEN[name]]


# ---------------------------------------------------------------- what is final


def test_the_only_one_else_the_one_that_most_agree_on() -> None:
    one, same, other = (
        single("Natalie Wood"),
        t.Annotation("single", (t.QAPair("", ("Wood", "natalie wood")),)),
        single("Carol"),
    )
    both = t.Annotation("single", (t.QAPair("", ("Natalie Wood", "Wood", "natalie wood")),))
    assert settled([one]) == (one, (0,))
    assert settled([one, same]) == (both, (0, 1))
    assert settled([other, one, same]) == (both, (1, 2))
    assert settled([one, other]) is None
    assert settled([one, other, t.Annotation("none")]) is None
    assert settled([t.Annotation("none")] * 2) == (t.Annotation("none"), (0, 1))
    assert settled([]) is None


def pilot(store: Store) -> Project:
    """Seven items of two annotators: agreed, agreed without an answer, validated, waiting for validation, sent back, half done, untouched."""
    parts = project(store, 7, stages=("generation", "validation"), annotators_per_item=2)
    items = [item.id for item in store.items.items(parts.id, "Mia", stage="generation")]
    words = [("Wood", "wood"), None, ("Wood", "Carol"), ("Wood", "Carol"), ("Wood", "Wood"), ("Wood",), ()]
    for item, answers in zip(items, words, strict=True):
        for person, answer in zip(("Ada", "Bob"), answers if answers is not None else (None, None), strict=False):
            store.queue.claim_item(item, person, "generation")
            content = work(answer) if answer else work()
            store.submissions.submit(item, person, "generation", content, seconds=1)
    store.queue.claim_item(items[2], "Val", "validation")
    validate(store, items[2], "Val", multiple("Wood", "Carol"))
    store.returns.return_item(items[4], "Bob", "generation", "look again", by="Val")
    return parts


PILOT = {"items_unfinished": 2, "items_sent_back": 1, "items_waiting_for_validation": 1, "items_in_disagreement": 0}


@pytest.mark.parametrize("stages", [(), ("validation",)])
def test_every_finished_item_is_in_every_format_once(store: Store, tmp_path: Path, stages: Any) -> None:
    """The command of the managers' guide (`--stage validation`) once left out what was validated by agreement."""
    parts = pilot(store)
    for format in ("ambignq", "ambignq-full", "training", "fid", "csv", "datasets"):
        out = tmp_path / format
        manifest = store.exports.export(format, out, filters=Filters(project=parts.id, stages=stages))
        assert {name: manifest.counts[name] for name in LEFT_OUT} == PILOT, format
        if format in ("ambignq", "ambignq-full"):
            assert [[a["type"] for a in row["annotations"]] for row in json.loads(out.read_text())] == [
                ["singleAnswer"],
                ["noAnswer"],
                ["multipleQAs"],
            ]
    assert [row["answers"] for row in exported(store, "fid", tmp_path / "fid.json", stages=stages)] == [
        [["Wood", "wood"]],
        [["Wood"], ["Carol"]],
    ]
    rows = exported(store, "csv", tmp_path / "a.csv", stages=stages)
    assert [(r["question_id"], r["annotator"], r["answers"], r["counts"]) for r in rows] == [
        ("q0", "Ada | Bob", "Wood | wood", "true"),
        ("q1", "Ada | Bob", "", "true"),
        ("q2", "Val", "Wood", "true"),
        ("q2", "Val", "Carol", "true"),
    ]
    snapshot = store.exports.take_snapshot(tmp_path / "snapshots", filters=Filters(project=parts.id, stages=stages))
    assert {counts["items_sent_back"] for name, counts in snapshot.counts.items() if name != "preferences"} == {1}


def test_all_contributions_say_whose_they_are_and_whether_they_count(store: Store, clock: Clock, tmp_path: Path) -> None:
    parts = pilot(store)
    clock.pass_(minutes=1)
    late = take(store, parts, "Cleo").item  # the one that was half done
    assert store.items.get_item(late, "Mia").question == "Who played part 5?"
    clock.pass_(days=1)
    do(store, parts, "Dan", "Carol")
    store.submissions.submit(late, "Cleo", "generation", work("Cleo's"), seconds=1)
    rows = exported(store, "csv", tmp_path / "a.csv", answers="all")
    written = {(r["question_id"], r["stage"], r["annotator"]): (r["version"], r["counts"]) for r in rows}
    assert written["q5", "generation", "Cleo"] == ("1", "false")  # late
    assert written["q4", "generation", "Bob"] == ("1", "false")  # sent back
    assert written["q4", "generation", "Ada"] == written["q2", "validation", "Val"] == ("1", "true")
    assert len(written) == 10 + 3 + 3  # five items of two, one of three, and three validations, of which two are by agreement
    file = tmp_path / "a.json"
    everything = {row["id"]: row["annotations"] for row in exported(store, "ambignq", file, answers="all")}
    assert [(a["annotator"], a["counts"]) for a in everything["q5"]] == [("Ada", True), ("Cleo", False), ("Dan", True)]
    read = {question.id: question for question in datasets.load(file)}
    assert len(read["q5"].annotations) == 2  # nobody is trained on what does not count


def test_judging_never_changes_what_somebody_wrote(store: Store, tmp_path: Path) -> None:
    """An annotator's single answer once became two answers whose questions were the prompt, as the same person had judged another one correct."""
    saved = store.predictions.save_prediction(
        prediction("Who played part 0?", ["Natalie Wood", "Carol", "Wood"], id="q0", clarified=False)
    )
    do(store, project(store, 1), "Ada", "Natalie Wood")
    for position, label in enumerate(("wrong", "correct", "duplicate")):
        store.labels.judge(saved, position, "Ada", label)
    expected = [{"type": "singleAnswer", "answer": ["Natalie Wood"]}]
    for answers in ("final", "all"):
        (row,) = exported(store, "ambignq", tmp_path / "a.json", answers=answers)
        assert [{name: a[name] for name in ("type", "answer")} for a in row["annotations"]] == expected
    rows = exported(store, "csv", tmp_path / "a.csv")
    assert [(r["stage"], r["answers"], r["verdict"], r["disambiguated_question"]) for r in rows] == [
        ("generation", "Natalie Wood", "", ""),
        ("judging", "Natalie Wood", "wrong", ""),
        ("judging", "Carol", "correct", ""),
        ("judging", "Wood", "duplicate", ""),
    ]
    (row,) = exported(store, "training", tmp_path / "t.jsonl")
    assert (row["answers"], row["negatives"]) == ([["Natalie Wood"]], [])


def test_labels_make_negatives_of_a_final_answer_set(store: Store, tmp_path: Path) -> None:
    saved = store.predictions.save_prediction(prediction("Who played part 0?", ["Rachel Zegler", "Maria", "Ann"], id="q0"))
    do(store, project(store, 1), "Ada", "Natalie Wood")
    for position, label in enumerate(("wrong", "correct", "outdated")):
        store.labels.judge(saved, position, "Bob", label)
    (row,) = exported(store, "training", tmp_path / "t.jsonl")
    assert (row["answers"], row["negatives"]) == ([["Natalie Wood"]], ["Rachel Zegler"])


def test_a_question_of_two_projects_has_a_final_answer_set_of_each(store: Store, tmp_path: Path) -> None:
    first, second = project(store, 1, name="first"), project(store, 1, name="second")
    do(store, first, "Ada", "Wood")
    do(store, second, "Ada", "Carol")
    annotate(store, "q0", "ambignq 1", single("Filed"))
    (row,) = exported(store, "ambignq", tmp_path / "a.json")
    assert [a["answer"] for a in row["annotations"]] == [["Filed"], ["Wood"], ["Carol"]]
    (row,) = exported(store, "ambignq", tmp_path / "a.json", project=first.id)
    assert [a["answer"] for a in row["annotations"]] == [["Wood"]]


def test_late_work_that_was_sent_back_keeps_no_item_waiting(store: Store, clock: Clock, tmp_path: Path) -> None:
    parts = project(store, 1)
    late = take(store, parts, "Ada").item
    clock.pass_(days=1)
    do(store, parts, "Bob", "Wood")
    store.submissions.submit(late, "Ada", "generation", work("Carol"), seconds=1)
    store.returns.return_item(late, "Ada", "generation", "too late", by="Val")
    (row,) = exported(store, "ambignq", tmp_path / "a.json")
    assert row["annotations"] == [{"type": "singleAnswer", "answer": ["Wood"]}]


def test_answers_are_final_or_all() -> None:
    with pytest.raises(InputError, match="use one of final, all"):
        Filters(answers="some")
