"""Two processes: the service with a corpus, and the app that asks it, with an empty home of its own; seen in Chromium."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_helpers import ROWS
from serving import MARKS, WAIT, free_port, quiet, serve, until, with_corpus

from core.settings import ROOT

pytestmark = MARKS
KEY = "a-key-of-the-test"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    home, port = tmp_path_factory.mktemp("service") / "home", free_port()
    with_corpus(home, "small", ROWS)
    settings = {"HOME": str(home), "SYSTEM": "scripted", "ENCODER": "hashing", "CORPUS": "small", "SERVE_KEY": KEY}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AMBISCOPE_")}
    environment |= {f"AMBISCOPE_{k}": v for k, v in settings.items()}
    command = [sys.executable, "-m", "core", "serve", "--port", str(port)]
    with (home.parent / "service.log").open("wb") as out:
        process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(300):
                try:
                    with urllib.request.urlopen(address + "/health", timeout=2) as found:
                        if json.load(found)["status"] == "ok":
                            break
                except OSError:
                    assert process.poll() is None, (home.parent / "service.log").read_text()
                time.sleep(0.2)
            yield address, process
        finally:
            process.kill()
            process.wait(20)


def test_the_app_answers_from_the_service(
    service: tuple[str, subprocess.Popen[bytes]], tmp_path_factory: pytest.TempPathFactory, browser: Any
) -> None:
    address, process = service
    home: Path = tmp_path_factory.mktemp("front") / "home"
    with serve(home, "small", ENGINE_URL=address, ENGINE_KEY=KEY, ENGINE_TIMEOUT="60") as app:
        page = browser.new_page()
        page.goto(app, timeout=WAIT)
        box = page.get_by_label("Question", exact=True)
        box.wait_for(timeout=WAIT)
        box.fill("Who played Maria?")
        box.press("Enter")
        page.get_by_role("button", name="Download").wait_for(timeout=WAIT)
        shown = page.get_by_test_id("stMain").inner_text()
        assert "How the answers were found" in shown
        assert "West Side Story" in shown
        page.wait_for_url("**prediction=*", timeout=WAIT)  # it was saved here
        assert not (home / "corpora").exists()  # and no corpus was built here

        page.goto(app + "corpora", timeout=WAIT)
        page.get_by_text("Build and delete corpora, and train models, on its machine").wait_for(timeout=WAIT)
        assert page.get_by_role("button", name="Upload and build").count() == 0

        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0  # a stop that was asked for is a success

        def says_so() -> bool:
            """A page that comes soon is drawn from the list of corpora that is kept."""
            page.goto(app, timeout=WAIT)
            quiet(page)
            return bool(page.get_by_text("cannot be reached").count())

        until(says_so)
        page.close()
