"""Jobs: long work of every kind, wherever it was started: how far it is, how long it will take, and how to stop it."""

from __future__ import annotations

import streamlit as st

from pages.jobs import background as jobs
from pages.session import shared
from pages.ui.formatting import duration
from pages.ui.markup import escape


def draw(kind: str, name: str, job: jobs.BackgroundJob) -> None:
    about, title = jobs.KINDS[kind], escape(job.title)
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{about.label}** {title}", width="stretch")
            page, icon = shared.PAGES[about.page]
            st.page_link(f"pages/{about.page}/page.py", label=f"Open {page}", icon=icon)
        if not job.done:
            jobs.bar(kind, name, job)
            return
        if not jobs.ended(job):
            st.success(f"{about.outcome.format(title=title)} ({duration(job.seconds)}). See {page}.")
        jobs.close_button(kind, name)


@st.fragment(run_every=jobs.POLL_SECONDS)
def watch(running: int) -> None:
    """Looks once a second while something runs; the whole page is drawn again when a job begins or ends."""
    every = list(jobs.every())
    for kind, name, job in every:
        draw(kind, name, job)
    if sum(not job.done for *_, job in every) != running:
        st.rerun()


st.header("Jobs", anchor=False)
st.markdown(
    "Background jobs: indexes, evaluations, suggestions, snapshots and training runs. They keep running if you leave or reload the page."
)
shared.store().allow("read corpora")
begun = list(jobs.every())
if running := sum(not job.done for *_, job in begun):
    watch(running)
else:
    for kind, name, job in begun:
        draw(kind, name, job)
if not begun:
    st.info("Nothing is running. What you start on Corpora, Evaluate, Manage or Quality appears here.")
