"""`core train TARGET`: each target has its own options, documented commands parse, and old spellings work with a warning."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from core.cli import main, parser
from core.commands.train import TARGETS
from core.settings import ROOT

COMMAND = re.compile(r"core train ([a-z0-9]+[^`\n]*)")
CARDS = sorted(ROOT.glob("checkpoints/*/README.md"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md")), *CARDS]


def documented(path: Path) -> list[list[str]]:
    """The words after `core train` of every command in a document; of a model card also the options that continue one (`--context 7`, `... --init X`)."""
    text = path.read_text(encoding="utf-8")
    found = [shlex.split(words.rstrip(".,;:)"), comments=True) for words in COMMAND.findall(text)]
    if path in CARDS and found:
        found += [[found[0][0], *shlex.split(words)] for words in re.findall(r"`(?:\.\.\. )?(--[^`\n]+)`", text)]
    return [words for words in found if "--help" not in words]


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_documented_commands_parse(path: Path) -> None:
    for words in documented(path):
        args, unknown = parser().parse_known_args(["train", *words])
        assert (unknown, args.what in TARGETS) == ([], True), f"{path}: core train {shlex.join(words)}"


def test_the_model_cards_have_commands_to_check() -> None:
    assert sum(len(documented(path)) for path in CARDS) >= 20


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
        (["verifier", "--freeze", "2"], "core train verifier has no option --freeze"),
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
