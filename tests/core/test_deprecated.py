"""Old spellings of options and files: they mean what they meant, and say so once."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import deprecated


@pytest.fixture(autouse=True)
def fresh() -> None:
    deprecated._warn.cache_clear()


def test_an_old_option_means_what_it_meant_and_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    now = ("ambiscope", {"additions": "none", "loop": "fast"})
    assert deprecated.current_request("ambigprompt", {"rescoring": "off", "loop": "fast"}) == now
    assert capsys.readouterr().err == (
        "warning: option: 'rescoring=off of ambigprompt' is now called 'additions=none of ambiscope'; the old name will be removed in the next release\n"
    )
    assert deprecated.current_request("ambigprompt", {"rescoring": "off", "loop": "fast"}) == now
    assert deprecated.current_request("ambigprompt", {"loop": "fast"}) == (
        "ambigprompt",
        {"loop": "fast"},
    )  # the paper's method
    assert deprecated.current_request("jpr", {"reranking": "on"}) == ("jpr", {"reranking": "on"})  # which it never had: refused
    assert capsys.readouterr().err == ""


def test_the_newer_spelling_counts_where_both_are_given() -> None:
    assert deprecated.current_request("ambiscope", {"reranking": "on", "rescoring": "off"}) == (
        "ambiscope",
        {"additions": "all"},
    )


@pytest.mark.parametrize(
    ("system", "settings", "now"),
    [
        ("ambigprompt", {"reranking": {"bias": 1.0}}, "ambiscope"),
        ("ambigprompt", {"rescoring": None}, "ambiscope"),
        ("ambigprompt", {"reranking": None, "additions": "none"}, "ambigprompt"),
        ("ambigprompt", {}, "ambigprompt"),
        ("jpr", {"reranking": None}, "jpr"),
    ],
)
def test_a_stored_run_says_which_system_of_today_it_was(system: str, settings: dict[str, object], now: str) -> None:
    assert deprecated.current_system(system, settings) == now


def test_a_file_is_found_under_its_old_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert deprecated.find_file(tmp_path, "reranker_own.json") is None
    old, new = tmp_path / "rescorer_own.json", tmp_path / "reranker_own.json"
    old.write_text("{}")
    assert deprecated.find_file(tmp_path, new.name) == old
    assert f"warning: {tmp_path}: 'rescorer_own.json' is now called 'reranker_own.json'" in capsys.readouterr().err
    new.write_text("{}")
    assert deprecated.find_file(tmp_path, new.name) == new
