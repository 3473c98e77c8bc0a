"""Snapshots on the quality page: taken in the background, listed, downloaded."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.errors import AmbiscopeError, CancelledError, InputError
from pages.jobs import background as jobs
from pages.jobs.worker import Worker
from pages.session import shared
from pages.session.actions import action
from pages.ui.markup import escape
from storage.exchange.filters import Filters
from storage.records.results import Snapshot
from storage.store import Store

DOWNLOAD_BYTES = 100_000_000  # larger files are fetched from the server's disk
SHORT = 3.0  # seconds: a small one is waited for


class SnapshotRun(Worker):
    """A snapshot that is being taken; then `result` or `error`."""

    result: Snapshot | None = None

    def __init__(self, store: Store, folder: Path, filters: Filters, note: str) -> None:
        super().__init__("snapshot")
        self.title = note or "Snapshot"
        self._store, self._folder, self._filters, self._note = store, folder, filters, note
        self.start()

    def _progress(self, done: int, total: int) -> None:
        self.share, self.stage = done / total, f"{done} of {total} files"
        if self.stopping:
            raise CancelledError("the snapshot was stopped; nothing of it was kept")

    def work(self) -> None:
        self.result = self._store.exports.take_snapshot(
            self._folder, filters=self._filters, note=self._note, progress=self._progress
        )


@action("take snapshots", "quality.error")
def _take(filters: Filters) -> None:
    """Callback of the form."""
    state = st.session_state
    chosen = Filters(
        annotators=filters.annotators,
        project=filters.project,
        since=filters.since,
        until=filters.until,
        minimum_agreement=state.get("quality.snapshot.agreement") or None,
        pseudonyms=bool(state.get("quality.snapshot.pseudonyms")),
    )
    if jobs.going("snapshots"):
        raise InputError("a snapshot is being taken already; wait until it is there")
    note = str(state.get("quality.snapshot.note") or "").strip()
    run = SnapshotRun(shared.servers_store(), shared.settings().home / "snapshots", chosen, note)
    shared.running("snapshots")["snapshot"] = run
    run.wait(SHORT)


def _ended() -> None:
    run = shared.running("snapshots").get("snapshot")
    if not isinstance(run, SnapshotRun) or not run.done:
        return
    if not jobs.ended(run) and run.result is not None:
        st.success(f"Snapshot {run.result.number} was taken.", icon=":material/check:")
    jobs.close_button("snapshots", "snapshot")


def draw(filters: Filters) -> None:
    store = shared.store()
    st.markdown(
        "A snapshot is a copy of what the filters above select, at one moment: a training file, AmbigNQ light and full, preference pairs, CSV "
        "and Parquet. It has a number and a digest, and never changes."
    )
    with st.form("quality.snapshot", border=True):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input("Purpose", key="quality.snapshot.note", max_chars=200, width=300)
            st.number_input(
                "Minimum agreement (F1)",
                min_value=0.0,
                max_value=1.0,
                value=0.0,
                step=0.05,
                key="quality.snapshot.agreement",
                width=180,
                help="Above 0, only questions with two or more annotators whose answer sets agree at least this much are included.",
            )
            st.checkbox("Replace people's names with numbers", key="quality.snapshot.pseudonyms")
        st.form_submit_button("Take snapshot", icon=":material/photo_camera:", on_click=_take, args=(filters,))
    if jobs.going("snapshots"):
        jobs.watch("snapshots")
    _ended()
    found = store.exports.snapshots(limit=100)
    if not found:
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
        for s in found
    ]
    st.dataframe(rows, hide_index=True, width="stretch", alt="Snapshots")
    number = st.selectbox("Download files of snapshot", [s.number for s in found], key="quality.snapshot.number", width=200)
    try:
        files = store.exports.snapshot_files(number, shared.settings().home / "snapshots")
    except AmbiscopeError as error:  # of this one; the others, and the loop, may be whole
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
