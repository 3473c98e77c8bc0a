"""Small corpora and a library that needs no weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.retrieval.library import CorpusLibrary
from core.retrieval.readers.lines import UNLIMITED, Limits
from core.settings import Settings

FACTS = [
    ("p1", "West Side Story (1961 film)", "Natalie Wood played Maria in the film directed by Robert Wise."),
    ("p2", "West Side Story (2021 film)", "Rachel Zegler played Maria in the remake by Steven Spielberg."),
    ("p3", "West Side Story (musical)", "Carol Lawrence created the role of Maria on Broadway in 1957."),
    ("p4", "Basalt", "Basalt is a dark volcanic rock that forms when lava cools quickly."),
    ("p5", "Zürich", "Zürich lies where the Limmat leaves its lake."),
]


@pytest.fixture
def limits() -> Limits:
    return Limits(UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED, 100_000)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def make(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[str, dict[str, str]], Path]:
    """tree(name, texts): a folder with these files, perhaps in folders of their own."""

    def make(name: str, texts: dict[str, str]) -> Path:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / name

    return make


@pytest.fixture
def facts_file(write: Callable[[str, str | bytes], Path]) -> Path:
    return write("facts.tsv", "id\ttext\ttitle\n" + "".join(f"{i}\t{text}\t{title}\n" for i, title, text in FACTS))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", encoder="hashing", device="cpu")


@pytest.fixture
def library(settings: Settings) -> CorpusLibrary:
    return CorpusLibrary(settings)
