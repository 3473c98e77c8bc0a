"""Health: versions, the database and its backups, warnings, the settings in force."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.errors import AmbiscopeError
from pages.app import shared
from pages.app.actions import action
from pages.app.markup import plain
from pages.guide.installation import age, settings_in_force, versions, without_password
from storage.records.results import Health


@action("back up", "health.error")
def _backup() -> None:
    """Callback."""
    manifest = shared.store().backup()
    st.session_state["health.said"] = f"Backup written and verified: {manifest.file}"


def database(health: Health) -> None:
    st.subheader("Database", divider="gray", anchor=False)
    with st.container(horizontal=True):
        st.metric("Integrity", "ok" if health.ok else "damaged")
        st.metric("Size", f"{health.bytes / 1e6:.1f} MB")
        st.metric("Last backup", age(health.backup_age_seconds))
    if not health.ok:
        st.error(f"The first problem found: {plain(health.integrity)}. Restore a backup: python -m storage restore FILE")
    for warning in health.warnings:
        st.warning(plain(warning), icon=":material/warning:")
    if health.sqlite:
        st.button("Back up now", on_click=_backup, icon=":material/backup:", key="health.backup")
        st.caption("A verified copy is written beside the database, in the folder backups. It can be made while people work.")
    else:
        st.caption("PostgreSQL is backed up with its own tools (pg_dump).")
    st.caption(
        f"{plain(without_password(health.where))} · schema {plain(health.revision)}"
        + (f" · SQLite {plain(health.sqlite)}, journal {plain(health.journal)}" if health.sqlite else "")
    )


def main() -> None:
    st.header("Health", anchor=False)
    store = shared.store()
    store.allow("back up")
    if said := st.session_state.pop("health.said", None):
        st.success(plain(said), icon=":material/check:")
    if error := st.session_state.pop("health.error", None):
        shared.show_error(error)
    full = st.toggle("Check every page of the file (slow for a large one)", key="health.full")
    database(store.health(full=full))
    st.subheader("Versions", divider="gray", anchor=False)
    st.dataframe(
        pd.DataFrame(versions(), columns=["what", "version"]), hide_index=True, width="content", alt="Installed versions"
    )
    st.subheader("Settings", divider="gray", anchor=False)
    st.dataframe(
        pd.DataFrame(settings_in_force(shared.settings()), columns=["variable", "value", "from"]),
        hide_index=True,
        width="stretch",
        alt="Settings in force, secrets hidden",
    )


shared.enter("health")
try:
    main()
except AmbiscopeError as error:
    shared.show_error(error)
