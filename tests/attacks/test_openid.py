"""Signing in through a provider of OpenID Connect: Streamlit's own login, in a real browser, against a provider that vouches for whoever comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import people
import pytest
from page_helpers import ROWS
from provider import CLIENT, SECRET, Provider, running
from serving import CHROMIUM, WAIT, serve, with_corpus
from streamlit.testing.v1 import AppTest

from core.settings import ROOT, Settings
from storage.store import Store

ISSUER = "https://issuer.example"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running() as provider:
        yield provider


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Settings:
    """Mia manages with a password; Ada has an account by her subject."""
    settings = with_corpus(tmp_path_factory.mktemp("openid") / "home", "small", ROWS)
    with Store(settings.url) as store:
        people.add(store, people.manager(store), "Ada", "annotator", password=None, subject=f"{provider.address} ada-1")
    return settings


@pytest.fixture(scope="module")
def server(home: Settings, provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    secrets = tmp_path_factory.mktemp("secrets") / "secrets.toml"

    def configured(port: int) -> list[str]:
        secrets.write_text(
            f"""[auth]
redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
cookie_secret = "a secret of this test alone, and long enough"
client_id = "{CLIENT}"
client_secret = "{SECRET}"
server_metadata_url = "{provider.address}/.well-known/openid-configuration"
""",
            encoding="utf-8",
        )
        return ["--secrets.files", str(secrets)]

    with serve(home.home, "small", configured) as address:
        yield address


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_known_subject_is_in_under_their_own_name(browser: Any, server: str, provider: Provider) -> None:
    provider.subject = "ada-1"
    page = browser.new_page()
    page.set_default_timeout(WAIT)
    page.goto(server)
    form, question = page.get_by_role("heading", name="Sign in"), page.get_by_label("Question", exact=True)
    form.wait_for()
    assert not question.count()
    page.get_by_role("button", name="Sign in with your organisation").click()
    question.wait_for()
    assert "Ada" in page.get_by_test_id("stSidebar").inner_text()
    page.get_by_role("button", name="Sign out").click()
    form.wait_for()
    assert not question.count()


# ---------------------------------------------------------------- what the app makes of what Streamlit says


@pytest.fixture
def visitor(store: Store, light: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """visitor(claims): a session for which the provider vouched with these claims; none: with nobody."""
    by = people.manager(store, "Mia")
    people.add(store, by, "Ada", "annotator", password=None, subject=f"{ISSUER} ada-1")
    people.add(store, by, "Ben", "annotator", password=None, subject=f"{ISSUER} ben-1")
    store.people.set_active(by, "Ben", False)
    monkeypatch.setattr("pages.session.connection.provider", lambda: True)

    def come(**claims: object) -> AppTest:
        app = AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=60)
        app.user = {"is_logged_in": bool(claims), **claims}
        return app.run()

    return come


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": ISSUER, "sub": "ada-2"},
        {"iss": ISSUER, "sub": "ADA-1"},
        {"iss": ISSUER, "sub": "ada-1 "},
        {"iss": ISSUER, "sub": "ben-1"},
        {"iss": "https://other.example", "sub": "ada-1"},
        {"iss": f"{ISSUER} ada-1", "sub": ""},
        {"sub": f"{ISSUER} ada-1"},
        {"name": "Ada", "email": "ada@example.org"},
    ],
    ids=["unknown", "letters", "a blank more", "inactive", "another issuer", "no subject", "no issuer", "neither"],
)
def test_whom_no_issuer_and_subject_name_stays_outside(visitor: Callable[..., AppTest], claims: dict[str, str]) -> None:
    app = visitor(**claims)
    assert not people.signed_in(app)
    assert not app.exception


def test_an_unknown_subject_is_shown_for_the_manager(visitor: Callable[..., AppTest]) -> None:
    assert [code.value for code in visitor(iss=ISSUER, sub="ada-2").code] == [f"{ISSUER} ada-2"]


@pytest.mark.parametrize(
    "user",
    [{"is_logged_in": True, "iss": ISSUER, "sub": "stranger"}, {"is_logged_in": False}],
    ids=["another person in the same browser", "signed out at the provider"],
)
def test_a_session_belongs_to_the_subject_of_this_moment(visitor: Callable[..., AppTest], user: dict[str, object]) -> None:
    app = visitor(iss=ISSUER, sub="ada-1")
    assert people.signed_in(app)
    app.user = user
    assert not people.signed_in(app.run())


def test_a_subject_taken_away_is_out_at_the_next_sign_in(visitor: Callable[..., AppTest], store: Store) -> None:
    store.people.set_subject("Mia", "Ada", None)
    assert not people.signed_in(visitor(iss=ISSUER, sub="ada-1"))
