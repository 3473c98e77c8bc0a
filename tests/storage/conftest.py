from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import db
from storage.store import Store


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Power cuts are not tested; kills of processes lose nothing that the system's cache holds.  Other processes keep FULL."""
    if "durable" not in request.fixturenames:
        monkeypatch.setattr(db, "SYNCHRONOUS", "OFF")


@pytest.fixture
def durable() -> None:
    """For tests that look at the pragmas as they are."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "ambiscope.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as opened:
        yield opened
