"""The topics that the starter corpus covers."""

from __future__ import annotations

from pathlib import Path

from core import json_io


def coverage(folder: Path) -> dict[str, list[str]]:
    """Topic -> the questions written for the corpus in this folder, the topic with the most questions first; empty if there are
    none.

    Raises FormatError for a damaged file.
    """
    path = folder / "questions.json"
    topics: dict[str, list[str]] = {}
    for row in json_io.read(path) if path.exists() else []:
        topics.setdefault(str(row.get("domain") or "other"), []).append(str(row["question"]))
    return dict(sorted(topics.items(), key=lambda topic: -len(topic[1])))
