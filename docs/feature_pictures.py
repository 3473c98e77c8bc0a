"""The pictures of single features, made by the app itself over stored results: conflict.png, how_to.png, judging.png, add_to_project.png, assignments.png, comments.png.

    python -m docs.feature_pictures [--only NAME]

Needs Chromium and no model.  Look at each picture before it is committed.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.speed.start import browsing, running
from core import types as t
from core.text import find_spans
from storage.records.projects import ProjectValues
from storage.store import Store

HERE = Path(__file__).resolve().parent
WAIT = 180_000  # milliseconds
ME = "me"
BRIDGE = "When was the Kelvin Bridge in Tarnow opened to traffic?"
OPENED = {
    "1891": ("Kelvin Bridge", "The Kelvin Bridge in Tarnow was opened in 1891. It has five arches and is 212 metres long."),
    "1893": (
        "Roads of the county (2019)",
        "By a count of 2019, 4,000 cars a day cross the Kelvin Bridge, opened to traffic in 1893.",
    ),
}
HOW_TO = "How do I index a folder?"
GUIDE = (
    "A corpus is made of files. To index a folder from the command line, run:\n"
    "python -m core index \\\n    --passages FOLDER --name NAME\n"
    "It is searched by words at once. Vectors follow in the background."
)


def prediction(question: str, texts: dict[str, tuple[str, str]]) -> t.Prediction:
    """Answers, each read from its (title, text)."""
    passages = {answer: t.Passage(f"doc-{n}", *row) for n, (answer, row) in enumerate(texts.items(), 1)}
    answers = []
    for number, (answer, passage) in enumerate(passages.items(), 1):
        (start, end), *_ = find_spans(passage.text, answer)
        answers.append(t.Answer(answer, 0.9 - number / 10, (t.Evidence(passage.id, start, end, answer),), number))
    found = tuple(t.RetrievedPassage(p, n, 1.0) for n, p in enumerate(passages.values(), 1))
    events = (t.PassagesRetrieved(found, 0.1, question), t.Finished(1.2, "no further answer is likely"))
    asked, system = t.Question(question), t.SystemInfo("ambiscope", corpus="documents")
    return t.Prediction(asked, system, tuple(answers), (), (), found, 1.2, events)


def fill(store: Store) -> dict[str, str]:
    """Predictions and a project; the ids that addresses need."""
    conflict = store.predictions.save_prediction(prediction(BRIDGE, OPENED))
    how_to = store.predictions.save_prediction(prediction(HOW_TO, {"run": ("Guide > Corpora", GUIDE)}))
    for name in ("Ann", "Ben"):
        store.people.add_person(ME, name, "annotator")
    values: ProjectValues = {"systems": ("ambiscope",), "error_labels": ("translation",), "thresholds": {"must_read": 0}}
    made = {
        stage: store.projects.create_project(ME, name, stages=(stage,), **values)
        for stage, name in (("judging", "Bridges, judged"), ("generation", "Bridges"))
    }
    for project in made.values():
        store.intake.add_prediction(ME, project.id, conflict)
    return {"conflict": conflict, "how_to": how_to, **{stage: project.id for stage, project in made.items()}}


def crop(page: Any, selector: str, path: Path, margin: int = 12) -> None:
    """The area around the elements that match, with a margin."""
    boxes: list[Any] = []
    while True:  # until nothing moves any more
        page.wait_for_timeout(3_000)
        seen, boxes = boxes, [b for e in page.locator(selector).all() if (b := e.bounding_box())]
        if boxes and boxes == seen:
            break
    left, top = (min(b[side] for b in boxes) - margin for side in ("x", "y"))
    right = max(b["x"] + b["width"] for b in boxes) + margin
    bottom = max(b["y"] + b["height"] for b in boxes) + margin
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB").crop((max(0, left), max(0, top), right, bottom))
    picture.quantize(64, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)


def visit(page: Any, address: str) -> None:
    """A page as somebody sees it who has ended the tour."""
    page.goto(address, wait_until="commit", timeout=WAIT)
    end = page.get_by_role("button", name="End the tour")
    page.get_by_test_id("stHeading").first.wait_for(timeout=WAIT)
    if end.is_visible():
        end.click()
        end.wait_for(state="detached", timeout=WAIT)


def conflict(page: Any, address: str, ids: dict[str, str]) -> None:
    visit(page, f"{address}?prediction={ids['conflict']}")
    page.get_by_text("These documents disagree").wait_for(timeout=WAIT)
    crop(page, "[class*='conflict'], [class*='st-key-answers']", HERE / "conflict.png")


def how_to(page: Any, address: str, ids: dict[str, str]) -> None:
    visit(page, f"{address}?prediction={ids['how_to']}")
    page.get_by_test_id("stCode").wait_for(timeout=WAIT)
    crop(page, "[class*='st-key-answers']", HERE / "how_to.png")


def add_to_project(page: Any, address: str, ids: dict[str, str]) -> None:
    visit(page, f"{address}?prediction={ids['conflict']}")
    page.get_by_role("button", name="Add to project").click(timeout=WAIT)
    page.get_by_text("The question becomes an item").wait_for(timeout=WAIT)
    crop(page, "[data-testid='stPopoverBody'], [class*='project-open']", HERE / "add_to_project.png")


def judging(page: Any, address: str, ids: dict[str, str]) -> None:
    visit(page, f"{address}annotate?project={ids['judging']}&me=Ann")
    page.get_by_role("button", name="Outdated").first.click(timeout=WAIT)
    page.get_by_role("button", name="Contradicts").nth(1).wait_for(timeout=WAIT)
    crop(page, "[class*='-card-']", HERE / "judging.png")


def comments(page: Any, address: str, ids: dict[str, str]) -> None:
    visit(page, f"{address}annotate?project={ids['generation']}&me=Ann")
    page.get_by_text("Comments (").click(timeout=WAIT)
    page.get_by_label("Comment", exact=True).fill("Is the date of the ceremony meant, or the first car?", timeout=WAIT)
    page.get_by_role("button", name="Add comment").click(timeout=WAIT)
    page.get_by_text("Comments (1)").wait_for(timeout=WAIT)
    crop(page, "[class*='st-key-comments']", HERE / "comments.png")


def assignments(page: Any, address: str, ids: dict[str, str]) -> None:
    visit(page, f"{address}manage?me={ME}")
    page.get_by_text("Assign items: ").click(timeout=WAIT)
    page.get_by_role("button", name="Assign", exact=True).wait_for(timeout=WAIT)
    crop(page, "[data-testid='stExpander']:has-text('Assign items')", HERE / "assignments.png")


PICTURES: dict[str, Callable[[Any, str, dict[str, str]], None]] = {
    f"{draw.__name__}.png": draw for draw in (conflict, how_to, judging, add_to_project, assignments, comments)
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PICTURES, action="append", help="one picture (default: all); may be repeated")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with Store(f"sqlite:///{home / 'ambiscope.db'}") as store:
            ids = fill(store)
        with running(home) as (address, _), browsing(viewport={"width": 1280, "height": 1400}) as page:
            for name in args.only or PICTURES:
                PICTURES[name](page, address, ids)
                print(f"docs/{name}: {(HERE / name).stat().st_size / 1024:.0f} KB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
