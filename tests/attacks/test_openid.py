"""Signing in through a provider of OpenID Connect: Streamlit's own login, in a real browser, against a provider that vouches for whoever comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import people
import pytest
from page_helpers import ROWS
from provider import CLIENT, SECRET, Provider, running
from serving import MARKS, WAIT, serve, with_corpus
from streamlit.testing.v1 import AppTest

from core.settings import Settings
from storage.store import Store

BROWSER = MARKS
Open = Callable[..., AppTest]


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Settings:
    """Mia manages with a password; Ada has an account by her subject, Ben's is inactive."""
    made = with_corpus(tmp_path_factory.mktemp("openid") / "home", "small", ROWS)
    with Store(made.url) as store:
        by = people.manager(store, "Mia")
        for name in ("Ada", "Ben"):
            people.add(store, by, name, "annotator", password=None, subject=f"{provider.address} {name.lower()}-1")
        store.people.set_active(by, "Ben", False)
    return made


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


@pytest.fixture
def tab(browser: Any, server: str, provider: Provider) -> Iterator[Callable[[], Any]]:
    """tab(): a person's own browser."""
    contexts = []

    def open_it() -> Any:
        contexts.append(browser.new_context())
        page = contexts[-1].new_page()
        page.set_default_timeout(WAIT)
        page.goto(server)
        return page

    yield open_it
    for context in contexts:
        context.close()


def through_the_provider(page: Any) -> None:
    with page.expect_request(lambda request: "oauth2callback" in request.url):  # until then the address is the form's own
        page.get_by_role("button", name="Sign in with your organisation").click()
    page.wait_for_url(lambda url: "/auth/" not in url and "code=" not in url)
    quiet(page)


def quiet(page: Any) -> None:
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    page.get_by_test_id("stMain").locator("h2, h3, [data-testid=stAlert]").first.wait_for()


def is_in(page: Any) -> bool:
    quiet(page)
    return bool(page.get_by_label("Question", exact=True).count())


def at_the_form(page: Any) -> bool:
    return bool(page.get_by_role("heading", name="Sign in").count()) and not page.get_by_label("Question", exact=True).count()


@pytest.mark.browser
@pytest.mark.skipif(BROWSER[1].args[0], reason="no Chromium is installed")
class TestInTheBrowser:
    def test_a_known_subject_is_in_under_their_own_name(self, tab: Any, provider: Provider) -> None:
        page = tab()
        assert at_the_form(page) or not is_in(page)
        provider.subject = "ada-1"
        through_the_provider(page)
        page.get_by_label("Question", exact=True).wait_for()
        assert "Ada" in page.get_by_test_id("stSidebar").inner_text()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("heading", name="Sign in").wait_for()
        assert not page.get_by_label("Question", exact=True).count()

    def test_an_unknown_and_an_inactive_subject_stay_outside(self, tab: Any, provider: Provider) -> None:
        for subject in ("stranger", "ben-1", "ADA-1"):
            provider.subject = subject
            page = tab()
            through_the_provider(page)
            page.get_by_role("heading", name="Sign in").wait_for()
            assert not is_in(page), subject


# ---------------------------------------------------------------- what the app makes of what Streamlit says


@pytest.fixture
def visitor(open_app: Open, store: Store, light: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """visitor(claims): a session for which the provider vouched with these claims; none: with nobody."""
    by = people.manager(store, "Mia")
    people.add(store, by, "Ada", "annotator", password=None, subject="https://issuer.example ada-1")
    monkeypatch.setattr("pages.session.connection.provider", lambda: True)

    def come(**claims: object) -> AppTest:
        from core.settings import ROOT

        app = AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=60)
        app.user = {"is_logged_in": bool(claims), **claims}
        return app.run()

    return come


def test_issuer_and_subject_count_together(visitor: Callable[..., AppTest]) -> None:
    assert people.signed_in(visitor(iss="https://issuer.example", sub="ada-1"))
    for claims in (
        {"iss": "https://other.example", "sub": "ada-1"},
        {"iss": "https://issuer.example", "sub": "ada-2"},
        {"name": "Ada", "email": "ada@example.org"},
    ):
        app = visitor(**claims)
        assert not people.signed_in(app), claims
        assert not app.exception
    assert "have no account here" in visitor(iss="https://issuer.example", sub="ada-2").warning[0].value


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://issuer.example ada-1", "sub": ""},
        {"sub": "https://issuer.example ada-1"},
        {"iss": "https://issuer.example", "sub": "ada-1 "},
    ],
    ids=["no subject", "no issuer", "a blank more"],
)
def test_neither_issuer_nor_subject_stands_for_both(visitor: Callable[..., AppTest], claims: dict[str, str]) -> None:
    assert not people.signed_in(visitor(**claims))


def test_a_session_belongs_to_the_subject_of_this_moment(visitor: Callable[..., AppTest], store: Store) -> None:
    """Another person signs in with the provider in the same browser: the first one's session is not theirs."""
    app = visitor(iss="https://issuer.example", sub="ada-1")
    assert people.signed_in(app)
    app.user = {"is_logged_in": True, "iss": "https://issuer.example", "sub": "stranger"}
    assert not people.signed_in(app.run())


def test_who_signed_out_at_the_provider_is_out_here(visitor: Callable[..., AppTest]) -> None:
    app = visitor(iss="https://issuer.example", sub="ada-1")
    assert people.signed_in(app)
    app.user = {"is_logged_in": False}
    assert not people.signed_in(app.run())


def test_a_subject_taken_away_is_out_at_the_next_sign_in(visitor: Callable[..., AppTest], store: Store) -> None:
    store.people.set_subject("Mia", "Ada", None)
    assert not people.signed_in(visitor(iss="https://issuer.example", sub="ada-1"))
