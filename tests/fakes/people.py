"""Making people and signing in, in one place: what every attack does first."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from storage.records.enumerations import Role
from storage.store import Store

PASSWORD = "a long password"
SUBJECT = "https://issuer.example stranger-1"


def anyone(store: Store, name: str = "me") -> str:
    """Somebody in an open house, who may do everything."""
    return name


def manager(store: Store, name: str = "Mia", password: str | None = PASSWORD) -> str:
    """The first account: from here on, people sign in."""
    store.people.add_person(anyone(store, name), name, "manager", password=password)
    return name


def add(store: Store, by: str, name: str, role: Role, password: str | None = PASSWORD, subject: str | None = None) -> str:
    store.people.add_person(by, name, role, password=password, subject=subject)
    return name


def sign_in(app: AppTest, name: str, password: str = PASSWORD) -> AppTest:
    """Through the form."""
    app.text_input(key="signin.typed").set_value(name)
    app.text_input(key="signin.password").set_value(password)
    return next(b for b in app.button if b.label == "Sign in").click().run()


def signed_in(app: AppTest) -> bool:
    return any(b.key == "signin.out" for b in app.button)
