"""Who may do what: every method of the store, for everybody who may stand before its door."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import hash_quickly, work
from storage_samples import prediction

from core.errors import AmbiscopeError, NotAllowedError
from storage.access import passwords
from storage.access.permissions import ACTIONS, can
from storage.access.visitors import Visitor
from storage.records.annotation import SignedOutError
from storage.schema.engine import Part
from storage.store import SessionStore, Store

SECRET = "a long password"
ROLES = ("annotator", "validator", "manager")
NAMES = {"annotator": "Ann", "validator": "Val", "manager": "Mia"}
NOWHERE = "none"  # of a project, an item, a run: what is allowed ends in "there is none"
House = tuple[Store, dict[str, Visitor]]


def through(store: Store, visitor: Visitor | None) -> SessionStore:
    return SessionStore(store, lambda: visitor)


# method -> a call of it by `who` that does as little as it can; what is made is a prediction, a run, a project, or a file in `folder`
Call = Callable[[Any, str, Path], Any]
CALLS: dict[str, Call] = {
    "accounts_in_use": lambda s, who, folder: s.people.accounts_in_use(),
    "sign_in": lambda s, who, folder: s.people.sign_in("Mia", SECRET),
    "sign_in_subject": lambda s, who, folder: s.people.sign_in_subject("https://issuer mia"),
    "resume": lambda s, who, folder: s.people.resume("x"),
    "exchange": lambda s, who, folder: s.people.exchange("x"),
    "sign_out": lambda s, who, folder: s.people.sign_out(None),
    "sign_out_everywhere": lambda s, who, folder: s.people.sign_out_everywhere("Nobody"),
    "save_prediction": lambda s, who, folder: s.predictions.save_prediction(prediction(), key="again"),
    "find_prediction": lambda s, who, folder: s.predictions.find_prediction(NOWHERE),
    "get_prediction": lambda s, who, folder: s.predictions.get_prediction(NOWHERE),
    "recent_predictions": lambda s, who, folder: s.predictions.recent_predictions(),
    "judge": lambda s, who, folder: s.labels.judge(NOWHERE, 0, who, "correct"),
    "clear_judgment": lambda s, who, folder: s.labels.clear_judgment(NOWHERE, 0, who),
    "judgments": lambda s, who, folder: s.labels.judgments(NOWHERE),
    "judged_questions": lambda s, who, folder: s.labels.judged_questions(),
    "evaluations": lambda s, who, folder: s.evaluations.evaluations(),
    "count_evaluations": lambda s, who, folder: s.evaluations.count_evaluations(),
    "evaluation_choices": lambda s, who, folder: s.evaluations.evaluation_choices(),
    "evaluation_report": lambda s, who, folder: s.evaluations.evaluation_report(NOWHERE),
    "evaluation_rows": lambda s, who, folder: s.evaluations.evaluation_rows(NOWHERE),
    "count_evaluation_rows": lambda s, who, folder: s.evaluations.count_evaluation_rows(NOWHERE),
    "evaluation_row": lambda s, who, folder: s.evaluations.evaluation_row(NOWHERE, NOWHERE),
    "find_evaluation_trace": lambda s, who, folder: s.evaluations.find_evaluation_trace(NOWHERE, NOWHERE),
    "error_counts": lambda s, who, folder: s.evaluations.error_counts([NOWHERE]),
    "group_means": lambda s, who, folder: s.evaluations.group_means([NOWHERE], "F1 answer", "source"),
    "paired_rows": lambda s, who, folder: s.evaluations.paired_rows(NOWHERE, NOWHERE, "F1 answer"),
    "paired_values": lambda s, who, folder: s.evaluations.paired_values(NOWHERE, NOWHERE, "F1 answer"),
    "require": lambda s, who, folder: s.people.require(who),
    "projects": lambda s, who, folder: s.projects.projects(),
    "get_project": lambda s, who, folder: s.projects.get_project(NOWHERE),
    "find_project_named": lambda s, who, folder: s.projects.find_project_named(NOWHERE),
    "guidelines": lambda s, who, folder: s.projects.guidelines(NOWHERE),
    "next_item": lambda s, who, folder: s.queue.next_item(NOWHERE, who, "generation"),
    "claim_item": lambda s, who, folder: s.queue.claim_item(NOWHERE, who, "generation"),
    "release_item": lambda s, who, folder: s.queue.release_item(NOWHERE, who, "generation"),
    "skip_item": lambda s, who, folder: s.queue.skip_item(NOWHERE, who, "generation", "why"),
    "tasks": lambda s, who, folder: s.queue.tasks(NOWHERE, who, annotator=who),
    "save_draft": lambda s, who, folder: s.drafts.save_draft(NOWHERE, who, "generation", {}),
    "find_draft": lambda s, who, folder: s.drafts.find_draft(NOWHERE, who, "generation"),
    "log_search": lambda s, who, folder: s.drafts.log_search(NOWHERE, who, "generation", "x"),
    "log_view": lambda s, who, folder: s.drafts.log_view(NOWHERE, who, "generation", "p", "t"),
    "interactions": lambda s, who, folder: s.drafts.interactions(NOWHERE, who, "generation"),
    "get_item": lambda s, who, folder: s.items.get_item(NOWHERE, who),
    "suggestions": lambda s, who, folder: s.submissions.suggestions(NOWHERE, who),
    "judging_sheet": lambda s, who, folder: s.reviews.judging_sheet(NOWHERE, who),
    "mine_and_final": lambda s, who, folder: s.reviews.mine_and_final(NOWHERE, who),
    "submit": lambda s, who, folder: s.submissions.submit(NOWHERE, who, "generation", work("x"), seconds=1),
    "undo": lambda s, who, folder: s.returns.undo(NOWHERE, who, "generation"),
    "submissions": lambda s, who, folder: s.submissions.submissions(NOWHERE, who, annotator=who),
    "submission_history": lambda s, who, folder: s.submissions.submission_history(NOWHERE, who, "generation", who),
    "submitted": lambda s, who, folder: s.items.submitted(NOWHERE, who, "generation"),
    "progress": lambda s, who, folder: s.items.progress(NOWHERE, who, annotator=who),
    "activity": lambda s, who, folder: s.people.activity(who),
    "set_password": lambda s, who, folder: s.people.set_password(who, "Nobody" if who == "Mia" else who, SECRET, "wrong"),
    "validation_input": lambda s, who, folder: s.reviews.validation_input(NOWHERE, who),
    "comment": lambda s, who, folder: s.comments.comment(NOWHERE, who, "x"),
    "comments": lambda s, who, folder: s.comments.comments(NOWHERE, who),
    "progress_by_person": lambda s, who, folder: s.assignments.progress_by_person(NOWHERE, who),
    "return_item": lambda s, who, folder: s.returns.return_item(NOWHERE, "Ann", "generation", "why", who),
    "items": lambda s, who, folder: s.items.items(NOWHERE, who, stage="generation"),
    "people": lambda s, who, folder: s.people.people(who),
    "annotators": lambda s, who, folder: s.people.annotators(),
    "save_evaluation": lambda s, who, folder: s.evaluations.save_evaluation(
        system="x", corpus="x", questions="x", metrics={}, report={}
    ),
    "label_evaluation": lambda s, who, folder: s.evaluations.label_evaluation(NOWHERE, "mine"),
    "delete_evaluation": lambda s, who, folder: s.evaluations.delete_evaluation(NOWHERE),
    "create_project": lambda s, who, folder: s.projects.create_project(who, f"of {who}"),
    "update_project": lambda s, who, folder: s.projects.update_project(who, NOWHERE, 1, name="mine"),
    "add_items": lambda s, who, folder: s.intake.add_items(who, NOWHERE, []),
    "save_guidelines": lambda s, who, folder: s.projects.save_guidelines(who, NOWHERE, "x"),
    "guideline_versions": lambda s, who, folder: s.projects.guideline_versions(NOWHERE),
    "link_predictions": lambda s, who, folder: s.intake.link_predictions(who, NOWHERE),
    "unanswered": lambda s, who, folder: s.intake.unanswered(who, NOWHERE),
    "save_for_item": lambda s, who, folder: s.intake.save_for_item(who, NOWHERE, prediction()),
    "add_prediction": lambda s, who, folder: s.intake.add_prediction(who, NOWHERE, NOWHERE),
    "assign": lambda s, who, folder: s.assignments.assign(who, NOWHERE, "generation", {0: ["Ann"]}),
    "unassign": lambda s, who, folder: s.assignments.unassign(who, NOWHERE, "Ann"),
    "create_manager": lambda s, who, folder: s.people.create_manager(who, f"First by {who}", SECRET),
    "add_person": lambda s, who, folder: s.people.add_person(who, f"New by {who}", "manager"),
    "set_role": lambda s, who, folder: s.people.set_role(who, "Nobody", "manager"),
    "set_active": lambda s, who, folder: s.people.set_active(who, "Nobody", False),
    "set_subject": lambda s, who, folder: s.people.set_subject(who, "Nobody", None),
    "take_snapshot": lambda s, who, folder: s.exports.take_snapshot(folder / "snapshots", formats=("training",)),
    "snapshots": lambda s, who, folder: s.exports.snapshots(),
    "get_snapshot": lambda s, who, folder: s.exports.get_snapshot(99),
    "snapshot_files": lambda s, who, folder: s.exports.snapshot_files(99, folder),
    "export": lambda s, who, folder: s.exports.export("csv", folder / "out.csv"),
    "backup": lambda s, who, folder: s.maintenance.backup(folder / "copy.db"),
    "health": lambda s, who, folder: s.maintenance.health(),
}
# (class, method) -> its action; None: for the local operator
METHODS: dict[tuple[str, str], str | None] = {
    (kind.__name__, name): method.action  # type: ignore[attr-defined]
    for kind in Part.__subclasses__()
    for name, method in vars(kind).items()
    if not name.startswith("_") and callable(method)
}
ACTION_OF = {name: ACTIONS[action] for (_, name), action in METHODS.items() if action is not None}  # type: ignore[index]
GUARDED = [name for name in CALLS if ACTION_OF[name].role is not None]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A store with one person a role, and what stands before its door: a visitor for each role and each name of `OUT`."""
    with pytest.MonkeyPatch.context() as patch:
        hash_quickly(patch)
        with Store(f"sqlite:///{tmp_path_factory.mktemp('house') / 'a.db'}") as store:
            visitors = {"a tab from before": Visitor("Mia")}
            store.people.add_person("Mia", "Mia", "manager", SECRET)
            for role, name in NAMES.items():
                if name != "Mia":
                    store.people.add_person("Mia", name, role, SECRET)  # type: ignore[arg-type]
                visitors[role] = store.people.sign_in(name, SECRET)
            for name in ("Off", "Gone", "New", "Low", "Sub"):
                store.people.add_person("Mia", name, "manager", SECRET, subject=f"https://issuer {name}")
                visitors[name] = store.people.sign_in(name, SECRET)
            for name in ("Off", "Gone"):
                store.people.set_active("Mia", name, False)
            store.people.set_active("Mia", "Off", True)  # was away for a moment: signed out all the same
            store.people.set_password("Mia", "New", "another password")
            store.people.set_role("Mia", "Low", "annotator")
            store.people.set_subject("Mia", "Sub", "https://issuer else")
            visitors["made up"] = Visitor("Mia", visitors["manager"].account, "0" * 64)
            visitors["under another name"] = Visitor("Ann", visitors["manager"].account, visitors["manager"].key)
            yield store, visitors
        passwords._dummy_hash.cache_clear()


