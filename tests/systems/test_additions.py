"""The stage that every system over spans takes by its option `additions`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from core import types as t
from core.engine import Engine
from core.errors import CheckpointError
from core.evaluation.run import evaluate
from core.models.ranking import verifier
from core.models.ranking.features import FEATURES
from core.models.ranking.reranker import Weights, file_of, write_weights
from core.models.span.checkpoints import save_span_network
from core.models.span.model import load_base
from core.models.span.network import SpanConfig, SpanNetwork
from core.settings import Settings
from core.systems import SYSTEMS
from core.systems.base.base import Options, answer

QUESTION = t.Question(
    "Who won?", passages=(t.Passage("x", "Tour", "Matteo Brisk won in 1999."), t.Passage("y", "Rain", "It fell in Ulm."))
)
ABLE = ("one-pass", "dpr-threshold", "jpr", "rectify", "verdict", "ambigprompt")
ZERO, ONE = dict.fromkeys(FEATURES, 0.0), dict.fromkeys(FEATURES, 1.0)


class Judge:
    """A verifier that is sure of years."""

    def judge(self, question: str, spans: Sequence[tuple[t.Passage, int, int]]) -> list[float]:
        return [9.0 if passage.text[start:end].isdigit() else -9.0 for passage, start, end in spans]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reader and answering model in one, with rerankers for some of the systems: one keeps every candidate, one keeps what the verifier says."""
    folder = tmp_path_factory.mktemp("spans")
    torch.manual_seed(0)
    config = SpanConfig()
    save_span_network(SpanNetwork(load_base(config.base), config), folder, {})
    for system in ABLE[:-1]:
        write_weights(folder, Weights(ZERO, ZERO, ONE, 4.0, "a test"), "retrieved", system)
        write_weights(folder, Weights({**ZERO, "verifier": 1.0}, ZERO, ONE, 0.0, "a test"), "retrieved_verified", system)
    return folder


@pytest.fixture
def engine(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(verifier, "load_verifier", lambda name, device: (Judge(), "abc"))
    return Engine(Settings(home=tmp_path, encoder="hashing", device="cpu", answerer=str(checkpoint), reader=str(checkpoint)))


def asked(engine: Engine, system: str, added: str) -> t.Prediction:
    passages_as_they_come = {"reranker": "reader"} if system == "jpr" else {}
    options = Options(clarify=False, extra={"additions": added, **passages_as_they_come})
    return answer(engine.system(system, options=options, own_passages=True), QUESTION)


def test_the_systems_that_take_it() -> None:
    able = [name for name, entry in SYSTEMS.items() if "additions" in entry.choices]
    assert sorted(able) == sorted((*ABLE, "ambiscope"))
    assert {SYSTEMS[name].choices["additions"][0] for name in ABLE} == {"none", "all"}
    assert SYSTEMS["verdict"].choices["additions"][0] == "all"


@pytest.mark.parametrize("system", ABLE[:-1])
def test_each_candidate_is_judged_by_weights_of_the_systems_own(engine: Engine, system: str) -> None:
    every = asked(engine, system, "reranker")
    assert {round(a.probability, 2) for a in every.answers} == {0.98}  # 1 / (1 + exp(-4))
    assert every.system.settings["fitted_for"] == "retrieved"
    sure = asked(engine, system, "verifier")
    assert all(a.text.isdigit() for a in sure.answers)
    assert sure.system.settings["verifier_digest"] == "abc"
    assert asked(engine, system, "none").system.settings["reranking"] is None


def test_questions_at_a_time_get_the_answers_of_one_by_one(engine: Engine) -> None:
    passages = [*(QUESTION.passages or ()), t.Passage("z", "Sun", "Ada Brisk saw it in 1901 and in 1999.")]
    asked = [
        t.ReferenceQuestion(
            str(n),
            f"Who won in {1990 + n}?",
            (t.Annotation("single", (t.QAPair("", ("Brisk",)),)),),
            passages=tuple(passages[: 1 + n % 3]),
        )
        for n in range(8)
    ]
    for system in ("ambigprompt", "dpr-threshold"):
        alone, together = (
            evaluate(
                engine.system(system, options=Options(clarify=False, extra={"additions": "none"}), own_passages=True),
                asked,
                batch=batch,
                bootstrap=10,
            )
            for batch in (1, 4)
        )
        for one, other in zip(
            alone.rows, together.rows, strict=True
        ):  # up to rounding: sums of a larger batch are added in another order
            assert [a["text"] for a in other["answers"]] == [a["text"] for a in one["answers"]]
            assert [a["probability"] for a in other["answers"]] == pytest.approx([a["probability"] for a in one["answers"]])


def test_no_system_answers_with_the_weights_of_another(engine: Engine) -> None:
    with pytest.raises(CheckpointError, match=r"ambigprompt has no reranker for .*train reranker --system ambigprompt"):
        asked(engine, "ambigprompt", "reranker")


def test_a_verifier_that_was_asked_for_by_name_must_be_there(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, device: str) -> None:
        raise CheckpointError("package part-001 is not installed")

    monkeypatch.setattr(verifier, "load_verifier", missing)
    with pytest.raises(CheckpointError, match="part-001"):
        asked(engine, "one-pass", "verifier")
    assert asked(engine, "one-pass", "reranker").answers


def test_files_are_told_apart_by_system() -> None:
    assert file_of("retrieved_verified", "one-pass") == "reranker-one-pass_verified.json"
