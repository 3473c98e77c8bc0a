"""Health: versions, the database and its backups, warnings, the settings in force."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.errors import AmbiscopeError
from pages.session import shared
from pages.session.actions import action
from pages.session.installation import age, settings_in_force, versions, without_password
from pages.ui.markup import escape
from storage.records.results import Health


@action("back up", "health.error")
def _backup() -> None:
    """Callback."""
    manifest = shared.store().maintenance.backup()
    st.session_state["health.said"] = f"Backup made and verified: {manifest.file}"


def database(health: Health) -> None:
    st.subheader("Database", divider="gray", anchor=False)
    with st.container(horizontal=True):
        st.metric("Integrity", "ok" if health.ok else "file replaced" if health.replaced else "damaged")
        st.metric("Size", f"{health.bytes / 1e6:.1f} MB")
        st.metric("Last backup", age(health.backup_age_seconds))
    if health.replaced:
        st.error(escape(health.integrity))
    elif not health.ok:
        st.error(f"The database is damaged: {escape(health.integrity)}. Restore a backup with: python -m storage restore FILE")
    for warning in health.warnings:
        st.warning(escape(warning[:1].upper() + warning[1:]), icon=":material/warning:")
    if health.sqlite or health.replaced:
        st.button("Back up now", on_click=_backup, icon=":material/backup:", key="health.backup")
        st.caption("This saves a verified copy in the folder backups, beside the database. People can keep working meanwhile.")
    else:
        st.caption("Back up PostgreSQL with its own tools (pg_dump).")
    st.caption(
        f"{escape(without_password(health.where))} · schema {escape(health.revision)}"
        + (f" · SQLite {escape(health.sqlite)}, journal {escape(health.journal)}" if health.sqlite else "")
    )


def main() -> None:
    st.header("Health", anchor=False)
    store = shared.store()
    store.allow("back up")
    if said := st.session_state.pop("health.said", None):
        st.success(escape(said), icon=":material/check:")
    if error := st.session_state.pop("health.error", None):
        shared.show_error(error)
    full = st.toggle("Full integrity check (slow for a large database)", key="health.full")
    database(store.maintenance.health(full=full))
    st.subheader("Versions", divider="gray", anchor=False)
    st.dataframe(
        pd.DataFrame(versions(), columns=["Component", "Version"]), hide_index=True, width="content", alt="Installed versions"
    )
    st.subheader("Settings", divider="gray", anchor=False)
    st.dataframe(
        pd.DataFrame(settings_in_force(shared.settings()), columns=["Variable", "Value", "Source"]),
        hide_index=True,
        width="stretch",
        alt="Current settings, with secrets hidden",
    )


shared.enter("health")
try:
    main()
except AmbiscopeError as error:
    shared.show_error(error)
