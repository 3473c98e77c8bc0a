"""run.py's virtual environment: half made ones are made anew, and a system that cannot make one is told what to install."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path
from typing import Any

import pytest

import run


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation of its own; the real .venv is out of reach."""
    (tmp_path / "requirements.txt").write_text("")
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(run, "PYTHON", tmp_path / ".venv" / run.PYTHON.relative_to(run.PYTHON.parent.parent))
    return tmp_path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What venv.create was asked for; it makes nothing."""
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(venv, "create", lambda folder, **options: asked.append({"folder": folder, **options}))
    return asked


def test_an_environment_without_pip_is_made_anew(
    place: Path, made: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.EnvBuilder(with_pip=False).create(place / ".venv")  # as a kill leaves it
    assert run.PYTHON.exists()
    assert not run.has_pip()
    real, pips = subprocess.run, []

    def python(command: list[str], **options: Any) -> Any:
        if "install" not in command:
            return real(command, **options)
        pips.append(command)

    monkeypatch.setattr(subprocess, "run", python)
    run.setup()
    assert made == [{"folder": place / ".venv", "with_pip": True, "clear": True}]
    assert len(pips) == 1
    run.setup()  # the stamp says that all is there
    assert (len(made), len(pips)) == (1, 1)


def test_a_model_that_cannot_be_unpacked_is_told_in_one_line(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def python(command: list[str], **options: Any) -> Any:
        failed = command[1] == "-c"
        said = "Traceback (most recent call last):\n  File x\ncore.errors.CheckpointError: make room on the disk\n"
        return subprocess.CompletedProcess(command, int(failed), "", said if failed else "")

    monkeypatch.setattr(run, "has_pip", lambda: True)
    monkeypatch.setattr(subprocess, "run", python)
    (place / ".venv").mkdir()
    assert run.main(["setup"]) == 0
    printed = capsys.readouterr()
    assert "not ready: core.errors.CheckpointError: make room on the disk; the app answers without it" in printed.out
    assert "Traceback" not in printed.out + printed.err


def test_a_system_that_cannot_make_one_says_what_to_install(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(folder: Path, **options: Any) -> None:
        raise subprocess.CalledProcessError(1, ["python", "-m", "ensurepip"])

    monkeypatch.setattr(venv, "create", fail)
    assert run.main(["setup"]) == 1
    assert "install python3-venv (Debian/Ubuntu: apt install python3-venv)" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["app", "--server.port", "8600"], ["app", "--", "--server.port", "8600"]])
def test_further_arguments_go_to_streamlit_with_or_without_dashes(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def started(command: list[str], **options: Any) -> Any:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(run, "setup", lambda: None)
    monkeypatch.setattr(subprocess, "run", started)
    assert run.main(arguments) == 0
    assert [c[1:] for c in commands] == [["-m", "pages._launch", "--server.port", "8600"]]
