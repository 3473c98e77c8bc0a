"""`core train TARGET`: each target has its own options."""

from __future__ import annotations

import re

import pytest

from core.cli import main, parser
from core.commands.train import TARGETS


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
