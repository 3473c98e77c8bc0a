"""Notices for the signed-in person in the sidebar of every page: returned work, mentions, unread comments."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from core.errors import AmbiscopeError
from core.text import listed
from pages.session import shared
from pages.ui.markup import escape, short
from storage.records.projects import WaitingWork

MAX_PROJECTS = 5


def draw() -> None:
    """Always one container, so that elements below keep their position."""
    with st.sidebar.container(key="frame.notices", gap="xsmall"), suppress(AmbiscopeError):
        store = shared.store()
        for work in store.waiting.of_person(shared.annotator())[:MAX_PROJECTS]:
            _draw(work, store.may("manage projects"))


def _draw(work: WaitingWork, manages: bool) -> None:
    name = escape(short(work.name, 40))
    for stage, count in work.returned.items():
        query = {"project": work.project, "stage": stage}
        icon = ":material/undo:"
        st.page_link("pages/annotate/page.py", label=f"{count:,} sent back in {name}", icon=icon, query_params=query)
    if work.comments:
        label = f"{listed(work.comments, 'new comment')} in {name}"
        label += f", {listed(work.mentions, 'mention')} of you" if work.mentions else ""
        page, query = ("manage", {}) if manages else ("annotate", {"view": "mine"})
        query = {"project": work.project, **query}
        st.page_link(f"pages/{page}/page.py", label=label, icon=":material/forum:", query_params=query)
