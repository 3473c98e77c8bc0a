"""People: names, roles, passwords; and who did what when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import streamlit as st

from pages.session import connection, shared, sign_in
from pages.session.actions import reported, say
from pages.ui.markup import escape, named
from pages.ui.tables import table
from storage.access.log import ACTIONS
from storage.records.enumerations import Role
from storage.records.projects import Person, Project

ROLES: dict[Role, str] = {
    "annotator": "Annotator: writes answers and judges",
    "validator": "Validator: also validates, and sends work back",
    "manager": "Manager: can do everything",
}
PAGE = 50


@reported
def _do(what: str, act: Callable[[], Any]) -> None:
    """Callback."""
    act()
    say(what)


def _value(key: str) -> str:
    return str(st.session_state.get(key) or "").strip()


def people(who: str) -> None:
    store = shared.store()
    if not store.people.accounts_in_use():
        st.info(
            "Nobody has a password, so anyone who opens this app can do everything under any name. Once you add a manager with a password, "
            "everybody has to sign in.",
            icon=":material/lock_open:",
        )
    if subject := connection.subject():
        st.caption("The sign-in provider knows you as:")
        st.code(subject, language=None, wrap_lines=True)
    for person in store.people.people(who, limit=200):
        _person(person, who)
    _add_form(who)


def _person(person: Person, who: str) -> None:
    store = shared.store()
    ways = [w for w, has in (("password", person.has_password), ("sign-in provider", person.has_subject)) if has]
    state = "" if person.active else ", inactive"
    label = f"{escape(person.name)}: {person.role}{state} ({' and '.join(ways) or 'cannot sign in'})"
    with st.expander(label, icon=":material/person:"):
        key = f"people.{person.name}"
        with st.container(horizontal=True, vertical_alignment="bottom"):
            roles = list(get_args(Role))
            st.selectbox(
                f"Role of {escape(person.name)}",
                roles,
                index=roles.index(person.role),
                format_func=ROLES.__getitem__,
                key=f"{key}.role",
            )
            st.button(
                named("Save role", f"of {person.name}"),
                key=f"{key}.role.set",
                on_click=lambda: _do("The role was changed.", lambda: _set_role(store, who, person.name, f"{key}.role")),
            )
        with st.form(f"{key}.form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(
                f"New password of {escape(person.name)}", type="password", key=f"{key}.password", autocomplete="new-password"
            )
            if person.name == who and person.has_password:
                st.text_input("Current password", type="password", key=f"{key}.old", autocomplete="current-password")
            st.form_submit_button(
                named("Save password", f"of {person.name}"), on_click=lambda: _set_password(store, who, person.name, key)
            )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(
                f"Sign-in provider ID of {escape(person.name)}",
                key=f"{key}.subject",
                placeholder="issuer subject",
                max_chars=500,
            )
            st.button(
                named("Save ID", f"of {person.name}"),
                key=f"{key}.subject.set",
                on_click=lambda: _do(
                    "The sign-in provider ID was saved.",
                    lambda: store.people.set_subject(who, person.name, _value(f"{key}.subject") or None),
                ),
            )
        st.button(
            named("Deactivate" if person.active else "Reactivate", person.name),
            key=f"{key}.active",
            on_click=lambda: _do("Done.", lambda: store.people.set_active(who, person.name, not person.active)),
        )


def _set_role(store: Any, who: str, name: str, key: str) -> None:
    store.people.set_role(who, name, st.session_state.get(key))


def _set_password(store: Any, who: str, name: str, key: str) -> None:
    new = str(st.session_state.pop(f"{key}.password", "") or "")
    old = str(st.session_state.pop(f"{key}.old", "") or "") or None
    _do(f"The password of {name} was changed.", lambda: store.people.set_password(who, name, new, old=old))


def _add_form(who: str) -> None:
    st.markdown("**Add a person**")
    with st.form("people.add", clear_on_submit=False):
        st.text_input("Name", key="people.new.name", max_chars=sign_in.NAME_CHARS)
        st.selectbox("Role", list(get_args(Role)), format_func=ROLES.__getitem__, key="people.new.role")
        st.text_input(
            "Password", type="password", key="people.new.password", help="8 characters or more", autocomplete="new-password"
        )
        st.text_input(
            "Or sign-in provider ID (issuer and subject)", key="people.new.subject", placeholder="issuer subject", max_chars=500
        )
        st.form_submit_button("Add person", on_click=_add, args=(who,))


def _add(who: str) -> None:
    state = st.session_state
    name, password = _value("people.new.name"), str(state.pop("people.new.password", "") or "") or None
    role, subject = state.get("people.new.role"), _value("people.new.subject") or None
    _do(f"{name} was added.", lambda: shared.store().people.add_person(who, name, role, password=password, subject=subject))


def admit(project: Project, who: str) -> None:
    """Who may work though (or may not, whatever) their qualification said."""
    if not project.gold_first:
        return
    with (
        st.expander("Qualification: admit or exclude a person"),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        st.text_input("Name", key="manage.admit.name", max_chars=sign_in.NAME_CHARS)
        for label, value in (("Admit", True), ("Exclude", False), ("Use their qualification result", None)):
            st.button(
                label,
                key=f"manage.admit.{label}",
                on_click=lambda value=value: _do(
                    "Done.", lambda: shared.store().projects.admit(who, project.id, _value("manage.admit.name"), value)
                ),
            )


def activity(project: Project | None, who: str) -> None:
    """The append-only log, the newest first."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input("Person", key="manage.log.who", max_chars=sign_in.NAME_CHARS)
        action = st.selectbox("Action", ["everything", *ACTIONS], format_func=str.capitalize, key="manage.log.action")
    before = st.session_state.get("manage.log.before")
    entries = shared.store().people.activity(
        who,
        project=project.id if project else None,
        who=(name or "").strip() or None,
        action=None if action == "everything" else action,
        before=before,
        limit=PAGE,
    )
    if not entries:
        st.info("No activity matches.")
    else:
        rows = [
            {
                "Time": f"{a.created.astimezone():%Y-%m-%d %H:%M:%S}",
                "Person": a.who,
                "Action": a.action,
                "Details": "; ".join(f"{k}: {v}" for k, v in a.details.items()),
                "Item": a.item[:8],
            }
            for a in entries
        ]
        table(rows, "Activity log, newest first")
    with st.container(horizontal=True):
        st.button("Newest", key="manage.log.first", on_click=_page, args=(None,), disabled=before is None)
        st.button(
            "Older",
            key="manage.log.older",
            on_click=_page,
            args=(entries[-1].id if entries else None,),
            disabled=len(entries) < PAGE,
        )


def _page(before: int | None) -> None:
    st.session_state["manage.log.before"] = before
