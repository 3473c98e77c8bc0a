"""Snapshots on Quality, and of one project on Manage under Export: take one in the background, list and download them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import streamlit as st

from core.errors import AmbiscopeError
from pages.jobs import background as jobs
from pages.session import shared
from pages.session.actions import action
from pages.ui.markup import escape
from pages.ui.tables import table
from storage.exchange.filters import Filters
from storage.records.results import Snapshot
from storage.store import Store

DOWNLOAD_BYTES = 100_000_000  # larger files are fetched from the server's disk
SHORT_SECONDS = 3.0  # the page waits this long for a small one


def snapshot_job(store: Store, folder: Path, filters: Filters, note: str) -> jobs.BackgroundJob:
    """Its result is a Snapshot."""

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
    )
    note = str(state.get("quality.snapshot.note") or "").strip()
    job = snapshot_job(shared.servers_store(), shared.settings().home / "snapshots", filters, note)
    jobs.begin("snapshots", "snapshot", job).wait(SHORT_SECONDS)


def draw(filters: Filters) -> None:
    store = shared.store()
    st.markdown(
        f"A snapshot is a copy of {'this project' if filters.project else 'what the filters above select'} at one moment: a training file, "
        "AmbigNQ light and full, preference pairs, CSV and Parquet. It has a number and a digest, and never changes."
    )
    with st.form("quality.snapshot", border=True):
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
        st.success(f"Snapshot {job.result.number} was taken.", icon=":material/check:")
    snapshots = store.exports.snapshots(limit=100)
    if not snapshots:
        st.info("There is no snapshot yet.")
        return
    rows = [
        {
            "Number": s.number,
            "Taken (UTC)": f"{s.created:%Y-%m-%d %H:%M}",
            "Questions": s.counts.get("training", {}).get("questions", 0),
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
    except AmbiscopeError as error:  # of this one; the others, and the loop, may be intact
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
