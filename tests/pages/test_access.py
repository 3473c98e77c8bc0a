"""Who may do what, on the pages: tabs whose sign-in does not stand any more, roles, and a database that says nothing."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import people
import pytest
from annotate_helpers import predict
from annotation_samples import hash_quickly
from page_helpers import QUESTION, TIMEOUT, button, texts
from streamlit.testing.v1 import AppTest
from test_evaluate import save

from core.errors import StorageError
from core.settings import ROOT, Settings
from pages.jobs.background import all_jobs
from pages.session import shared
from storage.access.people import People
from storage.access.permissions import ACTIONS, can
from storage.access.visitors import Visitor
from storage.records.annotation import SignedOutError, SignInError
from storage.schema.engine import Database
from storage.store import Store

Open = Callable[..., AppTest]
PASSWORD = "a long password"
PAGES = ROOT / "pages"


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_quickly(monkeypatch)


def tab(visitor: Visitor | None, page: str = "explore", **query: str) -> AppTest:
    """The app as a tab in which this visitor has signed in."""
    app = AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=TIMEOUT)
    for name, value in query.items():
        app.query_params[name] = value
    if visitor is not None:
        app.session_state[shared.VISITOR], app.session_state[shared.MADE_IN] = visitor, ("", "")
    app.run()
    return app if page == "explore" else app.switch_page(f"pages/{page}/page.py").run()


def signed_in(store: Store, name: str, role: Any) -> Visitor:
    by = "Mia" if store.people.accounts_in_use() else "me"
    store.people.add_person(by, name, role, PASSWORD)
    return store.people.sign_in(name, PASSWORD)


# ---------------------------------------------------------------- tabs whose sign-in stands no more

# what a tab of a manager is about to do: page, and what is filled in and clicked


def _people(app: AppTest, store: Store) -> None:
    app.text_input(key="people.first.name").set_value("Eve")
    app.text_input(key="people.first.password").set_value(PASSWORD)
    button(app, "Create the manager account").click()


def _delete_corpus(app: AppTest, store: Store) -> None:
    app.text_input(key="corpora.typed.small").set_value("small")
    button(app, "Delete corpus").click()


def _rename_run(app: AppTest, store: Store) -> None:
    (run,) = store.evaluations.evaluations()
    app.text_input(key=f"evaluate.label.{run.id}").set_value("Eve's")
    button(app, "Rename").click()


def _judge(app: AppTest, store: Store) -> None:
    (saved,) = store.predictions.recent_predictions()
    app.segmented_control(key=f"label.{saved.id}.0.choice").set_value("correct")


def _run_evaluate(view: str) -> Callable[[AppTest], AppTest]:
    return lambda app: app.segmented_control(key="evaluate.view").set_value(view).run()


Step = tuple[str, Callable[[AppTest], AppTest], Callable[[AppTest, Store], None]]
STEPS: dict[str, Step] = {
    "adds a manager": ("manage", lambda app: app, _people),
    "deletes a corpus": ("corpora", lambda app: app.selectbox(key="corpora.chosen").set_value("small").run(), _delete_corpus),
    "renames a run": ("evaluate", _run_evaluate("One run"), _rename_run),
    "judges an answer": ("explore", lambda app: app, _judge),
}


def everything(store: Store, settings: Settings) -> Any:
    """What must not change: rows, names of people, labels of runs, files (the database's own aside)."""
    counts = {name: n for name, n in store.maintenance.counts().items() if name not in ("activity", "sign_in_wait")}
    files = sorted(str(p) for p in settings.home.rglob("*") if not p.name.startswith("ambiscope.db"))
    return counts, store.people.annotators(), [r.label for r in store.evaluations.evaluations()], files


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
    app = look(open_app(page, me="Mia", **({"prediction": filled} if page == "explore" else {})))
    assert not app.exception
    store.people.add_person("me", "Mia", "manager", PASSWORD)
    before = everything(store, settings)
    do(app, store)
    app.run()
    assert not app.exception
    assert everything(store, settings) == before
    assert "signin.typed" in [t.key for t in app.text_input]
    assert not all_jobs()


FALLS: dict[str, Callable[[Store], Any]] = {
    "made inactive": lambda store: store.people.set_active("Ada", "Mia", False),
    "given another password": lambda store: store.people.set_password("Ada", "Mia", "another password"),
    "made an annotator": lambda store: store.people.set_role("Ada", "Mia", "annotator"),
}


@pytest.mark.parametrize("how", FALLS)
def test_who_was_changed_is_out_at_the_next_rerun(filled: str, store: Store, settings: Settings, how: str) -> None:
    page, look, do = STEPS["deletes a corpus"]
    mia = signed_in(store, "Mia", "manager")
    store.people.add_person("Mia", "Ada", "manager", PASSWORD)
    app = look(tab(mia, page))
    other = tab(mia)
    assert "**Mia**" in texts(other)
    FALLS[how](store)
    before = everything(store, settings)
    do(app, store)
    for one in (app.run(), other.run()):
        assert not one.exception
        assert "signin.typed" in [t.key for t in one.text_input]
        assert "sign in again" in one.error[0].value
        assert shared.VISITOR not in one.session_state
        assert not one.dataframe
    assert everything(store, settings) == before
    people.sign_in(app, "Ada")
    assert "**Ada**" in texts(app)


def test_changing_ones_password_keeps_this_tab_and_ends_the_others(store: Store) -> None:
    mia = signed_in(store, "Mia", "manager")
    app, other = tab(mia), tab(mia)
    app.text_input(key="signin.change.old").set_value(PASSWORD)
    app.text_input(key="signin.change.password").set_value("another password")
    button(app, "Change password").click().run()
    assert "Your password was changed" in texts(app)
    assert "**Mia**" in texts(app)
    assert "sign in again" in other.run().error[0].value


def test_signing_out_leaves_nothing_in_the_tab(filled: str, store: Store) -> None:
    app = tab(signed_in(store, "Mia", "manager"), prediction=filled)
    app.session_state["left.behind"] = "work of Mia"
    button(app, "Sign out").click().run()
    assert "signin.typed" in [t.key for t in app.text_input]
    assert "left.behind" not in app.session_state
    app.session_state["left.behind"] = "planted by a stranger"
    people.sign_in(app, "Mia")
    assert "**Mia**" in texts(app)
    assert "left.behind" not in app.session_state


# ---------------------------------------------------------------- roles


@pytest.mark.parametrize("role", ["annotator", "validator", "manager"])
def test_each_role_is_shown_what_it_may_do(filled: str, store: Store, role: str) -> None:
    mia = signed_in(store, "Mia", "manager")
    who = mia if role == "manager" else signed_in(store, "Ann", role)
    manager = role == "manager"
    app = tab(who)
    assert not app.error

    def said(page: str) -> str:
        app.switch_page(f"pages/{page}/page.py").run()
        assert not app.exception
        return " ".join(e.value for e in app.error)

    for page in ("annotate", "corpora", "evaluate"):
        assert said(page) == ""
    for page in ("manage", "health"):
        assert ("needs the role manager" in said(page)) != manager
    assert ("needs the role validator" in said("quality")) == (role == "annotator")
    assert ("Take snapshot" in [b.label for b in app.button]) == manager
    said("corpora")
    app.selectbox(key="corpora.chosen").set_value("small").run()
    assert ("Delete corpus" in [b.label for b in app.button]) == manager
    assert ("Upload and build" in [b.label for b in app.button]) == manager
    said("evaluate")
    _run_evaluate("One run")(app)
    assert not app.error
    assert ({"Rename", "Delete"} <= {b.label for b in app.button}) == manager
    _run_evaluate("Start and store")(app)
    assert ("needs the role manager" in " ".join(e.value for e in app.error)) != manager
    assert ("Start evaluation" in [b.label for b in app.button]) == manager


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
    visitors["manager"] = signed_in(store, "Mia", "manager")
    visitors["validator"] = signed_in(store, "Val", "validator")
    visitors["annotator"] = signed_in(store, "Ann", "annotator")
    visitors["inactive"] = signed_in(store, "Off", "manager")
    store.people.set_active("Mia", "Off", False)
    visitors["with a new password"] = signed_in(store, "New", "manager")
    store.people.set_password("Mia", "New", "another password")
    app = AppTest.from_function(_actions, default_timeout=TIMEOUT)
    app.session_state["visitors"] = visitors
    app.run()
    assert not app.exception
    for who in visitors:
        role = who if who in ("annotator", "validator", "manager") else ""
        may = [n for n, a in ACTIONS.items() if a.role is None or (role and can(role, a.role))]
        assert app.session_state["done"].get(who) == may, who
        if not role:
            assert isinstance(app.session_state[f"refused.{who}.delete corpora"], SignedOutError)


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
    "jobs/background.py": {"stop"},  # asks itself, as each kind of work has its own action
    "quality/training_loop.py": {"start"},  # asks itself
    "papers/tables.py": {"begin"},  # asks itself
    "evaluate/start_form.py": {"begin", "run_and_store"},  # asks itself; its work
}


