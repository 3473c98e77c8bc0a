"""The requests of a browser, with the app below a path of a reverse proxy: every page, charts, files, pictures in guidelines."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import people
import pytest
from serving import MARKS, WAIT, free_port, quiet, serve, until, with_corpus
from storage_samples import evaluation_report, save_report
from strangers import proxy

from core.retrieval.library import CorpusLibrary
from core.settings import Settings
from storage.store import Store

pytestmark = MARKS
PAGES = ("Explore", "Annotate", "Evaluate", "Papers", "Corpora", "Manage", "Quality", "Jobs", "Connections", "Health")
BELOW = "tools/ambi"
ROWS = [("p1", "West Side Story", "Natalie Wood played Maria in the film.")]


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[tuple[str, list[bytes]]]:
    """Another server: its address, and what it was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def work() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    asked.append(connection.recv(1000))

        threading.Thread(target=work, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", asked


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return with_corpus(tmp_path_factory.mktemp("served") / "home", "small", ROWS)


@pytest.fixture(scope="module")
def store(settings: Settings) -> Iterator[Store]:
    with Store(settings.url) as opened:
        for system, f1 in (("fid", 0.5), ("jpr", 0.6)):
            save_report(opened, evaluation_report((f1, f1, f1), system={"name": system}), system=system)
        yield opened


@pytest.fixture(scope="module")
def address(settings: Settings, store: Store) -> Iterator[str]:
    """The app below a path, behind a proxy on this machine."""
    outside = free_port()
    options = ("--server.address", "127.0.0.1", "--server.baseUrlPath", BELOW)
    with serve(settings.home, "small", options, path=f"{BELOW}/") as inside, proxy(urlsplit(inside).port or 0, outside):
        yield f"http://127.0.0.1:{outside}/{BELOW}/"


class Tab:
    """A page, and its strays: what it asked others for, and what its content security policy stopped."""

    def __init__(self, browser: Any, address: str) -> None:
        self.address, self.strays = address, list[str]()
        self.context = browser.new_context(viewport={"width": 1280, "height": 900})
        self.context.on("request", lambda request: self._seen(request.url))
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT)
        self.page.on("websocket", lambda opened: self._seen(opened.url.replace("ws:", "http:")))
        self.page.on("console", lambda line: "Content Security Policy" in line.text and self.strays.append(line.text))

    def _seen(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:")):
            self.strays.append(url)

    def open(self, path: str = "") -> Any:
        """The page at rest."""
        self.page.goto(self.address + path, timeout=WAIT)
        quiet(self.page)
        return self.page


@pytest.fixture
def tab(browser: Any, address: str) -> Iterator[Tab]:
    opened = Tab(browser, address)
    yield opened
    opened.context.close()


def test_every_page_asks_the_server_alone(tab: Tab) -> None:
    """By its own address, and from the page before; a chart among them."""
    for name in PAGES:
        page = tab.open("" if name == "Explore" else name.lower())
        assert page.get_by_test_id("stException").count() == 0
        assert page.evaluate("document.querySelector('link[rel~=icon]').href").startswith("data:image/svg+xml;base64,")
        if name == "Evaluate":
            page.locator(".js-plotly-plot").first.wait_for(state="attached")
    for name in PAGES:
        tab.page.get_by_test_id("stSidebarNav").get_by_role("link", name=name).click()
        tab.page.wait_for_url(tab.address + ("" if name == "Explore" else name.lower()) + "*")
        quiet(tab.page)
    assert tab.strays == []


def test_a_question_its_link_and_its_trace_below_a_path(tab: Tab) -> None:
    page = tab.open()
    box = page.get_by_label("Question", exact=True)
    box.fill("Who played Maria?")
    box.press("Enter")
    page.wait_for_url("**prediction=*")
    assert page.url.startswith(tab.address)
    tab.open(page.url.removeprefix(tab.address))
    page.get_by_role("button", name="Download").click()
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Trace").click()
    assert "Natalie Wood" in Path(downloading.value.path()).read_text()
    assert tab.strays == []


def test_no_table_has_an_export_of_its_own(tab: Tab) -> None:
    """Streamlit's lets formulas through; the file of our button does not."""
    page = tab.open("health")
    table = page.get_by_test_id("stDataFrame").first
    table.hover()
    table.get_by_role("button", name="Search").wait_for()
    assert table.get_by_role("button", name="CSV").count() == 0


def test_the_browser_itself_is_told_to_load_nothing_from_elsewhere(tab: Tab, elsewhere: tuple[str, list[bytes]]) -> None:
    other, asked = elsewhere
    page = tab.open()
    page.evaluate(
        """async other => {
            window.stopped = [];
            document.addEventListener('securitypolicyviolation', e => window.stopped.push(e.effectiveDirective));
            const add = (name, values) => document.body.append(Object.assign(document.createElement(name), values));
            add('img', {src: other + '/x.png'});
            add('script', {src: other + '/x.js'});
            add('script', {textContent: 'window.hacked = 1'});
            add('iframe', {src: other});
            add('link', {rel: 'stylesheet', href: other + '/x.css'});
            await fetch(other).catch(() => 0);
        }""",
        other,
    )
    kinds = {"img-src", "script-src-elem", "frame-src", "style-src-elem", "connect-src"}
    until(lambda: kinds <= set(page.evaluate("window.stopped")))
    assert page.evaluate("window.hacked") is None
    assert asked == []


def test_a_file_goes_through_after_sign_in(tab: Tab, store: Store, settings: Settings, tmp_path: Path) -> None:
    """Last: from here on people have accounts."""
    people.manager(store, "Mia")
    page = tab.open("corpora")
    page.get_by_label("Name", exact=True).fill("Mia")
    page.get_by_label("Password", exact=True).fill(people.PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("Sign out").wait_for()
    quiet(page)
    (tmp_path / "mine.txt").write_text("Rita Moreno played Anita.\n")
    page.locator("input[type=file]").first.set_input_files(tmp_path / "mine.txt")
    page.get_by_text("mine.txt").first.wait_for()
    quiet(page)
    assert page.get_by_text("Sign in before you upload").count() == 0
    page.get_by_label("Corpus name").fill("mine")
    page.get_by_role("button", name="Upload and build").click()
    page.get_by_text("Dismiss").wait_for()
    assert [p.text for p in CorpusLibrary(settings).open("mine").passages()] == ["Rita Moreno played Anita."]
    assert tab.strays == []
