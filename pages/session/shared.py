"""Shared by all pages, once per process: settings, engine, store, and the display of errors."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from core.engine import Engine, SystemStatus
from core.errors import AmbiscopeError
from core.serve.choice import make_engine
from core.settings import Settings
from core.text import stored_name
from core.types import Prediction
from pages.session import connection, libraries
from pages.ui.markup import escape
from pages.ui.tables import table
from storage.access.permissions import Name
from storage.access.preferences import Preferences
from storage.access.sign_ins import Visitor
from storage.records.results import RejectedRowsError
from storage.store import SessionStore, Store

if TYPE_CHECKING:
    from core.serve.remote import RemoteEngine

log = logging.getLogger("ambiscope")


PAGES = {
    "explore": ("Explore", ":material/alt_route:"),
    "annotate": ("Annotate", ":material/edit_note:"),
    "evaluate": ("Evaluate", ":material/bar_chart:"),
    "papers": ("Papers", ":material/article:"),
    "corpora": ("Corpora", ":material/library_books:"),
    "manage": ("Manage", ":material/assignment_ind:"),
    "quality": ("Quality", ":material/fact_check:"),
    "jobs": ("Jobs", ":material/pending_actions:"),
    "connections": ("Connections", ":material/cable:"),
    "health": ("Health", ":material/monitor_heart:"),
}
FIRST_PAGE = "explore"
VISITOR_KEY, MADE_IN = "app.visitor", "app.made_in"  # the visitor of this session's sign-in, and the connection of the sign-in


def navigation() -> StreamlitPage:
    pages = [
        st.Page(
            f"pages/{name}/page.py",
            title=title,
            icon=icon,
            default=name == FIRST_PAGE,
            url_path="home" if name == FIRST_PAGE else name,
        )
        for name, (title, icon) in PAGES.items()
    ]
    # Streamlit knows the default page only by the app's address; this makes its name an address, too
    alias = st.Page(_to_first, title=PAGES[FIRST_PAGE][0], url_path=FIRST_PAGE, visibility="hidden")
    return st.navigation({"": [*pages, alias]})


def _to_first() -> None:
    st.switch_page(f"pages/{FIRST_PAGE}/page.py", query_params=st.query_params.to_dict())


@st.cache_resource(show_spinner=False)
def settings() -> Settings:
    """The settings.  Raises InputError for a wrong AMBISCOPE_ variable."""
    return Settings.from_env()


@st.cache_resource(show_spinner=False)
def _engine() -> Engine | RemoteEngine:
    return make_engine(settings())


def light_engine() -> Engine | RemoteEngine:
    """An engine for listing corpora, and for a worker, which loads the libraries itself, so that drawing waits for nothing.
    Changes of a corpus go through `pages.session.actions`.  Raises SignedOutError."""
    store().allow("read corpora")
    return _engine()


def engine() -> Engine | RemoteEngine:
    """The same engine, once it can also read, search and run: after the libraries are loaded.  Raises SignedOutError."""
    engine = light_engine()
    if engine.needs_libraries and not libraries.loaded():
        with st.spinner("Loading the libraries"):
            libraries.load()
    return engine


@st.cache_resource(show_spinner=False)
def servers_store() -> Store:
    """A store for work that continues when the person leaves.  It checks no permissions; pages use `store()`.

    Raises NewerDatabaseError, StorageError; the next call tries again.
    """
    return Store(settings().url)


@st.cache_resource(show_spinner=False)
def _beside(path: str) -> Store:
    return Store(f"sqlite:///{path}")


def beside(file: Path) -> Store:
    """A separate database (example runs, practice), created if needed.  The caller checks permissions by `store()` first.  Raises as `servers_store`."""
    return _beside(str(file))


def drop_beside(file: Path) -> None:
    """Closes a separate database before its file is removed."""
    beside(file).close()
    _beside.clear(str(file))


def _connection() -> tuple[str, str]:
    return connection.browser(), connection.subject()


def keep_visitor(visitor: Visitor) -> None:
    """Signs this session in, for this browser and while the provider names the same subject."""
    st.session_state[VISITOR_KEY], st.session_state[MADE_IN] = visitor, _connection()


def visitor() -> Visitor | None:
    """The user of this session: by a sign-in in this connection, or else by a typed name, which is valid only while nobody has
    an account.  None if a sign-in provider is configured and nobody is signed in.

    Streamlit gives a session to everybody who knows its number, which is part of the addresses of uploads: docs/security.md.
    """
    current, signed_in = _connection(), st.session_state.get(VISITOR_KEY)
    if isinstance(signed_in, Visitor) and st.session_state.get(MADE_IN) == current:
        return signed_in
    if connection.provider() and not current[1]:
        return None
    return Visitor(stored_name(str(st.session_state.get("annotator") or "")) or stored_name(settings().annotator))


def store() -> SessionStore:
    """The store for this session, which checks the permission of each call.  Raises as `servers_store`.

    The user is looked up at each call: a callback or a fragment may have a store of an earlier drawing, for somebody else.
    """
    return SessionStore(servers_store(), visitor)


def read_for_download(action: Name, path: Path) -> Callable[[], bytes]:
    """Reads a file for a download button.  The button calls it when it is pressed, outside any session: the user of this
    drawing must then still be signed in and allowed to do `action`.  The call raises NotAllowedError, SignedOutError, OSError.
    """
    user, server_store = visitor(), servers_store()

    def read() -> bytes:
        SessionStore(server_store, lambda: user).allow(action)
        return path.read_bytes()

    return read


@st.cache_resource(show_spinner=False)
def warm() -> threading.Thread:
    """Loads the libraries and the default system while the person reads the page.  Errors are shown when a question is asked."""
    engine = _engine()

    def work() -> None:
        try:
            if engine.needs_libraries:
                libraries.load()
            engine.warm()
        except Exception as error:
            log.info("warming up stopped: %s", error)

    thread = threading.Thread(target=work, daemon=True, name="warm")
    thread.start()
    return thread


def passages_of(corpus: str) -> int:
    """The number of passages of a corpus that can be searched; 0 if there is none of this name."""
    return next((c.passages for c in light_engine().library.list() if c.name == corpus and c.index_kind), 0)


def readable_corpus(prediction: Prediction) -> str:
    """The corpus that a prediction read, if this machine has it; empty if the question had its own passages."""
    name = prediction.system.corpus
    is_here = prediction.question.passages is None and not light_engine().remote_notice and passages_of(name)
    return name if is_here else ""


@st.cache_data(show_spinner=False, ttl=20)
def systems() -> Sequence[SystemStatus]:
    return list(_engine().statuses())


def show_error(error: BaseException) -> None:
    """The message of an AmbiscopeError, with the rows that are wrong; of any other error a number, under which the log has the traceback."""
    if isinstance(error, RejectedRowsError):
        rows = "1 row was" if error.total == 1 else f"{error.total:,} rows were"
        st.error(f"{rows} not valid, so nothing was stored. Correct the rows and add them again.", icon=":material/error:")
        table(
            [{error.unit.title(): number, "Reason": reason} for number, reason in error.rejected],
            "Rows that are not valid, with the reason",
        )
    elif isinstance(error, AmbiscopeError):
        st.error(escape(error), icon=":material/error:")
    elif isinstance(error, MemoryError):
        st.error("There is not enough memory. Read fewer passages, or close other programs.", icon=":material/error:")
    else:
        number = uuid.uuid4().hex[:8]
        log.error("error %s", number, exc_info=error)
        name = escape(type(error).__name__)
        st.error(f"An unexpected error occurred ({name}). The log has the details under {number}.", icon=":material/error:")


def preference(name: str) -> str:
    """One of the user's preferences about the app; empty if it isn't set."""
    return Preferences(settings().home).get(annotator(), name)


def set_preference(name: str, value: str) -> None:
    """Raises StorageError, SignedOutError."""
    store().allow("ask questions")
    Preferences(settings().home).put(annotator(), name, value)


def annotator() -> str:
    """The user's name: from the sign-in, or else the sidebar's, or the settings' if that is blank."""
    user = visitor()
    return user.name if user else ""
