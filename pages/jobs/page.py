"""Jobs: background jobs of every kind from every page, with progress, remaining time, and a button to stop them."""

from __future__ import annotations

import streamlit as st

from pages.session import background as jobs
from pages.session import shared
from pages.ui.formatting import duration
from pages.ui.markup import escape


def draw(kind_name: str, name: str, job: jobs.BackgroundJob) -> None:
    kind, title = jobs.KINDS[kind_name], escape(job.title)
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{kind.label}** {title}", width="stretch")
            page, icon = shared.PAGES[kind.page]
            st.page_link(f"pages/{kind.page}/page.py", label=f"Open {page}", icon=icon)
        if not job.done:
            jobs.bar(kind_name, name, job)
            return
        if not jobs.show_failure(job):
            st.success(f"{kind.outcome.format(title=title)} ({duration(job.seconds)}). See {page}.")
        jobs.close_button(kind_name, name, job)


def draw_all() -> int:
    """Draws all jobs.  Returns the number of running ones."""
    all_jobs = jobs.all_jobs()
    for kind, name, job in all_jobs:
        draw(kind, name, job)
    return sum(not job.done for *_, job in all_jobs)


@st.fragment(run_every=jobs.POLL_SECONDS)
def watch(running: int) -> None:
    """Redraws the jobs once a second, and the whole page when one starts or ends.  `running`: the number of running ones."""
    if draw_all() != running:
        st.rerun()


st.header("Jobs", anchor=False)
st.markdown(
    "Background jobs: indexes, evaluations, suggestions, snapshots and training runs. They keep running if you leave or reload the page."
)
shared.store().allow("read corpora")
all_jobs = jobs.all_jobs()
if running := sum(not job.done for *_, job in all_jobs):
    watch(running)
elif all_jobs:
    draw_all()
else:
    st.info("Nothing is running. What you start on Corpora, Evaluate, Manage or Quality appears here.")
