"""Health: versions, the database and its backups, warnings, plugins, the settings in force."""

from __future__ import annotations

import streamlit as st

from pages.health.installation import age, settings_in_force, versions, without_password
from pages.session import registered, shared
from pages.session.actions import action, say
from pages.ui.markup import escape
from pages.ui.tables import table
from storage.records.results import Health


@action("back up")
def _backup() -> None:
    """Callback."""
    manifest = shared.store().maintenance.backup()
    say(f"Backup made and verified: {manifest.file}")


def database(health: Health) -> None:
    st.subheader("Database", divider="gray", anchor=False)
    with st.container(horizontal=True):
        st.metric("Integrity", "ok" if health.ok else "not intact")
        st.metric("Size", f"{health.bytes / 1e6:.1f} MB")
        st.metric("Last backup", age(health.backup_age_seconds))
    if not health.ok:
        st.error(escape(health.integrity))
    for warning in health.warnings:
        st.warning(escape(warning[:1].upper() + warning[1:]), icon=":material/warning:")
    if health.sqlite:
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
    full = st.toggle("Full integrity check (slow for a large database)", key="health.full")
    database(store.maintenance.health(full=full))
    st.subheader("Versions", divider="gray", anchor=False)
    table([{"Component": name, "Version": v} for name, v in versions()], "Installed versions", width="content")
    if plugins := registered.listed():
        st.subheader("Plugins", divider="gray", anchor=False)
        rows = [{"Kind": p.kind.capitalize(), "Name": p.name, "From": p.origin, "State": p.problem or "works"} for p in plugins]
        table(rows, "Plugins, and why some do not work")
    st.subheader("Settings", divider="gray", anchor=False)
    settings = [
        {"Variable": name, "Value": value, "Source": source} for name, value, source in settings_in_force(shared.settings())
    ]
    table(settings, "Current settings, with secrets hidden")


main()
