"""Seconds from the start command to first paint, first answer and finished set: the first time (empty AMBISCOPE_HOME) and later.

    python -m benchmarks.speed.start [--question "Who directed A Star Is Born?"]

Opens headless Chromium, starts the app as `run.py app` does on a free loopback port with an AMBISCOPE_HOME of its own, opens the page, asks a
question, and waits for its first answer and for the finished answer set with its disambiguated questions.  First paint is what Chromium reports as
first contentful paint.  Also reports the peak memory of the app's process.  Needs Chromium.  `aims` are those of a later start on two idle cores.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from benchmarks.timing import peak_mb, show
from core.settings import ROOT

CHROMIUM_FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
AIMS = {"first_paint": 3.0, "first_answer_shown": 8.0, "question_answered": 11.0}  # seconds
PAINT = "() => (performance.timeOrigin + performance.getEntriesByName('first-contentful-paint')[0].startTime) / 1000"


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def wait_for(process: subprocess.Popen[bytes], answers: Callable[[], bool], limit: float = 600) -> None:
    """Returns once `answers`, which may raise httpx.TransportError until then.  Raises RuntimeError if the process ends, or takes `limit` seconds."""
    start = time.perf_counter()
    while True:
        with suppress(httpx.TransportError):
            if answers():
                return
        if process.poll() is not None or time.perf_counter() - start > limit:
            raise RuntimeError("the server did not start")
        time.sleep(0.1)


@contextmanager
def running(home: Path, **more: str) -> Iterator[tuple[str, int]]:
    """The app over this AMBISCOPE_HOME: (address, process id), as soon as it answers.  `more`: further settings.

    Raises RuntimeError if it does not start.
    """
    port = free_port()
    address = f"http://127.0.0.1:{port}/"
    command = [sys.executable, "-m", "pages.server.launch", "--server.port", str(port), "--server.address", "127.0.0.1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "AMBISCOPE_HOME": str(home), **more}, **quiet)
    try:
        # one client: each new one reads the certificates, on the cores that the app starts on
        with httpx.Client(base_url=address, timeout=1, trust_env=False) as client:
            wait_for(server, lambda: client.get("_stcore/health").is_success, limit=120)
        yield address, server.pid
    finally:
        server.terminate()
        server.wait(20)


@contextmanager
def browsing(**options: Any) -> Iterator[Any]:
    """A page of headless Chromium, 1280 wide.  `options`: of playwright's `new_page`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM_FLAGS)
        yield browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **options})
        browser.close()


def one_start(home: Path, question: str) -> dict[str, float]:
    with browsing() as page:
        start_time, start = time.time(), time.perf_counter()
        with running(home) as (address, pid):
            server_up = time.perf_counter() - start
            page.goto(address)
            box = page.get_by_label("Question", exact=True)
            box.wait_for(timeout=120_000)
            page.get_by_test_id("stBaseButton-primaryFormSubmit").wait_for(timeout=120_000)
            page_shown = time.perf_counter() - start
            painted = float(page.evaluate(PAINT)) - start_time
            box.fill(question)
            box.press("Enter")
            page.locator("ol li").first.wait_for(timeout=180_000)  # the list of answers found so far
            first_answer = time.perf_counter() - start
            # by its id: looking for a text reads the whole page at every look, on the cores that the models work on
            page.get_by_role("button", name="Download").first.wait_for(timeout=180_000)
            answered = time.perf_counter() - start
            return {
                "server_up": server_up,
                "first_paint": painted,
                "page_shown": page_shown,
                "first_answer_shown": first_answer,
                "question_answered": answered,
                "peak_memory_mb": peak_mb(pid),
            }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--question", default="Who directed A Star Is Born?")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        first, second = one_start(home, args.question), one_start(home, args.question)
    figures = {name: {k: round(v, 2) for k, v in row.items()} for name, row in (("first", first), ("later", second))}
    aims_met = {name: second[name] <= aim for name, aim in AIMS.items()}
    show({**figures, "aims": AIMS, "met": aims_met})
    return 0


if __name__ == "__main__":
    sys.exit(main())
