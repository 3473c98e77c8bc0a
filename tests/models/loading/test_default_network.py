"""The bundled checkpoint that "default" means."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import CheckpointError
from core.models.loading import finding


@pytest.mark.parametrize(("installed", "expected"), [(True, "mpnet"), (False, "minilm")])
def test_the_strong_reader_reads_where_its_base_is_installed(
    installed: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folder(_: str) -> Path:
        if not installed:
            raise CheckpointError("the package is not installed")
        return Path()

    monkeypatch.setattr(finding, "NETWORKS", ("mpnet", "minilm"))
    monkeypatch.setattr(finding, "packaged_folder", folder)
    assert {finding.find_checkpoint("default", kind).name for kind in ("reader", "answerer")} == {expected}
