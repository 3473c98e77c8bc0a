"""The store of an annotation tab: the shared one or, for practice, a database of the user's own.

The address says which, so that a reload comes back to it and no other page is affected.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import streamlit as st

from core.errors import NotFoundError
from pages.session import shared
from storage.access.sign_ins import Visitor
from storage.schema.creation import head
from storage.store import SessionStore

ADDRESS, ON = "practice", "on"


def practising() -> bool:
    return st.query_params.get(ADDRESS) == ON


def practice_file() -> Path:
    """The database of the user's practice project, a different one after a change of the schema."""
    name = hashlib.sha256(shared.annotator().encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return shared.settings().home / "practice" / f"{name}-{head()}.db"


def store() -> SessionStore:
    """The store.  Raises NotFoundError if the practice project was removed meanwhile, and as `shared.store`."""
    if not practising():
        return shared.store()
    shared.store().allow("annotate")
    if not (file := practice_file()).is_file():
        raise NotFoundError("the practice project was removed: leave it, or start it again")
    name = shared.annotator()
    return SessionStore(shared.beside(file), lambda: Visitor(name))
