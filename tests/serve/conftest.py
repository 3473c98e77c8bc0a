"""A service for the tests of a file, and what several files do with one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from answering_service import Running, running, small_settings


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Running]:
    """With the key `KEY` of the file, if it has one."""
    key = getattr(request.module, "KEY", "")
    with running(small_settings(tmp_path_factory.mktemp("service"), serve_key=key)) as started:
        yield started
