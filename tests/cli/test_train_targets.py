"""`core train TARGET`: each target has its own options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.cli import main, parser
from core.commands.train import TARGETS


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("target", TARGETS)
def test_the_help_of_a_target_names_its_options_and_their_defaults(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["train", target, "--help"])
    assert caught.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "--out" in text
    assert "(default: a folder in runs/ under AMBISCOPE_HOME)" in text
    assert "None" not in text
    args = parser().parse_args(["train", target])
    for name, value in vars(args).items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert re.search(rf"--{name.replace('_', '-')} .*?\(default: ({value}\b|\d)", text), name


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["passages", "--freeze", "2"], "core train passages has no option --freeze"),
        (["reader", "--joined=0.5", "--models", "3"], "core train reader has no option --joined, --models"),
        (["ambiguity", "more"], "core train ambiguity does not take 'more'"),
    ],
)
def test_options_of_another_target_are_refused_in_one_line(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"error: {says}; see python -m core train")
