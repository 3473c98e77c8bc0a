"""Permissions on the pages: tabs whose sign-in has ended, roles, and a database that fails."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import people
import pytest
from annotate_helpers import predict
from page_helpers import QUESTION, TIMEOUT, Open, ask, button, texts
from people import PASSWORD
from streamlit.testing.v1 import AppTest
from test_evaluate import save, show

from core.errors import StorageError
from core.settings import ROOT, Settings
from pages.session import shared
from pages.session.background import all_jobs
from storage.access.people import People
from storage.access.permissions import ACTIONS, can
from storage.access.sign_ins import Visitor
from storage.records.annotation import SignedOutError, SignInError
from storage.schema.engine import Database
from storage.store import Store

PAGES = ROOT / "pages"


def signed_in(store: Store, name: str, role: Any) -> Visitor:
    by = "Mia" if store.people.accounts_in_use() else "me"
    return store.people.sign_in(people.add(store, by, name, role), PASSWORD)


# ---------------------------------------------------------------- tabs whose sign-in stands no more

# what a tab of a manager is about to do: page, and what is filled in and clicked


def _people(app: AppTest) -> None:
    app.text_input(key="people:first.name").set_value("Eve")
    app.text_input(key="people:first.password").set_value(PASSWORD)
    button(app, "Create the manager account").click()


def _delete_corpus(app: AppTest) -> None:
    app.text_input(key="corpora.typed.small").set_value("small")
    button(app, "Delete corpus").click()


Step = tuple[str, Callable[[AppTest], AppTest], Callable[[AppTest], None]]
STEPS: dict[str, Step] = {
    "adds a manager": ("manage", lambda app: app, _people),
    "deletes a corpus": ("corpora", lambda app: app.selectbox(key="corpora.chosen").set_value("small").run(), _delete_corpus),
}


def everything(store: Store, settings: Settings) -> Any:
    """Everything that must not change: rows, names of people, files (the database's own aside)."""
    counts = {name: n for name, n in store.maintenance.counts().items() if name not in ("activity", "sign_in_wait")}
    files = sorted(str(p) for p in settings.home.rglob("*") if not p.name.startswith("ambiscope.db"))
    return counts, store.people.annotators(), files


@pytest.fixture
def filled(store: Store, corpus: str) -> str:
    """A corpus, a run and a prediction; returns the prediction's id."""
    save(store, label="first")
    return store.predictions.save_prediction(predict(QUESTION))


@pytest.mark.parametrize("what", STEPS)
def test_a_tab_from_before_there_were_accounts_does_nothing(
    filled: str, open_app: Open, store: Store, settings: Settings, what: str
) -> None:
    page, look, do = STEPS[what]
    # under the name that is a manager's afterwards: it helps nobody
    app = look(open_app(page, me="Mia"))
    assert not app.exception
    people.manager(store)
    before = everything(store, settings)
    do(app)
    app.run()
    assert not app.exception
    assert everything(store, settings) == before
    assert not people.signed_in(app)
    assert not all_jobs()


def test_who_was_changed_is_out_at_the_next_rerun(filled: str, open_app: Open, store: Store, settings: Settings) -> None:
    page, look, do = STEPS["deletes a corpus"]
    mia = signed_in(store, "Mia", "manager")
    people.add(store, "Mia", "Ada", "manager")
    app = look(open_app(page, mia))
    other = open_app(visitor=mia)
    assert "**Mia**" in texts(other)
    store.people.set_role("Ada", "Mia", "annotator")
    before = everything(store, settings)
    do(app)
    for one in (app.run(), other.run()):
        assert not one.exception
        assert not people.signed_in(one)
        assert "sign in again" in one.error[0].value
        assert shared.VISITOR_KEY not in one.session_state
        assert not one.dataframe
    assert everything(store, settings) == before
    people.sign_in(app, "Ada")
    assert "**Ada**" in texts(app)


def test_changing_ones_password_keeps_this_tab_and_ends_the_others(open_app: Open, store: Store) -> None:
    mia = signed_in(store, "Mia", "manager")
    app, other = open_app(visitor=mia), open_app(visitor=mia)
    app.text_input(key="signin.change.old").set_value(PASSWORD)
    app.text_input(key="signin.change.password").set_value("another password")
    button(app, "Change password").click().run()
    assert "Your password was changed" in texts(app)
    assert "**Mia**" in texts(app)
    assert "sign in again" in other.run().error[0].value


@pytest.mark.parametrize("back", ["Mia", "Ada"])
def test_what_was_typed_waits_for_the_person_who_typed_it(corpus: str, open_app: Open, store: Store, back: str) -> None:
    app = open_app(visitor=signed_in(store, "Mia", "manager"))
    people.add(store, "Mia", "Ada", "annotator")
    store.people.sign_out_everywhere("Mia")
    assert not people.signed_in(ask(app))
    people.sign_in(app, back)
    assert app.text_input(key="explore.question").value == (QUESTION if back == "Mia" else "")


def test_signing_out_leaves_nothing_in_the_tab(filled: str, open_app: Open, store: Store) -> None:
    app = open_app(visitor=signed_in(store, "Mia", "manager"), prediction=filled)
    app.session_state["left.behind"] = "work of Mia"
    button(app, "Sign out").click().run()
    assert not people.signed_in(app)
    assert "left.behind" not in app.session_state
    app.session_state["left.behind"] = "planted by a stranger"
    people.sign_in(app, "Mia")
    assert "**Mia**" in texts(app)
    assert "left.behind" not in app.session_state


# ---------------------------------------------------------------- roles


@pytest.mark.parametrize("role", ["annotator", "validator", "manager"])
def test_each_role_is_shown_what_it_may_do(filled: str, open_app: Open, store: Store, role: str) -> None:
    mia = signed_in(store, "Mia", "manager")
    manager = role == "manager"
    app = open_app(visitor=mia if manager else signed_in(store, "Ann", role))
    assert not app.error

    def errors(page: str = "") -> str:
        if page:
            app.switch_page(f"pages/{page}/page.py").run()
        assert not app.exception
        return " ".join(e.value for e in app.error)

    def buttons() -> set[str]:
        return {b.label for b in app.button}

    for page in ("annotate", "corpora", "evaluate"):
        assert errors(page) == ""
    for page in ("manage", "health"):
        assert ("needs the role manager" in errors(page)) != manager
    assert ("needs the role validator" in errors("quality")) == (role == "annotator")
    assert ("Take snapshot" in buttons()) == manager
    errors("corpora")
    app.selectbox(key="corpora.chosen").set_value("small").run()
    assert [label in buttons() for label in ("Delete corpus", "Upload and build")] == [manager, manager]
    errors("evaluate")
    show(app, "One run")
    assert not app.error
    assert [label in buttons() for label in ("Rename", "Delete")] == [manager, manager]
    show(app, "Start and store")
    assert ("needs the role manager" in errors()) != manager
    assert ("Start evaluation" in buttons()) == manager


def _actions() -> None:
    """A script: tries every action as each of the visitors, and says which were done."""
    from unittest.mock import patch

    import streamlit as st

    from pages.session.actions import ERROR, action
    from storage.access.permissions import ACTIONS

    done: dict[str, list[str]] = {}
    for who, visitor in st.session_state["visitors"].items():
        with patch("pages.session.shared.visitor", lambda visitor=visitor: visitor):
            for name in ACTIONS:
                action(name)(done.setdefault(who, []).append)(name)
                st.session_state[f"refused.{who}.{name}"] = st.session_state.pop(ERROR, None)
    st.session_state["done"] = done


def test_every_action_asks_the_table(store: Store) -> None:
    visitors: dict[str, Visitor | None] = {"from before": Visitor("me"), "nobody": None}
    for role, name in (("manager", "Mia"), ("validator", "Val"), ("annotator", "Ann")):
        visitors[role] = signed_in(store, name, role)
    app = AppTest.from_function(_actions, default_timeout=TIMEOUT)
    app.session_state["visitors"] = visitors
    app.run()
    assert not app.exception
    for visitor in visitors:
        role = visitor if visitor in ("annotator", "validator", "manager") else ""
        allowed = [name for name, action in ACTIONS.items() if action.role is None or (role and can(role, action.role))]
        assert app.session_state["done"].get(visitor) == allowed, visitor
        if not role:
            assert isinstance(app.session_state[f"refused.{visitor}.delete corpora"], SignedOutError)


# ---------------------------------------------------------------- one door

# who does these without `@action` is found: ends of what is called
STRONG = (
    *("library.delete", "library.create", "engine.forget"),
    *("corpus_builds.discard_uploads", "corpus_builds.save_upload"),
    *(".stop", "rmtree", ".unlink", ".write_bytes"),
    *("import_run", "servers_store", "Store", "_engine"),
)
# below the pages' callbacks: workers, caches, the gate's own
BELOW = {
    *("session/shared.py", "server/server.py", "server/admission.py", "server/sign_in_cookie.py"),
    *("corpora/builds.py", "explore/runner.py"),
}
# functions that only actions, or drawings of one's own work, call
KNOWN = {
    "session/sign_in.py": {"gate"},  # st.stop
    "explore/live.py": {"drop", "stop"},  # runs of this tab
    "session/background.py": {"stop"},  # asks itself, as each kind of work has its own action
    "session/retraining.py": {"start"},  # asks itself
    "evaluate/start_form.py": {"begin"},  # asks itself
    "session/evaluations.py": {"run_and_store"},  # its work
}


def _strong(tree: ast.AST) -> set[str]:
    used = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)]
    used += [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr in ("servers_store", "_engine")]
    names = {f".{ast.unparse(n)}" for n in used}
    return {s for s in STRONG if any(name.endswith(s if s.startswith(".") else f".{s}") for name in names)}


