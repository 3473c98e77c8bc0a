"""Every page in a real Chromium, in both themes and narrow: axe-core finds no serious violation, controls of the same word have
names of their own, charts and tables have a text, whoever moves by keyboard sees where they are, and nothing has to be moved sideways.

axe-core comes with the package axe-playwright-python (requirements-dev.txt)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from annotate_helpers import make_project
from annotation_samples import do, single
from serving import MARKS, WAIT, quiet, serve, with_corpus
from storage_samples import evaluation_report, prediction, save_report

from core import types as t
from storage.records.projects import GuidelineExample
from storage.store import Store

pytestmark = MARKS
ASKED = "Who played Maria in West Side Story?"
STAGES = ("generation", "validation", "judging")
PAGES = (
    "explore",
    "compared",
    *STAGES,
    "my items",
    "evaluate",
    *(f"evaluate: {view}" for view in ("Two runs", "One run", "Start and store")),
    "papers",
    "corpora",
    "manage",
    *(f"manage: {section}" for section in ("Guidelines", "Suggestions", "Settings", "People", "Activity")),
    "quality",
    "connections",
    "health",
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The app over a store with something on every page; its address, and the ids that the addresses of pages need."""
    home = tmp_path_factory.mktemp("access") / "home"
    passages = [t.RetrievedPassage(t.Passage(f"p{n}", f"Film {n}", f"Natalie Wood and Ada {n}."), n, 1 / n) for n in (1, 2, 3)]
    settings = with_corpus(home, "small", [(p.passage.id, p.passage.title, p.passage.text) for p in passages])
    with Store(settings.url) as store:
        ids = [
            store.predictions.save_prediction(prediction(ASKED, answers, system="scripted", passages=passages))
            for answers in (("Natalie Wood", "Ada"), ("Ada",))
        ]
        for position, name in enumerate(("Ada", "Bob")):
            store.labels.judge(ids[0], position, name, "correct", "see the cast list")
        work = {"stages": STAGES, "systems": ["scripted"], "annotators_per_item": 2, "thresholds": {"must_read": 0}}
        advice = {
            "guidelines": "**Writing answers.** *Read* first.",
            "examples": 2 * [GuidelineExample(True, ASKED, single(), "one")],
        }
        name = "Project with underscores_and *stars*"
        project = make_project(store, "me", (ASKED, "Who is Ada?"), name=name, **work, **advice)
        store.intake.link_predictions("me", project.id)
        do(store, project, "Ada", "Natalie Wood", "Rita Moreno")
        do(store, project, "Bob", "Natalie Wood", "Ada", "Rita Moreno")
        for label, values in (("first", (1.0, 0.5, None, 0.0)), ("second", (0.5, 0.5, 1.0, 0.0))):
            save_report(store, evaluation_report(values), label=label)
    with serve(home, "small") as address:
        yield {"address": address, "project": project.id, "one": ids[0], "other": ids[1]}


REST = 700  # milliseconds; what slides into its place takes no longer
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 400, "height": 900}


@contextmanager
def opened(browser: Any, house: dict[str, str], name: str) -> Iterator[Any]:
    """That page at rest."""
    with browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        page.set_default_timeout(WAIT)
        place, _, view = name.partition(": ")
        work = f"annotate?project={house['project']}&stage="
        page.goto(
            house["address"]
            + {
                "explore": f"?prediction={house['one']}",
                "compared": f"?prediction={house['one']}&other={house['other']}",
                **{stage: f"{work}{stage}&me=Cleo" for stage in STAGES},
                "my items": f"{work}generation&me=Ada",
            }.get(place, place)
        )
        page.locator("[data-testid=stMain] h2").first.wait_for()
        for row in page.locator("[class*='st-key-answers-'] summary").all():
            row.click()
        quiet(page, REST)
        if choice := view or {"my items": "My items"}.get(name, ""):
            page.get_by_role("radio", name=choice, exact=True).click()
            quiet(page, REST)
        yield page


def draw_in(page: Any, theme: str) -> None:
    page.emulate_media(color_scheme=theme)
    page.wait_for_function(
        "theme => getComputedStyle(document.querySelector('[data-testid=stApp]')).colorScheme === theme", arg=theme
    )
    quiet(page, REST)


