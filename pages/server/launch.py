"""Starts the app's server, as `streamlit run` does, and loads the models meanwhile: `python -m pages.server.launch [streamlit's options]`.

Streamlit runs an app's first line when the first browser connects.  The libraries and the models need no browser, so they are loaded at once;
a session finds them loaded, or waits for the same lock (pages.session.libraries).
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Sequence

from streamlit import runtime
from streamlit.web import cli

from core.errors import AmbiscopeError
from core.settings import ROOT, Settings, keep_few_kernels, let_threads_sleep
from pages.server.server import disable_ip_lookup

log = logging.getLogger("ambiscope")
OUTSIDE = "streamlit.runtime.scriptrunner_utils.script_run_context"  # warns that a thread belongs to no session
THREAD = "preload"


def preload() -> None:
    """Errors are logged here, and shown by the page that needs the models."""
    try:
        from pages.session import shared

        shared.warm()
    except Exception as error:
        log.info("loading ahead stopped: %s", error)


def address() -> list[str]:
    """The option for AMBISCOPE_HOST; one on the command line comes after it and overrides it."""
    try:
        host = Settings.from_env().host
    except AmbiscopeError:  # a page shows it, on this machine alone
        host = ""
    return ["--server.address", host] if host else []


def main(argv: Sequence[str]) -> None:
    """Runs until the server ends; raises SystemExit then."""
    # a filter, as Streamlit sets the levels of its loggers itself; warnings about other threads stay
    logging.getLogger(OUTSIDE).addFilter(lambda record: record.threadName != THREAD)
    assert not runtime.exists()
    let_threads_sleep()
    disable_ip_lookup()  # before Streamlit prints its address
    keep_few_kernels()
    threading.Thread(target=preload, daemon=True, name=THREAD).start()
    cli.main(["run", str(ROOT / "streamlit_app.py"), *address(), *argv])


if __name__ == "__main__":
    main(sys.argv[1:])