def _strong(tree: ast.AST) -> set[str]:
    used = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)]
    used += [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr in ("servers_store", "_engine")]
    said = {f".{ast.unparse(n)}" for n in used}
    return {s for s in STRONG if any(u.endswith(s if s.startswith(".") else f".{s}") for u in said)}


def test_what_is_strong_is_an_action() -> None:
    open_ones, callbacks, given, met = [], [], [], set[str]()
    for path in sorted(PAGES.rglob("*.py")):
        name, tree = path.relative_to(PAGES).as_posix(), ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.keyword)
                and node.arg in ("on_click", "on_change")
                and isinstance(node.value, ast.Attribute)
            ):
                callbacks.append(f"{name}: {ast.unparse(node.value)}")
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "st.download_button":
                data = next((k.value for k in node.keywords if k.arg == "data"), None) or node.args[1]
                given.append(data if isinstance(data, ast.Call) else f"{name}: {ast.unparse(data)}")
        if name in BELOW:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                actions = [d for d in node.decorator_list if isinstance(d, ast.Call) and ast.unparse(d.func) == "action"]
                for asked in actions:
                    assert ast.literal_eval(asked.args[0]) in ACTIONS, f"{name}: {node.name}"
                strong = _strong(node)
                met |= strong
                if strong and not actions and node.name not in KNOWN.get(name, ()):
                    open_ones.append(f"{name}: {node.name} calls {', '.join(sorted(strong))}")
    assert not open_ones
    assert not [c for c in callbacks if c.endswith((".stop", ".pop", ".clear"))]  # methods of what others may hold
    assert given
    # what is called when it is asked for asks nobody by itself; on Explore it holds the prediction that was drawn
    assert {g for g in given if isinstance(g, str)} == {"explore/result.py: data"}
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
    store.people.add_person("Mia", "Ada", "manager", PASSWORD)
    monkeypatch.setattr("pages.session.shared.visitor", lambda: mia)
    read = shared.read_for_download("take snapshots", file)
    monkeypatch.setattr("pages.session.shared.visitor", lambda: None)
    assert read() == b"words"
    store.people.set_role("Ada", "Mia", "annotator")
    with pytest.raises(SignedOutError):
        read()


