"""Somebody who knows the number of a session, from the address of an upload in a proxy's log, goes on with it over a connection of
their own: Streamlit gives it to them, and they are nobody in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import people
import pytest
from page_helpers import ROWS
from serving import serve, with_corpus
from strangers import Stranger, stranger
from test_tabs import sign_in

from core.settings import Settings
from storage.store import Store


@pytest.fixture
def home(tmp_path: Path) -> Settings:
    settings = with_corpus(tmp_path / "home", "small", ROWS)
    with Store(settings.url) as store:
        people.add(store, people.manager(store, "Mia"), "Ada", "annotator")
    return settings


def is_in(tab: Stranger) -> bool:
    drawn = " ".join(tab.words)
    assert ('-signin.out"' in drawn) != ('-signin.password"' in drawn)
    return '-signin.out"' in drawn


def ada_is_active(home: Settings) -> bool:
    with Store(home.url) as store:
        return next(p.active for p in store.people.people("Mia") if p.name == "Ada")


@pytest.fixture
def server(home: Settings) -> Iterator[str]:
    with serve(home.home, "small") as address:
        yield address


def test_the_number_of_a_session_opens_nothing_in_another_browser(home: Settings, server: str) -> None:
    with stranger(server) as mia:
        assert not is_in(mia)
        sign_in(mia)
        assert is_in(mia)
        mia.run("manage")
        inactive = mia.ids["people.Ada.active"]
    with stranger(server, mia.cookies, mia.session) as again:  # her connection was cut: her own browser goes on
        again.run("manage")
        assert again.session == mia.session
        assert is_in(again)
    with stranger(server, session=mia.session) as eve:
        assert eve.cookies != mia.cookies
        eve.run("manage", pressed=inactive)  # what Mia's page had drawn, with the door that it held
        assert eve.session == mia.session, "else nothing was attacked"
        assert not is_in(eve)
        assert ada_is_active(home)
    with stranger(server, mia.cookies, mia.session) as back:  # the sign-in does not come back either
        back.run("manage", pressed=inactive)
        assert not is_in(back)
        assert ada_is_active(home)
    with stranger(server) as other:  # the same button in a session of one's own is no button
        other.run("manage", pressed=inactive)
        assert not is_in(other)
    assert ada_is_active(home)