def test_what_is_strong_is_an_action() -> None:
    unguarded, callbacks, downloads, met = [], [], [], set[str]()
    for path in sorted(PAGES.rglob("*.py")):
        name, tree = path.relative_to(PAGES).as_posix(), ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg in ("on_click", "on_change"):
                callbacks += [f"{name}: {ast.unparse(node.value)}"] if isinstance(node.value, ast.Attribute) else []
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "st.download_button":
                data = next((k.value for k in node.keywords if k.arg == "data"), None) or node.args[1]
                downloads.append(data if isinstance(data, ast.Call) else f"{name}: {ast.unparse(data)}")
        if name in BELOW:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                actions = [d for d in node.decorator_list if isinstance(d, ast.Call) and ast.unparse(d.func) == "action"]
                for decorator in actions:
                    assert ast.literal_eval(decorator.args[0]) in ACTIONS, f"{name}: {node.name}"
                strong = _strong(node)
                met |= strong
                if strong and not actions and node.name not in KNOWN.get(name, ()):
                    unguarded.append(f"{name}: {node.name} calls {', '.join(sorted(strong))}")
    assert not unguarded
    assert not [c for c in callbacks if c.endswith((".stop", ".pop", ".clear"))]  # methods of what others may hold
    # what is called when it is asked for asks nobody by itself; on Explore it holds the prediction that was drawn
    assert {d for d in downloads if isinstance(d, str)} == {"explore/result.py: data"}
    # they are still called so: else nothing would be looked for
    assert met >= set(STRONG) - {".unlink", "library.create", "Store", "_engine"}
    assert all((PAGES / name).is_file() for name in BELOW | set(KNOWN))


