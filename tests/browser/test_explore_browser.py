"""The app in a real Chromium: what AppTest cannot see (the first page's name, how tall a result is), and the ways of two persons
through it: a researcher, and a newcomer with a folder of files."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pdf_samples import pdf, saved
from serving import MARKS, WAIT, quiet, serve, until, with_corpus

from core.engine import Engine
from core.settings import Settings
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.types import Question
from storage.store import Store

pytestmark = MARKS
QUESTION = "Where did Anna Alder meet Boris Birch?"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    rows = [("n1", "Anna", "Anna Alder met Boris Birch."), ("n2", "Boris", "Boris Birch met Clara Cedar.")]
    return with_corpus(tmp_path_factory.mktemp("browser") / "home", "small", rows)


@pytest.fixture(scope="module")
def server(settings: Settings) -> Iterator[str]:
    """The app with the scripted system; its address."""
    with serve(settings.home, "small") as address:
        yield address


@pytest.fixture(scope="module")
def stored(settings: Settings) -> str:
    """The id of a prediction of three answers."""
    answers = ["Anna Alder", "Boris Birch", "Clara Cedar"]
    system = Engine(settings).system("scripted", "small", Options(extra={"table": {QUESTION: answers}}))
    with Store(settings.url) as store:
        return store.predictions.save_prediction(answer(system, Question(QUESTION)))


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page in a fresh profile."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        context.set_default_timeout(WAIT)
        yield context.new_page()


def drawn(page: Any) -> None:
    page.get_by_role("button", name="Download").first.wait_for()


def rows(page: Any) -> Any:
    return page.locator("[class*='st-key-answers-'] summary")


def test_the_name_of_the_first_page_leads_there(stored: str, server: str, page: Any) -> None:
    """Streamlit serves the default page at the root alone, and says 'Page not found' at its name."""
    page.goto(f"{server}explore?prediction={stored}")
    drawn(page)
    page.wait_for_url(lambda url: "/explore" not in url)
    assert page.get_by_text("Page not found").count() == 0


@pytest.mark.parametrize(("width", "tallest"), [(1280, 900), (400, 1600)])
def test_a_result_of_three_answers_fits_one_screen(stored: str, server: str, page: Any, width: int, tallest: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{server}?prediction={stored}")
    drawn(page)
    quiet(page)
    assert rows(page).count() == 3
    bottom = page.evaluate(
        "() => document.querySelector('[data-testid=stMain]').scrollTop"
        " + document.querySelector('[data-testid=stMainBlockContainer] > div').getBoundingClientRect().bottom"
    )
    assert 300 < bottom <= tallest


class Persona:
    """Somebody's page, of which each click is counted."""

    def __init__(self, page: Any, address: str) -> None:
        self.clicks, self.page = 0, page
        page.goto(address)
        quiet(page)

    def click(self, what: Any) -> None:
        what.click()
        self.clicks += 1
        quiet(self.page)

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True)

    def build(self, corpus: str, *files: Path) -> None:
        """A corpus of files, on the Corpora page, and the way from there to a question about it."""
        page = self.page
        page.get_by_label("Corpus name").fill(corpus)
        with page.expect_file_chooser() as choosing:
            self.click(page.get_by_test_id("stFileUploader").locator("button", has_text="Upload"))
        choosing.value.set_files(files)
        page.get_by_text(files[-1].name).first.wait_for()
        quiet(page)
        self.click(self.button("Upload and build"))
        page.get_by_text(f"Corpus {corpus} is ready").wait_for()
        quiet(page)
        self.click(self.button("Ask it"))

    def ask(self, question: str) -> None:
        self.page.get_by_label("Question", exact=True).fill(question)
        self.click(self.button("Ask"))
        self.page.wait_for_url("**prediction=*")
        drawn(self.page)

    def open_first(self) -> Any:
        """Opens the row of the first answer."""
        self.click(rows(self.page).first)
        return self.page.locator("[class*='st-key-answers-'] [data-testid=stExpanderDetails]").first


