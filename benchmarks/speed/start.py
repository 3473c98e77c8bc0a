"""Seconds from the start command to a page that answers, the first time (empty AMBISCOPE_HOME) and later.

    python -m benchmarks.speed.start [--question "Who directed A Star Is Born?"]

Starts the app as `run.py app` does on a free loopback port with an AMBISCOPE_HOME of its own, opens the page in headless Chromium, asks a question and
waits for its first answer and for the finished answer set with its disambiguated questions.  Needs Chromium.  Also reports the peak memory of the app's process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from core.settings import ROOT

CHROMIUM_FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def peak_mb(pid: int) -> float:
    """Peak resident memory of a process (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def one_start(home: Path, question: str) -> dict[str, float]:
    from playwright.sync_api import sync_playwright

    port = free_port()
    started = time.perf_counter()
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pages.app.launch",
            "--server.port",
            str(port),
            "--server.address",
            "127.0.0.1",
        ],
        cwd=ROOT,
        env={**os.environ, "AMBISCOPE_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1)
                break
            except (urllib.error.URLError, OSError):
                if time.perf_counter() - started > 120 or server.poll() is not None:
                    raise RuntimeError("the app did not start") from None
                time.sleep(0.1)
        up = time.perf_counter() - started
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM_FLAGS)
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"http://127.0.0.1:{port}/")
            box = page.get_by_label("Question", exact=True)
            box.wait_for(timeout=120_000)
            page.get_by_test_id("stBaseButton-primaryFormSubmit").wait_for(timeout=120_000)
            shown = time.perf_counter() - started
            box.fill(question)
            box.press("Enter")
            page.locator("ol li").first.wait_for(timeout=180_000)  # the list of answers found so far
            first = time.perf_counter() - started
            # by its id: looking for a text reads the whole page at every look, on the cores that the models work on
            page.get_by_test_id("stDownloadButton").first.wait_for(timeout=180_000)
            answered = time.perf_counter() - started
            browser.close()
        return {
            "server_up": up,
            "page_shown": shown,
            "first_answer_shown": first,
            "question_answered": answered,
            "peak_memory_mb": peak_mb(server.pid),
        }
    finally:
        server.terminate()
        server.wait(20)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--question", default="Who directed A Star Is Born?")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        print(json.dumps({"first": one_start(home, args.question), "later": one_start(home, args.question)}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
