"""The command line in this process, in a folder of its own with a file of passages and an empty home."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from core import cli

FACTS = """id\ttext\ttitle
p1\tNatalie Wood played Maria.\tWest Side Story (1961 film)
p2\tRachel Zegler played Maria.\tWest Side Story (2021 film)
p3\tBasalt is a dark rock.\tBasalt
"""
Run = Callable[..., tuple[int, str, str]]  # (exit code, stdout, stderr)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder; AMBISCOPE_HOME is `home` in it."""
    for name in [n for n in os.environ if n.startswith("AMBISCOPE_")]:
        monkeypatch.delenv(name)
    for name, value in {"HOME": str(tmp_path / "home"), "SYSTEM": "scripted", "ENCODER": "hashing"}.items():
        monkeypatch.setenv(f"AMBISCOPE_{name}", value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "facts.tsv").write_text(FACTS)
    return tmp_path


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """run(*words, main=cli.main): a command, and what it printed."""

    def run_it(*words: object, main: Callable[..., int] = cli.main) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(w) for w in words])
        return code, *capsys.readouterr()

    return run_it


def jsonl(rows: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_jsonl(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text(jsonl(rows), encoding="utf-8")
    return path
