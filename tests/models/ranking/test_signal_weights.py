"""The shipped weights of both log-linear rankers score as they did; signals.json is read where it lies, checked, and fitted by a command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from core.cli import main
from core.errors import CheckpointError, InputError
from core.models.loading.finding import BUNDLED
from core.models.ranking.features import FEATURES
from core.models.ranking.passage_signals import PassageView, Reading
from core.models.ranking.reranker import KINDS, Kind, read_weights
from core.models.ranking.signal_weights import FILE, read_signals, signals_of, write_signals
from core.training.data.examples import MultiExample
from core.training.signals import SignalExample, fit_signals
from core.types import Candidate, Evidence, Passage, RetrievedPassage

# by these weights when they were last fitted: figures of the benchmarks hold only as long as these do
RERANKED: dict[Kind, tuple[str, str]] = {
    "retrieved": ("-0x1.730bebb858ae0p+0", "0x1.78fe3aeb0a8b0p+0"),
    "own": ("0x1.f9b7ec8bd3286p+1", "-0x1.3f52f1c721d66p+2"),
    "retrieved_verified": ("0x1.c4372f63dbc32p-1", "0x1.55a7b529afa87p+1"),
    "own_verified": ("0x1.9f42ae89ee644p+2", "-0x1.6fd0737232266p+2"),
}
DIGEST = "ac1b0580225f"  # of all weights of the signals; predictions remember it


@pytest.mark.parametrize("kind", KINDS)
def test_the_shipped_rerankers_score_as_before(kind: Kind) -> None:
    weights = read_weights(BUNDLED / "answerer", kind)
    assert weights is not None
    rows = np.zeros((2, len(FEATURES)))
    for i, name in enumerate(sorted(weights.weights)):  # by name: a new feature that they do not know changes nothing
        rows[:, FEATURES.index(name)] = (-1 + i / 20, 1 - i / 40)
    found = weights.scores(rows)
    assert found.tolist() == pytest.approx([float.fromhex(v) for v in RERANKED[kind]], rel=1e-12)


def test_the_shipped_signals_weigh_as_before() -> None:
    found = signals_of("default")
    weighing = found.weighing
    assert (weighing.digest, found.abstain_below, found.verified_above) == (DIGEST, 0.34, 0.5)
    signals = {name: 0.1 * i - 0.4 for i, name in enumerate(weighing.passage)}
    assert weighing.relevance(signals) == pytest.approx(float.fromhex("0x1.e30ff4350d13dp-5"), rel=1e-12)
    readings = [
        Reading(Candidate("x", 1.0), {name: 0.2 * i - shift for i, name in enumerate(weighing.reading)}) for shift in (0.5, 1.5)
    ]
    expected = [float.fromhex(v) for v in ("0x1.78b809c05230dp-1", "0x1.40ebaa68eb567p-3")]
    assert weighing.right(readings) == pytest.approx(expected, rel=1e-12)


def test_a_reader_has_signals_of_its_own_where_they_lie_beside_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    bundled = signals_of("default")
    assert signals_of(str(tmp_path)) == bundled
    body = json.loads(write_signals(tmp_path, bundled).read_text())
    assert read_signals(tmp_path) == bundled
    (tmp_path / FILE).write_text(json.dumps(body | {"abstain_below": 0.125, "fitted_on": "a test"}))
    assert signals_of(str(tmp_path)).abstain_below == 0.125


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"abstain_below": 2}, "abstain_below is 2"),
        ({"verified_above": None}, "verified_above is None"),
        ({"nothing": "much"}, "nothing is not a number"),
        ({"passage": {"rank": 1.0}}, "other signals than this version"),
        ({"passage": 3}, "damaged"),
        (None, "damaged"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, change: dict[str, object] | None, says: str) -> None:
    body = json.loads((BUNDLED / "reader" / FILE).read_text())
    (tmp_path / FILE).write_text("{" if change is None else json.dumps(body | change))
    with pytest.raises(CheckpointError, match=f"{says}.*core train signals"):
        read_signals(tmp_path)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_signals(tmp_path)


def seen(count: int) -> list[SignalExample]:
    """Questions about a race: the passage that is about it has the answer, which both models name, beside one that has nothing."""
    out = []
    for i in range(count):
        name = f"{'ABCDEFGHIJKLMNOP'[i]}nna Strand"
        right, wrong = (
            Passage(f"r{i}", f"Race {i}", f"{name} won race {i} in 1999."),
            Passage(f"w{i}", "Rain", "It fell in Ulm."),
        )

        def view(passage: Passage, text: str, rank: int, sure: float) -> PassageView:
            start = passage.text.index(text)
            candidate = Candidate(text, sure, Evidence(passage.id, start, start + len(text), text))
            return PassageView(
                RetrievedPassage(passage, rank, 0.0, sure), 1 - sure, (candidate,), ((candidate, float(np.log(sure))),)
            )

        views = [view(right, name, 1, 0.9 - i / 100), view(wrong, "Ulm", 2, 0.1 + i / 100)]
        passages = ((right.title, right.text), (wrong.title, wrong.text))
        example = MultiExample(f"Who won race {i}?", passages, ((name,),), "made", extra={"supporting_of": [[right.id]]})
        out.append(SignalExample(example, views))
    return out


def test_the_fit_tells_right_passages_and_is_written(tmp_path: Path) -> None:
    found, table = fit_signals(seen(14), "a test")
    assert found.figures["g_f1"] == max(row["g_f1"] for row in table) == 1.0
    write_signals(tmp_path, found)
    assert read_signals(tmp_path) == found


def test_too_little_to_fit_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="3 annotated questions are too few"):
        fit_signals(seen(3))
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path))
    assert main(["train", "signals"]) == 2
    assert "train signals needs --annotated FOLDER" in capsys.readouterr().err