def test_a_download_is_for_who_stands_when_it_is_asked_for(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streamlit makes it in no session, long after it was drawn."""
    file = tmp_path / "snapshot.jsonl"
    file.write_bytes(b"words")
    mia = signed_in(store, "Mia", "manager")
    people.add(store, "Mia", "Ada", "manager")
    monkeypatch.setattr("pages.session.shared.visitor", lambda: mia)
    read = shared.read_for_download("take snapshots", file)
    monkeypatch.setattr("pages.session.shared.visitor", lambda: None)
    assert read() == b"words"
    store.people.set_role("Ada", "Mia", "annotator")
    with pytest.raises(SignedOutError):
        read()


# ---------------------------------------------------------------- a database that says nothing


def test_garbage_in_the_file_opens_nothing(corpus: str, open_app: Open, settings: Settings, store: Store) -> None:
    people.manager(store)
    store.close()
    path = Path(settings.url.removeprefix("sqlite:///"))
    path.write_bytes(b"garbage" * 1000)
    for page in ("explore", "corpora", "evaluate"):
        app = open_app(page)
        assert not app.exception
        assert "no SQLite database" in app.error[0].value
        assert "Ambiscope shows nothing" in app.info[0].value
        assert not any((app.header, app.button, app.dataframe))
    assert path.read_bytes() == b"garbage" * 1000


@pytest.mark.parametrize("error", [StorageError("the disk refused"), RuntimeError("secret")])
def test_a_database_that_fails_while_people_work_stops_the_tab(
    corpus: str, open_app: Open, settings: Settings, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    page, look, do = STEPS["deletes a corpus"]
    app = look(open_app(page))
    do(app)
    monkeypatch.setattr(Database, "reading", Mock(side_effect=error))
    app.run()
    assert (settings.home / "corpora" / "small").is_dir()
    assert not app.dataframe
    assert "secret" not in texts(app)


# ---------------------------------------------------------------- where somebody is


def test_the_address_of_the_connection_is_counted(open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    people.manager(store)
    addresses: list[str] = []

    def sign_in(self: People, name: str, password: str, address: str = "", browser: str = "") -> Visitor:
        addresses.append(address)
        raise SignInError

    monkeypatch.setattr(People, "sign_in", sign_in)
    monkeypatch.setattr("pages.session.connection.address", lambda: "192.0.2.7")
    people.sign_in(open_app(), "Mia")
    assert addresses == ["192.0.2.7"]