# ---------------------------------------------------------------- a database that says nothing


def test_garbage_in_the_file_opens_nothing(corpus: str, open_app: Open, settings: Settings, store: Store) -> None:
    store.people.add_person("me", "Mia", "manager", PASSWORD)
    store.close()
    path = Path(settings.url.removeprefix("sqlite:///"))
    path.write_bytes(b"garbage" * 1000)
    for page in ("explore", "corpora", "evaluate"):
        app = open_app(page)
        assert not app.exception
        assert "no SQLite database" in app.error[0].value
        assert "Ambiscope shows nothing" in app.info[0].value
        assert not app.header
        assert not app.button
        assert not app.dataframe
    assert path.read_bytes() == b"garbage" * 1000


@pytest.mark.parametrize("error", [StorageError("the disk refused"), RuntimeError("secret")])
def test_a_database_that_fails_while_people_work_stops_the_tab(
    corpus: str, open_app: Open, settings: Settings, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    page, look, do = STEPS["deletes a corpus"]
    app = look(open_app(page))

    def broken(self: Database) -> Any:
        raise error

    do(app, None)  # type: ignore[arg-type]
    monkeypatch.setattr(Database, "reading", broken)
    app.run()
    assert (settings.home / "corpora" / "small").is_dir()
    assert not app.dataframe
    assert "secret" not in texts(app)


# ---------------------------------------------------------------- where somebody is


def test_the_address_of_the_connection_is_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    signed_in(store, "Mia", "manager")
    seen: list[str] = []

    def sign_in(self: People, name: str, password: str, address: str = "", browser: str = "") -> Visitor:
        seen.append(address)
        raise SignInError

    monkeypatch.setattr(People, "sign_in", sign_in)
    monkeypatch.setattr("pages.session.connection.address", lambda: "192.0.2.7")
    app = tab(None)
    people.sign_in(app, "Mia")
    assert seen == ["192.0.2.7"]
