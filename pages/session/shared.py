"""What all pages share, once a process: settings, engine, store; and how errors are shown."""

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
from pages.session import connection, libraries
from pages.ui.markup import escape
from pages.ui.tables import table
from storage.access.permissions import Name
from storage.access.preferences import Preferences
from storage.access.visitors import Visitor
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
FIRST = "explore"
VISITOR, MADE_IN = "app.visitor", "app.made_in"  # what a sign-in gave this session, and the connection in which it was made


def navigation() -> StreamlitPage:
    pages = [
        st.Page(
            f"pages/{name}/page.py", title=title, icon=icon, default=name == FIRST, url_path="home" if name == FIRST else name
        )
        for name, (title, icon) in PAGES.items()
    ]
    # the default page's address is that of the app, and Streamlit knows no other one for it; who types its name gets there, too
    named = st.Page(_to_first, title=PAGES[FIRST][0], url_path=FIRST, visibility="hidden")
    return st.navigation({"": [*pages, named]})


def _to_first() -> None:
    st.switch_page(f"pages/{FIRST}/page.py", query_params=st.query_params.to_dict())


@st.cache_resource(show_spinner=False)
def settings() -> Settings:
    """Raises InputError for a wrong AMBISCOPE_ variable."""
    return Settings.from_env()


@st.cache_resource(show_spinner=False)
def _engine() -> Engine | RemoteEngine:
    return make_engine(settings())


def light_engine() -> Engine | RemoteEngine:
    """To list what there is and to hand to a worker, which loads the libraries itself: drawing waits for nothing.  What changes
    a corpus goes through `pages.session.actions`.  Raises SignedOutError."""
    store().allow("read corpora")
    return _engine()


def engine() -> Engine | RemoteEngine:
    """The same one, when it can also read, search and run: after the libraries.  Raises SignedOutError."""
    made = light_engine()
    if made.needs_libraries and not libraries.loaded():
        with st.spinner("Loading the libraries"):
            libraries.load()
    return made


@st.cache_resource(show_spinner=False)
def servers_store() -> Store:
    """The server's own, for work that goes on when the person leaves.  Pages use `store()`.

    Raises NewerDatabaseError, StorageError; tried again at the next call.
    """
    return Store(settings().url)


@st.cache_resource(show_spinner=False)
def _beside(path: str) -> Store:
    return Store(f"sqlite:///{path}")


def beside(file: Path) -> Store:
    """A database of its own, for what comes with Ambiscope; made if need be.  Whoever opens it has asked `store()` first.  Raises as `servers_store`."""
    return _beside(str(file))


def drop_beside(file: Path) -> None:
    """Before its file is removed."""
    beside(file).close()
    _beside.clear(str(file))


def _connection() -> tuple[str, str]:
    return connection.browser(), connection.subject()


def keep_visitor(made: Visitor) -> None:
    """What a sign-in gave this session, for this browser and as long as the provider says the same of it."""
    st.session_state[VISITOR], st.session_state[MADE_IN] = made, _connection()


def visitor() -> Visitor | None:
    """Who this session is at this moment: what a sign-in gave it in this connection, else a typed name, which stands in an open house
    only.  None: nobody, as a sign-in provider is set up and vouches for nobody.

    Streamlit gives a session to whoever names its number, which stands in the addresses of uploads: docs/security.md.
    """
    made_in, held = _connection(), st.session_state.get(VISITOR)
    if isinstance(held, Visitor) and st.session_state.get(MADE_IN) == made_in:
        return held
    if connection.provider() and not made_in[1]:
        return None
    return Visitor(stored_name(str(st.session_state.get("annotator") or "")) or stored_name(settings().annotator))


def store() -> SessionStore:
    """The store as this session may use it: each call is checked.  Raises as `servers_store`.

    Who asks is looked up at each call: a callback or a fragment may hold a store of an earlier drawing, for somebody else.
    """
    return SessionStore(servers_store(), visitor)


def read_for_download(action: Name, path: Path) -> Callable[[], bytes]:
    """What a download button calls for a file when it is asked for, which Streamlit does in no session: whoever was here at the drawing
    must stand then, and may do `action`.  The call raises NotAllowedError, SignedOutError, OSError."""
    held, made = visitor(), servers_store()

    def read() -> bytes:
        SessionStore(made, lambda: held).allow(action)
        return path.read_bytes()

    return read


@st.cache_resource(show_spinner=False)
def warm() -> threading.Thread:
    """Loads the libraries and the default system while the person reads the page.  What goes wrong is told when a question is asked."""
    made = _engine()

    def work() -> None:
        try:
            if made.needs_libraries:
                libraries.load()
            made.warm()
        except Exception as error:
            log.info("warming up stopped: %s", error)

    thread = threading.Thread(target=work, daemon=True, name="warm")
    thread.start()
    return thread


def passages_of(corpus: str) -> int:
    """How many passages a corpus has that can be searched; 0 where there is none of this name."""
    return next((c.passages for c in light_engine().library.list() if c.name == corpus and c.index_kind), 0)


@st.cache_data(show_spinner=False, ttl=20)
def systems() -> Sequence[SystemStatus]:
    return list(_engine().statuses())


def show_error(error: BaseException) -> None:
    """The message of an error raised on purpose, with the rows that are wrong; of any other one a log id, with the traceback in the log."""
    if isinstance(error, RejectedRowsError):
        rows = "1 row was" if error.total == 1 else f"{error.total:,} rows were"
        st.error(f"{rows} not valid, so nothing was stored. Correct the file and upload it again.", icon=":material/error:")
        table([{"Line": line, "Reason": why} for line, why in error.rejected], "Rows that are not valid, with the reason")
    elif isinstance(error, AmbiscopeError):
        st.error(escape(error), icon=":material/error:")
    elif isinstance(error, MemoryError):
        st.error("There is not enough memory. Read fewer passages, or close other programs.", icon=":material/error:")
    else:
        number = uuid.uuid4().hex[:8]
        log.error("error %s", number, exc_info=error)
        what = escape(type(error).__name__)
        st.error(f"An unexpected error occurred ({what}). The log has the details under {number}.", icon=":material/error:")


def preferred(what: str) -> str:
    """What this person chose about the app; empty for nothing."""
    return Preferences(settings().home).get(annotator(), what)


def prefer(what: str, value: str) -> None:
    """Raises StorageError, SignedOutError."""
    store().allow("ask questions")
    Preferences(settings().home).put(annotator(), what, value)


def annotator() -> str:
    """The name of who is here: of the sign-in, else the one in the sidebar, or the settings' where it is blank."""
    known = visitor()
    return known.name if known else ""