@pytest.fixture(scope="module", params=PAGES)
def each(request: pytest.FixtureRequest, browser: Any, house: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """(name, page) of each page in turn; tests share it, as opening takes longest."""
    with opened(browser, house, request.param) as page:
        yield request.param, page


@pytest.fixture
def explore(browser: Any, house: dict[str, str]) -> Iterator[Any]:
    with opened(browser, house, "explore") as page:
        yield page


def violations(page: Any) -> list[str]:
    """A line for each element that a rule of axe-core finds seriously wrong."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    # Chromium and Firefox let Tab reach a region that scrolls (long guidelines) by themselves; Streamlit cannot mark one
    options = {"resultTypes": ["violations"], "rules": {"scrollable-region-focusable": {"enabled": False}}}
    return [
        f"{rule['id']}: {node['html'][:160]} {' '.join(check['message'] for check in node['any'])[:200]}"
        for rule in axe.run(page, options=options).response["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


# Streamlit's buttons in a block of code and in a field for a date, which have names of their own
OWN = {"Copy to clipboard", "Choose date"}
# Streamlit's own buttons, in a field, a table or a list that has a name
OF_FIELDS = "[role=radiogroup], [role=tablist], [role=group], nav, .js-plotly-plot, " + ", ".join(
    f"[data-testid={kind}]" for kind in ("stDataFrame", "stFileUploader", "stNumberInput")
)


def names(page: Any) -> list[str]:
    """The accessible names of the buttons in the main part that act on one thing among several."""
    labels = page.get_by_test_id("stMain").evaluate(
        """(main, fields) => [...main.querySelectorAll('button')]
            .filter(e => e.checkVisibility() && !e.closest(fields))
            .map(e => e.getAttribute('aria-label') || e.textContent)""",
        OF_FIELDS,
    )
    return [" ".join(label.split()) for label in labels]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_violation(each: tuple[str, Any], theme: str) -> None:
    _, page = each
    draw_in(page, theme)
    assert violations(page) == []


def test_controls_of_the_same_word_have_different_names(each: tuple[str, Any]) -> None:
    name, page = each
    counted = Counter(n for n in names(page) if n not in OWN)
    assert counted or name in ("manage", "connections")  # the buttons of the one are in its tabs, the other may have none
    assert [n for n, times in counted.items() if times > 1] == []


def test_what_is_read_aloud_is_not_drawn(explore: Any) -> None:
    explore.locator("[class*='st-key-answers-'] summary").first.click()
    button = explore.get_by_role("button", name="Note on answer").first
    button.wait_for()
    shown, hidden = button.bounding_box(), button.locator("em").bounding_box()
    assert "Note" in button.inner_text()
    assert hidden["width"] <= 1
    assert shown["width"] < 200


def test_fits_a_narrow_screen(each: tuple[str, Any]) -> None:
    _, page = each
    page.set_viewport_size(NARROW)
    quiet(page, REST)
    widths = page.evaluate("[document.documentElement, document.querySelector('[data-testid=stMain]')].map(e => e.scrollWidth)")
    page.set_viewport_size(WIDE)
    quiet(page, REST)
    assert max(widths) <= NARROW["width"]


def test_charts_and_tables_have_a_text(each: tuple[str, Any]) -> None:
    """Streamlit reads the `alt` of a chart or table aloud."""
    _, page = each
    for kind in ("stPlotlyChart", "stDataFrame"):
        for drawn in page.get_by_test_id(kind).all():
            label = "e => (e.querySelector('[aria-label]') || e.closest('[aria-label]') || e).getAttribute('aria-label')"
            assert drawn.evaluate(label), f"a {kind} without a text"


OUTLINED = """() => {
    const style = getComputedStyle(document.activeElement);
    return style.outlineStyle === 'solid' && parseFloat(style.outlineWidth) >= 2;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_focus_is_seen(explore: Any, theme: str) -> None:
    """Each button, link, tab and choice that Tab reaches on a page has a line around it."""
    draw_in(explore, theme)
    reached = 0
    for _ in range(60):
        explore.keyboard.press("Tab")
        if explore.evaluate("document.activeElement.tagName") in ("BUTTON", "A", "SUMMARY"):
            reached += 1
            explore.wait_for_function(OUTLINED)  # the line may come a frame after the focus
    assert reached > 10
