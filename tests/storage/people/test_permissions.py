"""Who may do what: every method of the store, for everybody who may stand before its door."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import project, work
from argon2 import PasswordHasher
from storage_samples import prediction

from core.errors import AmbiscopeError, NotAllowedError
from storage.people import passwords
from storage.people.door import Door
from storage.people.permissions import ACTION_OF, ACTIONS, can
from storage.people.visitors import Visitor
from storage.records.annotation import SignedOutError
from storage.schema import engine
from storage.store import Store

SECRET = "a long password"
ROLES = ("annotator", "validator", "manager")
NAMES = {"annotator": "Ann", "validator": "Val", "manager": "Mia"}
NOWHERE = "none"  # of a project, an item, a run: what is allowed ends in "there is none"

# for the local operator: no page calls them
OPERATORS = {
    "add_question",
    "annotator",
    "close",
    "counts",
    "find_question",
    "import_file",
    "questions",
    "reading",
    "writing",
}


def through(store: Store, visitor: Visitor | None) -> Door:
    return Door(store, lambda: visitor)


# method -> a call of it by `who` that does as little as it can; what is made is a prediction, a run, a project, or a file in `folder`
Call = Callable[[Any, str, Path], Any]
CALLS: dict[str, Call] = {
    "accounts_in_use": lambda s, who, folder: s.accounts_in_use(),
    "sign_in": lambda s, who, folder: s.sign_in("Mia", SECRET),
    "sign_in_subject": lambda s, who, folder: s.sign_in_subject("https://issuer mia"),
    "save_prediction": lambda s, who, folder: s.save_prediction(prediction(), key="again"),
    "find_prediction": lambda s, who, folder: s.find_prediction(NOWHERE),
    "get_prediction": lambda s, who, folder: s.get_prediction(NOWHERE),
    "recent_predictions": lambda s, who, folder: s.recent_predictions(),
    "judge": lambda s, who, folder: s.judge(NOWHERE, 0, who, "correct"),
    "clear_judgment": lambda s, who, folder: s.clear_judgment(NOWHERE, 0, who),
    "judgments": lambda s, who, folder: s.judgments(NOWHERE),
    "evaluations": lambda s, who, folder: s.evaluations(),
    "count_evaluations": lambda s, who, folder: s.count_evaluations(),
    "evaluation_choices": lambda s, who, folder: s.evaluation_choices(),
    "evaluation_report": lambda s, who, folder: s.evaluation_report(NOWHERE),
    "get_evaluation": lambda s, who, folder: s.get_evaluation(NOWHERE),
    "evaluation_rows": lambda s, who, folder: s.evaluation_rows(NOWHERE),
    "count_evaluation_rows": lambda s, who, folder: s.count_evaluation_rows(NOWHERE),
    "evaluation_row": lambda s, who, folder: s.evaluation_row(NOWHERE, NOWHERE),
    "find_evaluation_trace": lambda s, who, folder: s.find_evaluation_trace(NOWHERE, NOWHERE),
    "error_counts": lambda s, who, folder: s.error_counts([NOWHERE]),
    "group_means": lambda s, who, folder: s.group_means([NOWHERE], "F1 answer", "source"),
    "paired_rows": lambda s, who, folder: s.paired_rows(NOWHERE, NOWHERE, "F1 answer"),
    "paired_values": lambda s, who, folder: s.paired_values(NOWHERE, NOWHERE, "F1 answer"),
    "require": lambda s, who, folder: s.require(who),
    "person": lambda s, who, folder: s.person(who),
    "projects": lambda s, who, folder: s.projects(),
    "get_project": lambda s, who, folder: s.get_project(NOWHERE),
    "find_project_named": lambda s, who, folder: s.find_project_named(NOWHERE),
    "guidelines": lambda s, who, folder: s.guidelines(NOWHERE),
    "qualification": lambda s, who, folder: s.qualification(NOWHERE, who),
    "next_item": lambda s, who, folder: s.next_item(NOWHERE, who, "generation"),
    "claim_item": lambda s, who, folder: s.claim_item(NOWHERE, who, "generation"),
    "release_item": lambda s, who, folder: s.release_item(NOWHERE, who, "generation"),
    "skip_item": lambda s, who, folder: s.skip_item(NOWHERE, who, "generation", "why"),
    "find_task": lambda s, who, folder: s.find_task(NOWHERE, who, "generation"),
    "tasks": lambda s, who, folder: s.tasks(NOWHERE, who, annotator=who),
    "save_draft": lambda s, who, folder: s.save_draft(NOWHERE, who, "generation", {}),
    "find_draft": lambda s, who, folder: s.find_draft(NOWHERE, who, "generation"),
    "drafts": lambda s, who, folder: s.drafts(who),
    "log_search": lambda s, who, folder: s.log_search(NOWHERE, who, "generation", "x"),
    "log_view": lambda s, who, folder: s.log_view(NOWHERE, who, "generation", "p", "t"),
    "interactions": lambda s, who, folder: s.interactions(NOWHERE, who, "generation"),
    "get_item": lambda s, who, folder: s.get_item(NOWHERE, who),
    "suggestions": lambda s, who, folder: s.suggestions(NOWHERE, who),
    "judging_sheet": lambda s, who, folder: s.judging_sheet(NOWHERE, who),
    "mine_and_final": lambda s, who, folder: s.mine_and_final(NOWHERE, who),
    "submit": lambda s, who, folder: s.submit(NOWHERE, who, "generation", work("x"), seconds=1),
    "undo": lambda s, who, folder: s.undo(NOWHERE, who, "generation"),
    "submissions": lambda s, who, folder: s.submissions(NOWHERE, who, annotator=who),
    "submission_history": lambda s, who, folder: s.submission_history(NOWHERE, who, "generation", who),
    "submitted": lambda s, who, folder: s.submitted(NOWHERE, who, "generation"),
    "progress": lambda s, who, folder: s.progress(NOWHERE, who, annotator=who),
    "activity": lambda s, who, folder: s.activity(who),
    "set_password": lambda s, who, folder: s.set_password(who, "Nobody" if who == "Mia" else who, SECRET, "wrong"),
    "validation_input": lambda s, who, folder: s.validation_input(NOWHERE, who),
    "return_item": lambda s, who, folder: s.return_item(NOWHERE, "Ann", "generation", "why", who),
    "items": lambda s, who, folder: s.items(NOWHERE, who, stage="generation"),
    "people": lambda s, who, folder: s.people(who),
    "annotators": lambda s, who, folder: s.annotators(),
    "save_evaluation": lambda s, who, folder: s.save_evaluation(system="x", corpus="x", questions="x", metrics={}, report={}),
    "label_evaluation": lambda s, who, folder: s.label_evaluation(NOWHERE, "mine"),
    "delete_evaluation": lambda s, who, folder: s.delete_evaluation(NOWHERE),
    "create_project": lambda s, who, folder: s.create_project(who, f"of {who}"),
    "update_project": lambda s, who, folder: s.update_project(who, NOWHERE, 1, name="mine"),
    "add_items": lambda s, who, folder: s.add_items(who, NOWHERE, []),
    "set_gold": lambda s, who, folder: s.set_gold(who, NOWHERE, None),
    "save_guidelines": lambda s, who, folder: s.save_guidelines(who, NOWHERE, "x"),
    "guideline_versions": lambda s, who, folder: s.guideline_versions(NOWHERE),
    "link_predictions": lambda s, who, folder: s.link_predictions(who, NOWHERE),
    "unanswered": lambda s, who, folder: s.unanswered(who, NOWHERE),
    "save_for_item": lambda s, who, folder: s.save_for_item(who, NOWHERE, prediction()),
    "admit": lambda s, who, folder: s.admit(who, NOWHERE, "Ann", True),
    "add_person": lambda s, who, folder: s.add_person(who, f"New by {who}", "manager"),
    "set_role": lambda s, who, folder: s.set_role(who, "Nobody", "manager"),
    "set_active": lambda s, who, folder: s.set_active(who, "Nobody", False),
    "set_subject": lambda s, who, folder: s.set_subject(who, "Nobody", None),
    "take_snapshot": lambda s, who, folder: s.take_snapshot(folder / "snapshots", formats=("training",)),
    "snapshots": lambda s, who, folder: s.snapshots(),
    "get_snapshot": lambda s, who, folder: s.get_snapshot(99),
    "snapshot_files": lambda s, who, folder: s.snapshot_files(99, folder),
    "export": lambda s, who, folder: s.export("csv", folder / "out.csv"),
    "exports": lambda s, who, folder: s.exports(),
    "backup": lambda s, who, folder: s.backup(folder / "copy.db"),
    "health": lambda s, who, folder: s.health(),
}
GUARDED = [name for name in CALLS if ACTION_OF[name].role is not None]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, dict[str, Visitor]]]:
    """A store with one person a role, and what stands before its door: a visitor for each name of `WHO`."""
    with pytest.MonkeyPatch.context() as patch:
        quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        patch.setattr(passwords, "_hasher", lambda: quick)
        patch.setattr(engine, "SYNCHRONOUS", "OFF")
        passwords._nobodys_hash.cache_clear()
        with Store(f"sqlite:///{tmp_path_factory.mktemp('house') / 'a.db'}") as store:
            visitors = {"a tab from before": Visitor("Mia")}
            store.add_person("Mia", "Mia", "manager", SECRET)
            for name, role in (("Ann", "annotator"), ("Val", "validator"), ("Mia", "manager")):
                if name != "Mia":
                    store.add_person("Mia", name, role, SECRET)  # type: ignore[arg-type]
                visitors[role] = store.sign_in(name, SECRET)
            for name in ("Off", "New", "Low", "Sub"):
                store.add_person("Mia", name, "manager", SECRET, subject=f"https://issuer {name}")
                visitors[name] = store.sign_in(name, SECRET)
            store.set_active("Mia", "Off", False)
            store.set_active("Mia", "Off", True)  # was away for a moment: signed out all the same
            store.add_person("Mia", "Gone", "manager", SECRET)
            visitors["Gone"] = store.sign_in("Gone", SECRET)
            store.set_active("Mia", "Gone", False)
            store.set_password("Mia", "New", "another password")
            store.set_role("Mia", "Low", "annotator")
            store.set_subject("Mia", "Sub", "https://issuer else")
            visitors["made up"] = Visitor("Mia", visitors["manager"].account, "0" * 64)
            visitors["under another name"] = Visitor("Ann", visitors["manager"].account, visitors["manager"].epoch)
            yield store, visitors
        passwords._nobodys_hash.cache_clear()


OUT = ("nobody", "a tab from before", "Gone", "Off", "New", "Low", "Sub", "made up", "under another name")


def test_every_method_is_an_actions_or_the_operators() -> None:
    public = {name for name, _ in inspect.getmembers(Store, inspect.isfunction) if not name.startswith("_")}
    assert public == set(ACTION_OF) | OPERATORS
    assert not set(ACTION_OF) & OPERATORS
    assert sum(len(a.calls) for a in ACTIONS.values()) == len(ACTION_OF)  # none is in two
    assert set(CALLS) == set(ACTION_OF)


@pytest.mark.parametrize("who", OUT)
def test_nobody_acts_who_is_not_signed_in_as_they_are_now(
    house: tuple[Store, dict[str, Visitor]], who: str, tmp_path: Path
) -> None:
    store, visitors = house
    visitor, before = visitors.get(who), store.counts()
    allowed = []
    for name in GUARDED:
        try:
            CALLS[name](through(store, visitor), visitor.name if visitor else "Mia", tmp_path)
            allowed.append(name)
        except SignedOutError:
            pass
        except Exception as error:
            allowed.append(f"{name}: {error!r}")
    assert not allowed
    assert store.counts() == before
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.parametrize("role", ROLES)
def test_every_action_asks_for_its_role(house: tuple[Store, dict[str, Visitor]], role: str, name: str, tmp_path: Path) -> None:
    store, visitors = house
    door, before = through(store, visitors[role]), store.counts()
    needed = ACTION_OF[name].role
    assert needed is not None
    if not can(role, needed):
        with pytest.raises(NotAllowedError, match=f"needs the role {needed}"):
            CALLS[name](door, NAMES[role], tmp_path)
        assert store.counts() == before
        assert not list(tmp_path.iterdir())
        return
    try:
        CALLS[name](door, NAMES[role], tmp_path)
    except AmbiscopeError as error:  # there is no such thing
        refused = isinstance(error, NotAllowedError)
    else:
        refused = False
    assert refused == (name == "set_password" and role != "manager")  # their own old password was wrong


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_what_is_the_operators_is_no_sessions(house: tuple[Store, dict[str, Visitor]], name: str) -> None:
    store, visitors = house
    with pytest.raises(NotAllowedError, match="local operator"):
        getattr(through(store, visitors["manager"]), name)
    with pytest.raises(AttributeError):
        through(store, visitors["manager"])._reads  # noqa: B018


@pytest.mark.parametrize("action", [a for a in ACTIONS if ACTIONS[a].role is not None])
def test_what_is_done_outside_of_the_store_asks_the_same_table(house: tuple[Store, dict[str, Visitor]], action: Any) -> None:
    store, visitors = house
    for who in OUT:
        door = through(store, visitors.get(who))
        assert not door.may(action)
        for call in (lambda: door.allow(action), lambda: door.lent(action).writing().__enter__()):  # noqa: B023
            with pytest.raises(SignedOutError):
                call()
    for role in ROLES:
        assert through(store, visitors[role]).may(action) == can(role, ACTIONS[action].role or "")


def test_nothing_is_done_in_anothers_name(house: tuple[Store, dict[str, Visitor]], tmp_path: Path) -> None:
    store, visitors = house
    mia = through(store, visitors["manager"])
    saved = store.save_prediction(prediction())
    for call in (
        lambda: mia.judge(saved, 0, "Ann", "wrong"),
        lambda: mia.clear_judgment(saved, 0, "Ann"),
        lambda: mia.create_project("Val", "mine"),
        lambda: mia.next_item(NOWHERE, "Ann", "generation"),
        lambda: mia.submit(NOWHERE, "Ann", "generation", work("x"), seconds=1),
        lambda: mia.add_person("Val", "Eve", "manager"),
        lambda: mia.activity("Ann"),
    ):
        with pytest.raises(NotAllowedError, match="in the name of"):
            call()
    mia.judge(saved, 0, "Mia", "correct")
    assert [j.annotator for j in store.judgments(saved)] == ["Mia"]
    assert mia.admit("Mia", project(store, 0, by="Mia").id, "Ann", True).passed  # about somebody is not as somebody


def test_an_open_house_stays_as_easy_as_it_was(store: Store) -> None:
    door = through(store, Visitor("Ada"))
    made = door.create_project("Ada", "parts")
    assert door.require("Ada", "manager").role == "manager"
    with pytest.raises(NotAllowedError, match="in the name of"):
        door.create_project("Bob", "other")
    assert [p.id for p in door.projects()] == [made.id]
    with pytest.raises(SignedOutError):
        through(store, None).projects()


def test_the_tab_that_was_open_before_makes_no_manager(store: Store) -> None:
    tab = through(store, Visitor("me"))
    tab.add_person("me", "Mia", "manager", SECRET)
    for call in (
        lambda: tab.add_person("Mia", "Eve", "manager", SECRET),
        lambda: through(store, Visitor("Mia")).add_person("Mia", "Eve", "manager", SECRET),
    ):
        with pytest.raises(SignedOutError):
            call()
    assert [p.name for p in store.people("Mia")] == ["me", "Mia"]


def test_the_epoch_is_of_the_state_and_shown_nowhere(store: Store) -> None:
    store.add_person("Ada", "Ada", "manager", SECRET)
    first, second = store.sign_in("Ada", SECRET), store.sign_in("Ada", SECRET)
    assert first == second  # two tabs, both stand
    assert first.epoch not in repr(first)
    store.set_password("Ada", "Ada", "another password", SECRET)
    assert not through(store, first).may("annotate")
    assert through(store, store.sign_in("Ada", "another password")).may("annotate")


def test_the_security_notes_hold_the_table() -> None:
    text = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
    found = [line for line in text.splitlines() if line.endswith((" yes |", " no |"))]
    wanted = []
    for name, action in ACTIONS.items():
        may = [action.role is None, *(action.role is None or can(role, action.role) for role in ROLES)]
        wanted.append(f"| {name} | {action.about} | {' | '.join('yes' if m else 'no' for m in may)} |")
    assert found == wanted
