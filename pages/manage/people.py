"""People: names, roles, passwords, and the log of who did what when."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from core.text import time_text
from pages.session import connection, shared, sign_in
from pages.session.actions import reported, say, show_field_error, submit
from pages.ui.markup import escape, full_label
from pages.ui.tables import table
from storage.access.log import ACTIONS
from storage.access.passwords import MIN_PASSWORD_CHARS
from storage.records.enumerations import Role
from storage.records.projects import Person, Project

ROLES: dict[Role, str] = {
    "annotator": "Annotator: writes answers and judges",
    "validator": "Validator: also validates, and sends work back",
    "manager": "Manager: can do everything",
}
LINES_PER_PAGE = 50
FIRST, ADD = "people:first", "people:new"  # forms; keys of a person begin with "people.NAME."
PAGE_KEY = "people:page"


@reported
def _do(message: str, act: Callable[[], Any]) -> None:
    """Callback."""
    act()
    say(message)


def _value(key: str) -> str:
    return str(st.session_state.get(key) or "").strip()


def people(user: str) -> None:
    store = shared.store()
    page = int(st.session_state.get(PAGE_KEY) or 1)
    everybody = store.people.people(user, LINES_PER_PAGE + 1, (page - 1) * LINES_PER_PAGE)
    if page > 1 or len(everybody) > LINES_PER_PAGE:
        st.pagination(page + (len(everybody) > LINES_PER_PAGE), key=PAGE_KEY)
    everybody = everybody[:LINES_PER_PAGE]
    if not store.people.accounts_in_use():
        _first_form(user)
        for person in everybody:
            st.markdown(f":material/person: {_label(person)}")
        return
    if subject := connection.subject():
        st.caption("The sign-in provider knows you as:")
        st.code(subject, language=None, wrap_lines=True)
    for person in everybody:
        _person(person, user)
    _add_form(user)


def _label(person: Person) -> str:
    ways = [w for w, has in (("password", person.has_password), ("sign-in provider", person.has_subject)) if has]
    states = [person.role, *([] if person.active else ["inactive"]), " and ".join(ways) or "no password"]
    return f"{escape(person.name)}: {', '.join(states)}"


def _person(person: Person, user: str) -> None:
    people = shared.store().people
    with st.expander(_label(person), icon=":material/person:"):
        key = f"people.{person.name}"
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox(
                f"Role of {escape(person.name)}",
                list(ROLES),
                index=list(ROLES).index(person.role),
                format_func=ROLES.__getitem__,
                key=f"{key}.role",
            )
            st.button(
                full_label("Save role", f"of {person.name}"),
                key=f"{key}.role.set",
                on_click=lambda: _do(
                    "The role was changed.", lambda: people.set_role(user, person.name, st.session_state[f"{key}.role"])
                ),
            )
        with st.form(f"{key}.form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
            _password(f"New password of {escape(person.name)}", f"{key}:password")
            if person.name == user and person.has_password:
                _password("Current password", f"{key}:password", "old", "current-password")
            st.form_submit_button(
                full_label("Save password", f"of {person.name}"),
                on_click=_set_password,
                args=(user, person.name, f"{key}:password"),
            )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            _subject(f"Sign-in provider ID of {escape(person.name)}", f"{key}:id")
            st.button(
                full_label("Save ID", f"of {person.name}"),
                key=f"{key}.subject.set",
                on_click=lambda: _submit(
                    f"{key}:id",
                    lambda: people.set_subject(user, person.name, _value(f"{key}:id.subject") or None),
                    "The sign-in provider ID was saved.",
                ),
            )
        if person.active:
            with st.popover(full_label("Deactivate", person.name), icon=":material/person_off:"):
                st.markdown(
                    f"{escape(person.name)} is signed out at once, also in the middle of a sentence. What was submitted stays, drafts are "
                    "kept, and assigned items are open to everybody again."
                )
                _activity_button(person, user, "Deactivate now")
        else:
            _activity_button(person, user, "Reactivate")


def _activity_button(person: Person, user: str, word: str) -> None:
    people = shared.store().people
    st.button(
        full_label(word, person.name),
        key=f"people.{person.name}.active",
        on_click=lambda: _do(
            f"{person.name} is {'inactive' if person.active else 'active again'}.",
            lambda: people.set_active(user, person.name, not person.active),
        ),
    )


_submit = reported(submit)


def _text(form: str, field: str, label: str, **look: Any) -> None:
    """A field of a form, with its error."""
    with st.container():
        st.text_input(label, key=f"{form}.{field}", **look)
        show_field_error(form, field)


def _name(form: str) -> None:
    _text(form, "name", "Name", max_chars=sign_in.NAME_CHARS)


def _password(label: str, form: str, field: str = "password", fill: str = "new-password") -> None:
    _text(form, field, label, type="password", help=f"{MIN_PASSWORD_CHARS} characters or more", autocomplete=fill)


def _subject(label: str, form: str) -> None:
    _text(form, "subject", label, placeholder="issuer subject", max_chars=500)


def _secret(form: str, field: str = "password") -> str:
    return str(st.session_state.get(f"{form}.{field}") or "")


def _set_password(user: str, name: str, form: str) -> None:
    """Callback.  Those who change their own stay signed in."""
    password, old = _secret(form), _secret(form, "old") or None
    change: Callable[[], object] = partial(shared.store().people.set_password, user, name, password)
    if user == name:
        change = partial(sign_in.set_own_password, name, password, old)
    _submit(form, change, f"The password of {name} was changed.")


def _first_form(user: str) -> None:
    st.info(
        "Nobody has a password, so anyone who opens this app can do everything under any name. Once there is a manager account, "
        "everybody has to sign in.",
        icon=":material/lock_open:",
    )
    st.markdown(f"**Create the manager account**  \nAll work of '{escape(user)}' goes over to it, and you stay signed in.")
    with st.form(FIRST, width=420):
        _name(FIRST)
        _password("Password", FIRST)
        st.form_submit_button("Create the manager account", type="primary", on_click=_create, args=(user,))


def _create(user: str) -> None:
    """Callback."""
    name, subject = _value(f"{FIRST}.name"), connection.subject() or None
    make = shared.store().people.create_manager
    password = (_secret(FIRST) or None) if subject else _secret(FIRST)  # with a provider's ID none is needed
    _submit(
        FIRST,
        lambda: sign_in.stay(make(user, name, password, subject, connection.browser())),
        f"You are signed in as {name}. Your work and running jobs are kept.",
    )


def _add_form(user: str) -> None:
    st.markdown("**Add a person**")
    with st.form(ADD):
        _name(ADD)
        st.selectbox("Role", list(ROLES), format_func=ROLES.__getitem__, key=f"{ADD}:role")
        _password("Password", ADD)
        _subject("Or sign-in provider ID (issuer and subject)", ADD)
        st.form_submit_button("Add person", on_click=_add, args=(user,))


def _add(user: str) -> None:
    """Callback."""
    name, subject = _value(f"{ADD}.name"), _value(f"{ADD}.subject") or None
    role: Any = st.session_state.get(f"{ADD}:role")
    add = shared.store().people.add_person
    _submit(ADD, lambda: add(user, name, role, password=_secret(ADD) or None, subject=subject), f"{name} was added.")


def activity(project: Project | None, user: str) -> None:
    """The append-only log, the newest first."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input("Person", key="manage.log.who", max_chars=sign_in.NAME_CHARS)
        action = st.selectbox("Action", ["everything", *ACTIONS], format_func=str.capitalize, key="manage.log.action")
    page_key = f"manage.log.before.{project.id if project else ''}.{name}.{action}"  # another choice begins with the newest
    before = st.session_state.get(page_key)
    entries = shared.store().people.activity(
        user,
        project=project.id if project else None,
        person=(name or "").strip() or None,
        action=None if action == "everything" else action,
        before=before,
        limit=LINES_PER_PAGE,
    )
    rows = [
        {
            "Time": time_text(a.created, seconds=True),
            "Person": a.person,
            "Action": a.action,
            "Details": "; ".join(f"{k}: {v}" for k, v in a.details.items()),
            "Item": a.item[:8],
        }
        for a in entries
    ]
    if rows:
        table(rows, "Activity log, newest first", csv_name="activity")
    else:
        st.info("No activity matches.")
    with st.container(horizontal=True):
        turn, last = st.session_state.update, entries[-1].id if entries else None
        st.button("Newest", key="manage.log.first", on_click=turn, args=({page_key: None},), disabled=before is None)
        st.button(
            "Older", key="manage.log.older", on_click=turn, args=({page_key: last},), disabled=len(entries) < LINES_PER_PAGE
        )
