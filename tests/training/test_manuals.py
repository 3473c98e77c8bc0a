"""Practice questions over documentation: drafts to offsets, and passages out of a repository."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import manuals

PAGE = """---
title: "Server"
---
The server reads `~/.app/secrets.toml`.

## Ports

| mode | port |
|---|---|
| development | 8080 |
| production | 80 |
"""


@pytest.fixture
def source(tmp_path: Path) -> manuals.Source:
    folder = tmp_path / "mirrors" / "acme+app"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "server.md").write_text(PAGE)
    (folder / "docs" / "other.md").write_text("# Cooking\n\nA server of soup has no port.\n")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    return manuals.Source("app", "acme/app", commit, "MIT", ("docs",))


def answer(quote: str, **more: object) -> dict[str, object]:
    return {"file": "docs/server.md", "quote": quote, **more}


def test_a_draft_becomes_offsets_and_passages(source: manuals.Source, tmp_path: Path, jsonl: Callable[..., Path]) -> None:
    ports = [answer("| development | «8080» |", when="development"), answer("| production | «80» |", when="production")]
    draft = jsonl(
        "draft.jsonl",
        {"question": "default port?", "answers": ports},
        {"question": "licence fee?", "answers": [], "near": answer("| «production» |")},
    )
    rows, problems = manuals.compile_draft(source, tmp_path / "mirrors", draft)
    assert problems == []
    assert [[PAGE[a["start"] : a["end"]] for a in row["answers"]] for row in rows] == [["8080", "80"], []]
    file = jsonl("app.jsonl", *rows)
    assert manuals.check(source, tmp_path / "mirrors", file) == []
    several, none = manuals.cut(source, tmp_path / "mirrors", file)
    assert several["answers"] == [["8080"], ["80"]]
    assert several["passages"][0]["title"] == "Server > Ports"
    assert several["supporting"] == [several["passages"][0]["id"]]
    assert (none["answers"], none["no_answer"], none["passages"][0]["title"]) == ([], True, "Server > Ports")


@pytest.mark.parametrize("mirror", [None, "astral-sh+uv"], ids=["no network", "a mirror that is not a repository"])
@pytest.mark.parametrize("what", ["cut", "corpora"])
def test_a_repository_that_cannot_be_read_is_an_error_and_leaves_no_file(
    what: str, mirror: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text("#!/bin/sh\nexit 128\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(git.parent), prepend=":")
    if mirror:
        (tmp_path / mirror).mkdir()
    words = ["--mirrors", str(tmp_path), "--out", str(tmp_path / "out"), "--projects", "uv"]
    assert manuals.main([what, *words]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert not list((tmp_path / "out").iterdir())
