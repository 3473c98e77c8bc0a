"""Starts the app's server, as `streamlit run` does, and loads the models meanwhile: `python -m pages.server.launch [streamlit's options]`.

Streamlit runs an app's first line when the first browser connects.  The libraries, the models and the example runs need no browser, so they are
loaded at once; a session finds them loaded, or waits for the same lock (pages.session.libraries) or job (pages.session.run_source).
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
from pages.server.messages import bound_messages

log = logging.getLogger("ambiscope")
SESSION_LOGGER = "streamlit.runtime.scriptrunner_utils.script_run_context"  # warns that a thread belongs to no session
PRELOAD_THREAD = "preload"


def preload() -> None:
    """Loads the libraries, models and example runs.  Errors are logged here, and shown by the page that needs the models."""
    try:
        from pages.session import run_source, shared

        run_source.prepare()
        shared.warm()
    except Exception as error:
        log.info("loading ahead stopped: %s", error)


def address() -> list[str]:
    """The option for AMBISCOPE_HOST. One on the command line comes after it and overrides it."""
    try:
        host = Settings.from_env().host
    except AmbiscopeError:  # a page shows it, on this machine alone
        host = ""
    return ["--server.address", host] if host else []


def main(argv: Sequence[str]) -> None:
    """Runs until the server ends, then raises SystemExit."""
    # a filter, as Streamlit sets the levels of its loggers itself; warnings about other threads stay
    logging.getLogger(SESSION_LOGGER).addFilter(lambda record: record.threadName != PRELOAD_THREAD)
    assert not runtime.exists()
    let_threads_sleep()
    keep_few_kernels()
    bound_messages()
    threading.Thread(target=preload, daemon=True, name=PRELOAD_THREAD).start()
    cli.main(["run", str(ROOT / "streamlit_app.py"), *address(), *argv])


if __name__ == "__main__":
    main(sys.argv[1:])