def test_a_researcher_asks_strikes_continues_compares_and_asks_a_papers_example(server: str, page: Any) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    me = Persona(page, server)
    me.ask(QUESTION)
    first = page.url
    best = rows(page).first.locator("strong").inner_text()
    opened = me.open_first()
    opened.locator(".stMarkdownColoredBackground", has_text=best).first.wait_for()
    me.click(opened.get_by_role("radio", name="Wrong"))
    rows(page).first.locator("del").wait_for()
    opened.get_by_role("radio", name="Wrong").wait_for()  # the row is still open: one click would undo it
    me.click(me.button("Continue from here"))
    page.wait_for_url(lambda url: "prediction=" in url and url != first)
    drawn(page)
    assert best not in rows(page).locator("strong").all_inner_texts()
    me.click(page.get_by_test_id("stSidebar").get_by_text("Compare with a second system"))
    me.click(me.button("Ask"))
    page.wait_for_url("**other=*")
    page.get_by_text("Found by both").wait_for()
    me.click(me.button("Copy link, left side"))
    until(lambda: page.evaluate("() => navigator.clipboard.readText()") == page.url)
    me.click(page.get_by_test_id("stSidebarNav").get_by_role("link", name="Papers"))
    me.click(page.get_by_role("button", name=re.compile("^Ask ")).first)
    page.wait_for_url("**prediction=*")
    drawn(page)
    assert page.get_by_text("In the paper:").count() == 1
    assert me.clicks <= 12


OPENED = "Tarnvale Ostrow Kellin Brams Uldern Fenwick Gorlitz Marrow Sundby Ilmen".split()
BY = "Ada Brandt,Ben Carver,Cleo Danner,Dina Ebert,Egon Falk,Fay Garner,Gus Holm,Hanna Ivers,Ivo Jansen,Jill Kerr".split(",")


def zipped_folder(path: Path) -> Path:
    """Sixty nested Markdown and HTML files; names repeat."""
    with zipfile.ZipFile(path, "w") as archive:
        for n in range(60):
            town, person = f"{OPENED[n % 10]} {'North South East West Old New'.split()[n // 10]}", f"{BY[n % 10]}"
            parts = (f"Depot of {town}", "Opening", f"The depot of {town} was opened by {person} in {1900 + n}.")
            markdown = "# {}\n\n## {}\n\n{}\n\n```sh\nopen --depot {}\n```\n".format(*parts, n)
            html = "<html><body><h1>{}</h1><h2>{}</h2><p>{}</p></body></html>".format(*parts)
            name, text = ("index.html", html) if n % 3 == 2 else ("README.md", markdown)
            archive.writestr(f"docs/{n % 6}/depots/{n}/{name}", text)
    return path


def test_a_newcomer_gets_answers_from_a_zip_and_a_pdf(page: Any, tmp_path: Path) -> None:
    """In a new home, where nothing is but what comes with the app; with the small networks, which need no base model."""
    archive = zipped_folder(tmp_path / "depots.zip")
    pages = [f"Tunnel {n}\nThe inspector of tunnel {n} is {BY[n % 10]}.\nIt is {40 + n} metres long." for n in range(1, 21)]
    book = saved(pdf(pages), tmp_path / "tunnels.pdf")
    networks = dict.fromkeys(("ENCODER", "READER", "ANSWERER"), "minilm")
    with serve(tmp_path / "home", "starter", SYSTEM="ambiscope", **networks) as address:
        page.set_default_timeout(5 * WAIT)  # models are loaded, and passages encoded
        me = Persona(page, address)
        page.get_by_role("button", name="End the tour").click()
        me.click(page.get_by_test_id("stSidebarNav").get_by_role("link", name="Corpora"))
        me.build("ours", archive, book)
        me.ask("Who opened the depot of Kellin West?")
        assert "Cleo Danner" in rows(page).first.inner_text()
        assert me.open_first().get_by_text("Opening").count()
        me.ask("Who is the inspector of tunnel 14?")
        assert "Egon Falk" in rows(page).first.inner_text()
        assert me.clicks <= 7