OUT = ("nobody", "a tab from before", "Gone", "Off", "New", "Low", "Sub", "made up", "under another name")


def test_every_method_of_the_store_is_tried(store: Store) -> None:
    assert len(METHODS) == len({name for _, name in METHODS}) > 70  # CALLS names them by their names alone
    assert {kind for kind, _ in METHODS} == {type(part).__name__ for part in vars(store).values() if isinstance(part, Part)}
    assert set(CALLS) == set(ACTION_OF)


def test_a_method_that_does_not_say_who_may_call_it_is_no_part_of_the_store() -> None:
    with pytest.raises(TypeError, match=r"Bad\.forgotten"):
        type("Bad", (Part,), {"forgotten": lambda self: None})


@pytest.mark.parametrize("name", OUT)
def test_nobody_acts_who_is_not_signed_in_as_they_are_now(house: House, name: str, tmp_path: Path) -> None:
    store, visitors = house
    visitor, before = visitors.get(name), store.maintenance.counts()
    allowed = []
    for method in GUARDED:
        try:
            CALLS[method](through(store, visitor), visitor.name if visitor else "Mia", tmp_path)
            allowed.append(method)
        except SignedOutError:
            pass
        except Exception as error:
            allowed.append(f"{method}: {error!r}")
    assert not allowed
    assert store.maintenance.counts() == before
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.parametrize("role", ROLES)
def test_every_action_asks_for_its_role(house: House, role: str, name: str, tmp_path: Path) -> None:
    store, visitors = house
    door, before = through(store, visitors[role]), store.maintenance.counts()
    needed = ACTION_OF[name].role
    assert needed is not None
    if not can(role, needed):
        with pytest.raises(NotAllowedError, match=f"needs the role {needed}"):
            CALLS[name](door, NAMES[role], tmp_path)
        assert store.maintenance.counts() == before
        assert not list(tmp_path.iterdir())
        return
    refused = False
    try:
        CALLS[name](door, NAMES[role], tmp_path)
    except AmbiscopeError as error:  # there is no such thing
        refused = isinstance(error, NotAllowedError)
    # their own old password was wrong; there is an account already; it is nobody of this name
    assert refused == ((name == "set_password" and role != "manager") or name in ("create_manager", "sign_out_everywhere"))


