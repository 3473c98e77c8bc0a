"""Snapshots on Quality, and of one project on Manage under Export: take one in the background, list them and download them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import streamlit as st

from core.errors import AmbiscopeError
from core.text import listed, time_text
from pages.session import background as jobs
from pages.session import shared
from pages.session.actions import action
from pages.ui.markup import escape
from pages.ui.tables import table
from storage.exchange.filters import Filters
from storage.exchange.final_answers import LEFT_OUT
from storage.records.results import Snapshot
from storage.store import Store

DOWNLOAD_BYTES = 100_000_000  # larger files are fetched from the server's disk
SHORT_SECONDS = 3.0  # the page waits this long for a small one
ANSWERS = {"final": "Final answer sets", "all": "All contributions"}
REASONS = dict(zip(LEFT_OUT, ("unfinished", "sent back", "waiting for validation", "in disagreement"), strict=True))


def snapshot_job(store: Store, folder: Path, filters: Filters, note: str) -> jobs.BackgroundJob:
    """A job whose result is a Snapshot."""

    def work(job: jobs.BackgroundJob) -> Snapshot:
        def progress(done: int, total: int) -> None:
            job.progress(done, total, f"{done} of {total} files")

        return store.exports.take_snapshot(folder, filters=filters, note=note, progress=progress)

    return jobs.BackgroundJob(work, note or "Snapshot", stopped="the snapshot was stopped; nothing of it was kept")


@action("take snapshots")
def _take(filters: Filters) -> None:
    """Callback of the form."""
    state = st.session_state
    filters = replace(
        filters,
        minimum_agreement=float(state.get("quality.snapshot.agreement") or 0.0) / 100 or None,
        pseudonyms=bool(state.get("quality.snapshot.pseudonyms")),
        weighted=bool(state.get("quality.snapshot.weighted")),
        answers=str(state.get("quality.snapshot.answers") or "final"),
    )
    note = str(state.get("quality.snapshot.note") or "").strip()
    job = snapshot_job(shared.servers_store(), shared.settings().home / "snapshots", filters, note)
    jobs.begin("snapshots", "snapshot", job).wait(SHORT_SECONDS)


def summary(snapshot: Snapshot) -> str:
    """The contents and omissions of a snapshot, in plain text."""
    counts = snapshot.counts.get("ambignq", {})
    left_out = [f"{counts[name]:,} {reason}" for name, reason in REASONS.items() if counts.get(name)]
    text = f"{listed(counts.get('questions', 0), 'question')} with {listed(counts.get('annotations', 0), 'answer set')}."
    return text + (f" Left out: {', '.join(left_out)}." if left_out else "")


def draw(filters: Filters) -> None:
    store = shared.store()
    st.markdown(
        f"A snapshot is a copy of {'this project' if filters.project else 'what the filters above select'} at one moment: a training file, "
        "AmbigNQ light and full, preference pairs, CSV and Parquet. It has a number and a digest, and never changes."
    )
    with st.form("quality.snapshot", border=True):
        st.segmented_control(
            "Answers",
            list(ANSWERS),
            format_func=ANSWERS.__getitem__,
            default="final",
            required=True,
            key="quality.snapshot.answers",
            help="Final answer sets: one for each finished item: the validated one, else the one that people agree on, else the only one. "
            "All contributions: everybody's, with stage, person, version and whether it counts.",
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input("Purpose", key="quality.snapshot.note", max_chars=200, width=300)
            st.number_input(
                "Minimum agreement (F1, %)",
                min_value=0.0,
                max_value=100.0,
                value=0.0,
                step=5.0,
                key="quality.snapshot.agreement",
                width=240,
                help="Above 0, only questions with two or more annotators whose answer sets agree at least this much are included.",
            )
            st.checkbox("Replace people's names with numbers", key="quality.snapshot.pseudonyms")
            st.checkbox(
                "Weigh people by competence",
                key="quality.snapshot.weighted",
                help="In the training file, the word of a more competent person counts more. Otherwise the majority decides.",
            )
        st.form_submit_button("Take snapshot", icon=":material/photo_camera:", on_click=_take, args=(filters,))
    for job in jobs.reports("snapshots"):
        st.success(f"Snapshot {job.result.number} was taken. {summary(job.result)}", icon=":material/check:")
    snapshots = store.exports.snapshots(limit=100)
    if not snapshots:
        st.info("There is no snapshot yet.")
        return
    rows = [
        {
            "Number": s.number,
            "Taken": time_text(s.created, utc=True),
            "Answers": ANSWERS.get(str(s.filters.get("answers")), ""),
            "Questions": s.counts.get("ambignq", {}).get("questions", 0),
            "Left out": sum(s.counts.get("ambignq", {}).get(name, 0) for name in LEFT_OUT),
            "Size (MB)": round(s.bytes / 1e6, 2),
            "Purpose": s.note,
            "Digest": s.sha256[:16],
        }
        for s in snapshots
    ]
    table(rows, "Snapshots")
    number = st.selectbox("Download files of snapshot", [s.number for s in snapshots], key="quality.snapshot.number", width=200)
    try:
        files = store.exports.snapshot_files(number, shared.settings().home / "snapshots")
    except AmbiscopeError as error:  # of this one; the others may be intact
        shared.show_error(error)
        return
    with st.container(horizontal=True):
        for format, path in files.items():
            if path.stat().st_size > DOWNLOAD_BYTES:
                st.caption(escape(f"{format}: too large to download here; on the server at {path}"))
                continue
            st.download_button(
                format,
                shared.read_for_download("take snapshots", path),
                file_name=f"snapshot-{number:04d}-{path.name}",
                key=f"quality.file.{number}.{format}",
                on_click="ignore",
            )
