"""The pictures of the documents, made by the app itself with the bundled models: explore.png, verdict.png and answers.gif.

    python -m docs.pictures [--only NAME] [--question "Who directed A Star Is Born?"]

Needs Chromium and, as the app does, nothing from the network.  Look at each picture before it is committed.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.speed.start import browsing, running

HERE = Path(__file__).resolve().parent
WAIT = 300_000  # milliseconds
WIDTH, HEIGHT = 860, 620  # of the animated picture
COLOURS = 64
TOP = 500  # characters at the top of the page that tell its stages apart
SCROLLS, SCROLL = 2, 330  # pages of the finished set below the first, and pixels between them
SECONDS, LAST = 1.4, 5.0  # that a frame is shown, and the last one


def open_page(page: Any, address: str) -> None:
    """The page as somebody sees it who has ended the tour."""
    page.goto(address)
    page.get_by_role("button", name="End the tour").click(timeout=WAIT)
    page.get_by_role("button", name="End the tour").wait_for(state="detached", timeout=WAIT)
    page.get_by_test_id("stBaseButton-primaryFormSubmit").wait_for(timeout=WAIT)


def ask(page: Any, question: str) -> None:
    box = page.get_by_label("Question", exact=True)
    box.fill(question)
    box.press("Enter")


def finished(page: Any) -> bool:
    return bool(page.get_by_role("button", name="Download").first.is_visible())


def picture_of(page: Any) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def write_png(page: Any, height: int, path: Path) -> None:
    """The page from its top, 1280 wide, after everything has been drawn."""
    page.get_by_role("button", name="Download").first.wait_for(timeout=WAIT)
    page.set_viewport_size({"width": 1280, "height": height})
    page.evaluate("() => document.activeElement.blur()")
    page.wait_for_timeout(3_000)
    picture_of(page).quantize(128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)


def frames_of(page: Any, question: str) -> list[Image.Image]:
    """Pictures of the page from the question to the finished answer set, each stage once, and then of the answers below."""
    found: list[Image.Image] = []
    stages: set[str] = set()
    main = page.get_by_test_id("stMain")

    def look() -> None:
        stage = re.sub(r"[\d.]+ m?s\b", "", main.inner_text()[:TOP])
        if stage not in stages:
            stages.add(stage)
            found.append(picture_of(page))

    look()
    ask(page, question)
    until = time.monotonic() + WAIT / 1000
    while not finished(page) and time.monotonic() < until:
        look()
        page.wait_for_timeout(150)
    page.evaluate("() => document.activeElement.blur()")
    page.wait_for_timeout(3_000)
    for _ in range(1 + SCROLLS):
        found.append(picture_of(page))
        main.hover()
        page.mouse.wheel(0, SCROLL)
        page.wait_for_timeout(500)
    return found


def write_gif(frames: list[Image.Image], path: Path) -> None:
    palette = frames[-1].quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    drawn = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    times = [round(1000 * SECONDS)] * (len(drawn) - 1) + [round(1000 * LAST)]
    drawn[0].save(path, save_all=True, append_images=drawn[1:], duration=times, loop=0, optimize=True)


def explore(home: Path, question: str) -> None:
    with running(home) as (address, _), browsing() as page:
        open_page(page, address)
        ask(page, question)
        write_png(page, 1560, HERE / "explore.png")


def answers(home: Path, question: str) -> None:
    with running(home) as (address, _), browsing(viewport={"width": WIDTH, "height": HEIGHT}) as page:
        open_page(page, address)
        page.get_by_test_id("stSidebar").hover()  # its button is only shown then
        page.get_by_test_id("stSidebarCollapseButton").locator("button").click()
        page.wait_for_timeout(30_000)  # until the models are loaded
        write_gif(frames_of(page, question), HERE / "answers.gif")


def verdict(home: Path, question: str) -> None:
    with running(home, AMBISCOPE_SYSTEM="verdict") as (address, _), browsing() as page:
        open_page(page, address)
        ask(page, question)
        write_png(page, 1700, HERE / "verdict.png")


PICTURES = {"explore.png": explore, "answers.gif": answers, "verdict.png": verdict}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--question", default="Who directed A Star Is Born?")
    parser.add_argument("--only", choices=PICTURES, action="append", help="one picture (default: all); may be repeated")
    args = parser.parse_args()
    for name in args.only or PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            PICTURES[name](Path(folder), args.question)
        print(f"docs/{name}: {(HERE / name).stat().st_size / 1024:.0f} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
