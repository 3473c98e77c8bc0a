"""Jobs: long work of every kind, wherever it was started: how far it is, how long it will take, and how to stop it."""

from __future__ import annotations

import streamlit as st

from core.errors import AmbiscopeError
from pages.jobs import background as jobs
from pages.jobs.worker import Worker
from pages.session import shared
from pages.ui.formatting import duration
from pages.ui.markup import escape


def draw(kind: str, name: str, job: Worker) -> None:
    about, called = jobs.KINDS[kind], escape(jobs.called(name, job))
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{about.what}** {called}", width="stretch")
            title, icon = shared.PAGES[about.page]
            st.page_link(f"pages/{about.page}/page.py", label=f"Open {title}", icon=icon)
        if not job.done:
            jobs.bar(kind, name, job)
            return
        if not jobs.ended(job):
            st.success(f"Finished after {duration(job.seconds)}. {about.what} {called} is on the page {title}.")
        jobs.close_button(kind, name)


@st.fragment(run_every=jobs.POLL_SECONDS)
def watch(running: int) -> None:
    """Looks once a second while something runs; the whole page is drawn again when a job begins or ends."""
    found = list(jobs.every())
    for kind, name, job in found:
        draw(kind, name, job)
    if sum(not job.done for *_, job in found) != running:
        st.rerun()


def main() -> None:
    st.header("Jobs", anchor=False)
    st.markdown("Indexes, evaluations, suggestions, snapshots and trainings. They continue when you leave or reload the page.")
    shared.store().allow("read corpora")
    for about in jobs.KINDS.values():
        if error := st.session_state.pop(about.trouble, None):
            shared.show_error(error)
    found = list(jobs.every())
    running = sum(not job.done for *_, job in found)
    if running:
        watch(running)
        return
    for kind, name, job in found:
        draw(kind, name, job)
    if not found:
        st.info("Nothing is running. What you start on Corpora, Evaluate, Manage or Quality appears here.")


shared.enter("jobs")
try:
    main()
except AmbiscopeError as error:
    shared.show_error(error)
