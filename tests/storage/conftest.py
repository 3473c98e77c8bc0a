"""The store of the tests.  Where TEST_POSTGRES_URL names a server, each test that asks for `url` or `store`, and not for the
`path` of a SQLite file, runs on PostgreSQL too."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from annotation_samples import Clock, hash_quickly
from postgres_databases import database, empty

from storage.schema import engine
from storage.store import Store

SYNCHRONOUS = engine.SYNCHRONOUS


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Power cuts are not tested; kills of processes lose nothing that the system's cache holds.  Other processes keep FULL."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "SYNCHRONOUS", "OFF")
        yield


@pytest.fixture
def durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that look at the pragmas as they are."""
    monkeypatch.setattr(engine, "SYNCHRONOUS", SYNCHRONOUS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "ambiscope.db"


POSTGRES = os.environ.get("TEST_POSTGRES_URL", "")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sqlite: of SQLite files; says nothing of another database")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        file = "path" in inspect.signature(metafunc.function).parameters or metafunc.definition.get_closest_marker("sqlite")
        metafunc.parametrize("backend", ["sqlite", "postgresql"] if POSTGRES and not file else ["sqlite"], indirect=True)


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The URL of a server that may create databases."""
    if not POSTGRES:
        pytest.skip("TEST_POSTGRES_URL names no server")
    return POSTGRES


@pytest.fixture(scope="session")
def postgres_database(postgres_server: str) -> Iterator[str]:
    with database(postgres_server) as url:
        yield url


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(backend: str, path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    if backend == "sqlite":
        yield f"sqlite:///{path}"
        return
    path.parent.mkdir()  # as with a file: exports go there
    database_url = str(request.getfixturevalue("postgres_database"))
    empty(database_url)
    yield database_url


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    """A second database, without rows."""
    with Store(f"sqlite:///{tmp_path / 'other' / 'ambiscope.db'}") as opened:
        yield opened


@pytest.fixture
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_quickly(monkeypatch)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)