def test_what_is_the_operators_is_no_sessions(house: House, tmp_path: Path) -> None:
    store, visitors = house
    mia = through(store, visitors["manager"])
    calls: dict[str, Callable[[], Any]] = {
        "counts": mia.maintenance.counts,
        "import_file": lambda: mia.imports.import_file(tmp_path / "no file"),
    }
    assert set(calls) == {name for (_, name), action in METHODS.items() if action is None}
    for call in (*calls.values(), lambda: mia.people.reading().__enter__(), lambda: mia.people.database.writing().__enter__()):
        with pytest.raises(NotAllowedError, match="local operator"):
            call()
    for name in ("database", "close", "guarded"):
        with pytest.raises(AttributeError):
            getattr(mia, name)


@pytest.mark.parametrize("action", [a for a in ACTIONS if ACTIONS[a].role is not None])
def test_what_is_done_outside_of_the_store_asks_the_same_table(house: House, action: Any) -> None:
    store, visitors = house
    for name in OUT:
        door = through(store, visitors.get(name))
        assert not door.may(action)
        for call in (lambda: door.allow(action), lambda: door.store_for(action).database.writing().__enter__()):  # noqa: B023
            with pytest.raises(SignedOutError):
                call()
    for role in ROLES:
        assert through(store, visitors[role]).may(action) == can(role, ACTIONS[action].role or "")


