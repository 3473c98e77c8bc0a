"""Permissions: every method of the store, called by every kind of person."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import hash_quickly, work
from storage_samples import prediction

from core.errors import AmbiscopeError, NotAllowedError
from storage.access import passwords
from storage.access.permissions import ACTIONS, can
from storage.access.sign_ins import Visitor
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


# (class, method) -> its action; None: for the local operator
METHODS: dict[tuple[str, str], str | None] = {
    (kind.__name__, name): method.action
    for kind in Part.__subclasses__()
    for name, method in vars(kind).items()
    if not name.startswith("_") and callable(method)
}
# method that asks for a role -> its part, the least role
GUARDED = {
    name: (part.lower(), role)
    for (part, name), action in METHODS.items()
    if action is not None and (role := ACTIONS[action].role)
}


def call(door: SessionStore, method: str, who: str, folder: Path) -> Any:
    """Calls a method by `who`, with what it needs at least; what is made is a prediction, a run, a project, or a file in `folder`."""
    values: dict[str, Any] = {
        "limit": 1,
        **dict.fromkeys(("user", "annotator", "by"), who),
        **dict.fromkeys(("project", "item", "prediction_id", "evaluation_id", "question_id", "a", "b"), NOWHERE),
        **dict.fromkeys(("text", "query", "passage_id", "title", "reason", "system", "corpus"), "x"),
        **dict.fromkeys(("name", "person"), "Nobody"),
        "body": {},
        "metrics": {},
        "report": {},
        "role": "manager",
        "password": SECRET,
        "subject": None,
        "active": False,
        "stage": "generation",
        "people": {0: ["Ann"]},
        "questions": [],
        "prediction": prediction(),
        "content": work("x"),
        "seconds": 1,
        "position": 0,
        "comment": 99,
        "items": [NOWHERE],
        "label": "correct",
        "expected_version": 1,
        "evaluation_ids": [NOWHERE],
        "metric": "F1 answer",
        "grouping": "source",
        "number": 99,
        "format": "csv",
        "out": folder / "out",
        "folder": folder / "snapshots",
    }
    special: dict[str, dict[str, Any]] = {
        "add_person": {"name": f"New by {who}"},
        "create_manager": {"name": f"First by {who}", "password": SECRET},
        "create_project": {"name": f"of {who}"},
        "return_item": {"annotator": "Ann"},
        "save_evaluation": {"questions": "x"},
        "set_password": {"name": "Nobody" if who == "Mia" else who, "old": "wrong"},
        "sign_out_everywhere": {"user": "Nobody"},
        "take_snapshot": {"formats": ("training",)},
    }
    act = getattr(getattr(door, GUARDED[method][0]), method)
    needed = [
        p.name
        for p in inspect.signature(act).parameters.values()
        if p.kind is not p.VAR_KEYWORD and (p.default is p.empty or p.name in ("annotator", "out"))
    ]
    return act(**{name: values[name] for name in needed} | special.get(method, {}))


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
                    store.people.add_person("Mia", name, role, SECRET)
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
    assert len(METHODS) == len({name for _, name in METHODS}) > 70  # GUARDED names them by their names alone
    assert len(GUARDED) > 65
    assert {kind for kind, _ in METHODS} == {type(part).__name__ for part in vars(store).values() if isinstance(part, Part)}


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
            call(through(store, visitor), method, visitor.name if visitor else "Mia", tmp_path)
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
    _, needed = GUARDED[name]
    if not can(role, needed):
        with pytest.raises(NotAllowedError, match=f"needs the role {needed}"):
            call(door, name, NAMES[role], tmp_path)
        assert store.maintenance.counts() == before
        assert not list(tmp_path.iterdir())
        return
    refused = False
    try:
        call(door, name, NAMES[role], tmp_path)
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


def test_without_accounts_a_session_manages_under_its_own_name(store: Store) -> None:
    door = through(store, Visitor("Ada"))
    assert door.projects.create_project("Ada", "parts")
    with pytest.raises(NotAllowedError, match="in the name of"):
        door.projects.create_project("Bob", "other")
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
