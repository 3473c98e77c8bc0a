"""The app in a real Chromium: what AppTest cannot see (links, a reload, how tall a result is), and the ways of three persons
through it: a researcher, the owner of documentation, and a newcomer with a folder of files."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

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


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page in a fresh profile."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        yield context.new_page()


def ask(page: Any, question: str = QUESTION) -> None:
    box = page.get_by_label("Question", exact=True)
    box.wait_for(timeout=WAIT)
    box.fill(question)
    box.press("Enter")
    drawn(page)


@pytest.fixture(scope="module")
def link(server: str, browser: Any) -> str:
    """The link of a prediction made in a browser."""
    page = browser.new_page()
    page.goto(server, timeout=WAIT)
    ask(page)
    page.wait_for_url("**prediction=*", timeout=WAIT)
    address: str = page.url
    page.close()
    return address


def drawn(page: Any) -> None:
    page.get_by_role("button", name="Download").first.wait_for(timeout=WAIT)


def rows(page: Any) -> Any:
    return page.locator("[class*='st-key-answers-'] summary")


def test_a_verdict_stays_after_a_reload(link: str, settings: Settings, page: Any) -> None:
    page.goto(link, timeout=WAIT)
    drawn(page)
    rows(page).first.click()
    page.get_by_role("radio", name="unsupported").first.click()
    prediction = parse_qs(urlsplit(link).query)["prediction"][0]
    with Store(settings.url) as store:
        until(lambda: [j.verdict for j in store.labels.judgments(prediction)] == ["unsupported"])
    page.reload()
    drawn(page)
    rows(page).first.click()
    again = page.get_by_role("radio", name="unsupported").first
    again.wait_for(timeout=WAIT)
    assert again.get_attribute("aria-checked") == "true"


def test_the_name_of_the_first_page_leads_there(link: str, server: str, page: Any) -> None:
    """Streamlit serves the default page at the root alone, and says 'Page not found' at its name."""
    page.goto(server + "explore?" + link.split("?")[1], timeout=WAIT)
    drawn(page)
    page.wait_for_url(lambda url: "/explore" not in url)
    assert page.get_by_text("Page not found").count() == 0


@pytest.mark.parametrize(("width", "tallest"), [(1280, 900), (400, 1600)])
def test_a_result_of_three_answers_fits_one_screen(
    server: str, settings: Settings, browser: Any, width: int, tallest: int
) -> None:
    answers = ["Anna Alder", "Boris Birch", "Clara Cedar"]
    system = Engine(settings).system("scripted", "small", Options(extra={"table": {QUESTION: answers}}))
    with Store(settings.url) as store:
        saved = store.predictions.save_prediction(answer(system, Question(QUESTION)))
    with browser.new_context(viewport={"width": width, "height": 900}) as context:
        page = context.new_page()
        page.goto(f"{server}?prediction={saved}", timeout=WAIT)
        drawn(page)
        quiet(page)
        assert rows(page).count() == 3
        bottom = page.evaluate(
            "() => document.querySelector('[data-testid=stMain]').scrollTop"
            " + document.querySelector('[data-testid=stMainBlockContainer] > div').getBoundingClientRect().bottom"
        )
        assert 300 < bottom <= tallest


class Persona:
    """Somebody's browser, which counts clicks."""

    def __init__(self, context: Any, address: str) -> None:
        self.clicks, self.page = 0, context.new_page()
        self.page.set_default_timeout(WAIT)
        self.page.goto(address)
        quiet(self.page)

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
        """What the first answer's row opens into."""
        self.click(rows(self.page).first)
        return self.page.locator("[class*='st-key-answers-'] [data-testid=stExpanderDetails]").first


def test_a_researcher_asks_strikes_continues_compares_and_asks_a_papers_example(server: str, browser: Any) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        me = Persona(context, server)
        page = me.page
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


def test_the_owner_of_documentation_uploads_asks_and_reads_the_section(server: str, browser: Any, tmp_path: Path) -> None:
    manual = tmp_path / "manual.md"
    manual.write_text("# Manual\n\n## Setting up\n\nStart it once.\n\n## Backups\n\nThe tool Restic writes them each night.\n")
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        me = Persona(context, f"{server}corpora")
        me.build("handbook", manual)
        me.ask("Who writes the backups?")
        section = me.open_first()
        section.get_by_text("Backups").first.wait_for()
        section.get_by_text("writes them each night").first.wait_for()
        assert me.clicks <= 6


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


def test_a_newcomer_gets_answers_from_a_zip_and_a_pdf(browser: Any, tmp_path: Path) -> None:
    """In a new home, where nothing is but what comes with the app; with the small networks, which need no base model."""
    archive = zipped_folder(tmp_path / "depots.zip")
    pages = [f"Tunnel {n}\nThe inspector of tunnel {n} is {BY[n % 10]}.\nIt is {40 + n} metres long." for n in range(1, 21)]
    book = saved(pdf(pages), tmp_path / "tunnels.pdf")
    with (
        serve(
            tmp_path / "home", "starter", SYSTEM="ambiscope", ENCODER="minilm", READER="minilm", ANSWERER="minilm"
        ) as address,
        browser.new_context(viewport={"width": 1280, "height": 900}) as context,
    ):
        me = Persona(context, address)
        page = me.page
        page.set_default_timeout(5 * WAIT)  # models are loaded, and passages encoded
        page.get_by_role("button", name="End the tour").click()
        me.click(page.get_by_test_id("stSidebarNav").get_by_role("link", name="Corpora"))
        me.build("ours", archive, book)
        me.ask("Who opened the depot of Kellin West?")
        assert "Cleo Danner" in rows(page).first.inner_text()
        assert me.open_first().get_by_text("Opening").count()
        me.ask("Who is the inspector of tunnel 14?")
        assert "Egon Falk" in rows(page).first.inner_text()
        assert me.clicks <= 7
