"""Old spellings of options and files: they mean what they meant, and say so once."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import renamed
from core.systems.shared.base import Options


@pytest.fixture(autouse=True)
def fresh() -> None:
    renamed._warn.cache_clear()


def test_an_old_option_is_read_under_its_new_name_and_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert Options(extra={"rescoring": "off", "loop": "fast"}).extra == {"reranking": "off", "loop": "fast"}
    assert capsys.readouterr().err == (
        "warning: option: 'rescoring' is now called 'reranking'; the next release no longer knows the old name\n"
    )
    assert Options(extra={"rescoring": "off"}).extra == {"reranking": "off"}
    assert capsys.readouterr().err == ""


def test_the_new_spelling_counts_where_both_are_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert Options(extra={"reranking": "on", "rescoring": "off"}).extra == {"reranking": "on"}
    assert capsys.readouterr().err == ""


def test_stored_settings_are_read_without_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    stored = {"rescoring": {"bias": 1.0}, "extra": {"rescoring": "on"}, "top_k": 10}
    assert renamed.current_settings(stored) == {"reranking": {"bias": 1.0}, "extra": {"reranking": "on"}, "top_k": 10}
    assert capsys.readouterr().err == ""


def test_a_file_is_found_under_its_old_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert renamed.find_file(tmp_path, "reranker_own.json") is None
    old, new = tmp_path / "rescorer_own.json", tmp_path / "reranker_own.json"
    old.write_text("{}")
    assert renamed.find_file(tmp_path, new.name) == old
    assert f"warning: {tmp_path}: 'rescorer_own.json' is now called 'reranker_own.json'" in capsys.readouterr().err
    new.write_text("{}")
    assert renamed.find_file(tmp_path, new.name) == new
