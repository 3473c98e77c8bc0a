"""The app in a process of its own and Chromium to look at it: what the browser tests share."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed

from core.retrieval.library import CorpusLibrary
from core.settings import ROOT, Settings

PATIENCE = 120.0  # seconds, of a busy machine
WAIT = 1000 * PATIENCE  # milliseconds, as Playwright counts
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MARKS = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")]
ARGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


def with_corpus(home: Path, name: str, rows: Sequence[tuple[str, str, str]]) -> Settings:
    """The settings of a new home with one corpus; `rows`: (id, title, text)."""
    path = home.parent / f"{name}.tsv"
    path.write_text("id\ttext\ttitle\n" + "".join(f"{i}\t{text}\t{title}\n" for i, title, text in rows), encoding="utf-8")
    settings = Settings(home=home, encoder="hashing")
    CorpusLibrary(settings).create(name, [path])
    return settings


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serve(
    home: Path,
    corpus: str,
    options: Sequence[str] | Callable[[int], Sequence[str]] = ("--server.address", "127.0.0.1"),
    start: Sequence[str] = ("-m", "pages.server.launch"),
    at: str = "127.0.0.1",
    path: str = "",
    port: int = 0,
    **more: str,
) -> Iterator[str]:
    """The app with the scripted system over a corpus of `home`, started as `run.py app` does; its address.

    `options`: for streamlit, or what gives them for a port; `start`: for python; `at`: where it is to be found; `path`: below which path; `port`: 0 for a free one; `more`: further settings.
    """
    port = port or free_port()
    settings = {"HOME": str(home), "SYSTEM": "scripted", "ENCODER": "hashing", "CORPUS": corpus, "DEVICE": "cpu", **more}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AMBISCOPE_")}
    environment |= {f"AMBISCOPE_{k}": v for k, v in settings.items()}
    further = options(port) if callable(options) else options
    command = [sys.executable, *start, "--server.port", str(port), *further]
    log = home.parent / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
        address = f"http://{at}:{port}/{path}"
        try:
            until(lambda: listens(process, address, log))
            yield address
        finally:
            process.terminate()
            process.wait(PATIENCE)


def listens(process: subprocess.Popen[bytes], address: str, log: Path) -> bool:
    """Fails with the log where the process has ended."""
    with suppress(OSError):
        urllib.request.urlopen(address + "_stcore/health", timeout=PATIENCE).close()
        return True
    assert process.poll() is None, log.read_text()
    return False


def until(reached: Callable[[], object], every: float = 0.01) -> None:
    """Waits for a state of another process or thread, and looks at it `every` so many seconds."""
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end
        time.sleep(every)


def close_code(websocket: Any) -> int:
    """The close code of a websocket that the server closes; 0 if it ends otherwise."""
    try:
        while True:
            websocket.recv(timeout=PATIENCE)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else 0


def descriptors(process: int) -> int:
    """The number of files that a process has open (Linux)."""
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


def process_at(address: str) -> int:
    """The process that listens on a port of this machine (Linux)."""
    port = urlsplit(address).port or 0
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inode = next(row[9] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A")
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError):
            if any(str(fd.readlink()) == f"socket:[{inode}]" for fd in folder.iterdir()):
                return int(folder.parent.name)
    raise AssertionError(address)


_WATCH = """() => {
    window.lastChange = performance.now();
    window.changes ??= new MutationObserver(() => { window.lastChange = performance.now(); });
    window.changes.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
}"""
_AT_REST = """(rest) => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'
    && !document.querySelector('[data-testid=stSkeleton]') && document.fonts.status === 'loaded'
    && performance.now() - window.lastChange >= rest"""


def quiet(page: Any, rest: int = 250) -> None:
    """Waits until the page has been at rest for `rest` milliseconds: no script runs (Streamlit says so on the app's root), nothing changes,
    and no font and no code of an element is still being loaded: until then Streamlit draws bars, and what is below them is elsewhere."""
    page.evaluate(_WATCH)
    page.wait_for_function(_AT_REST, arg=rest, polling=50, timeout=WAIT)


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser of Playwright; the test is skipped where Playwright is absent."""
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for the tests of a file."""
    with chromium() as launched:
        yield launched