def test_nothing_is_done_in_anothers_name(house: House) -> None:
    store, visitors = house
    mia = through(store, visitors["manager"])
    saved = store.predictions.save_prediction(prediction())
    for call in (
        lambda: mia.labels.judge(saved, 0, "Ann", "wrong"),
        lambda: mia.labels.clear_judgment(saved, 0, "Ann"),
        lambda: mia.projects.create_project("Val", "mine"),
        lambda: mia.queue.next_item(NOWHERE, "Ann", "generation"),
        lambda: mia.submissions.submit(NOWHERE, "Ann", "generation", work("x"), seconds=1),
        lambda: mia.people.add_person("Val", "Eve", "manager"),
        lambda: mia.people.activity("Ann"),
    ):
        with pytest.raises(NotAllowedError, match="in the name of"):
            call()
    mia.labels.judge(saved, 0, "Mia", "correct")
    assert [j.annotator for j in store.labels.judgments(saved)] == ["Mia"]


def test_an_open_house_stays_as_easy_as_it_was(store: Store) -> None:
    door = through(store, Visitor("Ada"))
    made = door.projects.create_project("Ada", "parts")
    assert door.people.require("Ada", "manager").role == "manager"
    with pytest.raises(NotAllowedError, match="in the name of"):
        door.projects.create_project("Bob", "other")
    assert [p.id for p in door.projects.projects()] == [made.id]
    with pytest.raises(SignedOutError):
        through(store, None).projects.projects()


def test_the_security_notes_hold_the_table() -> None:
    text = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.endswith((" yes |", " no |"))]
    expected = []
    for name, action in ACTIONS.items():
        may = [action.role is None, *(action.role is None or can(role, action.role) for role in ROLES)]
        expected.append(f"| {name} | {action.about} | {' | '.join('yes' if m else 'no' for m in may)} |")
    assert table == expected
