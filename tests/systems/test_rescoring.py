"""The option `additions` of systems over spans, and the options of the loops over the bundled networks: on networks of random weights."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from system_fakes import texts

from core import types as t
from core.engine import Engine
from core.errors import CheckpointError
from core.evaluation.run import evaluate
from core.models.ranking import verifier
from core.models.ranking.features import FEATURES
from core.models.ranking.reranker import Kind, Weights, file_of, write_weights
from core.models.span.answerer import SpanAnswerer
from core.models.span.checkpoints import save_span_network
from core.models.span.fast_loop import FastSpanLoop
from core.models.span.model import load_base
from core.models.span.network import SpanConfig, SpanNetwork
from core.settings import Settings
from core.systems import SYSTEMS, build, options_of
from core.systems.base.options import Options
from core.systems.base.system import SystemParts, answer

TOUR = t.Passage("x", "Tour", "Matteo Brisk won in 1999.")
QUESTION = t.Question("Who won?", passages=(TOUR, t.Passage("y", "Rain", "It fell in Ulm.")))
RESCORED = ("one-pass", "dpr-threshold", "jpr", "rectify", "verdict")
ZERO, ONE = dict.fromkeys(FEATURES, 0.0), dict.fromkeys(FEATURES, 1.0)


class YearJudge:
    """A verifier that is sure of years."""

    def judge(self, question: str, spans: Sequence[tuple[t.Passage, int, int]]) -> list[float]:
        return [9.0 if passage.text[start:end].isdigit() else -9.0 for passage, start, end in spans]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reader and answering model in one, with rerankers for some systems: of those that read once, one keeps every candidate and one keeps what
    the verifier says; of `ambiscope`, one that keeps none."""
    folder = tmp_path_factory.mktemp("spans")
    torch.manual_seed(0)
    save_span_network(SpanNetwork(load_base(SpanConfig().base), SpanConfig()), folder, {})
    for system in RESCORED:
        write_weights(folder, Weights(ZERO, ZERO, ONE, 4.0, "a test"), "retrieved", system)
        write_weights(folder, Weights({**ZERO, "verifier": 1.0}, ZERO, ONE, 0.0, "a test"), "retrieved_verified", system)
    write_weights(folder, Weights({**ZERO, "kind": 1.0}, ZERO, ONE, -50.0, "a test"))
    return folder


@pytest.fixture(autouse=True)
def judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "load_verifier", lambda name, device: (YearJudge(), "abc"))


def missing(name: str, device: str) -> None:
    raise CheckpointError("package part-001 is not installed")


def engine(checkpoint: Path, home: Path, **changes: Any) -> Engine:
    return Engine(
        Settings(home=home, encoder="hashing", device="cpu", answerer=str(checkpoint), reader=str(checkpoint), **changes)
    )


def asked(engine: Engine, system: str, **extra: str) -> t.Prediction:
    passages_as_retrieved = {"reranker": "reader"} if system == "jpr" else {}
    options = Options(clarify=False, extra=extra | passages_as_retrieved)
    return answer(engine.system(system, options=options, own_passages=True), QUESTION)


def with_weights(checkpoint: Path, folder: Path, kind: Kind, weights: Weights) -> Path:
    shutil.copytree(checkpoint, folder)
    write_weights(folder, weights, kind)
    return folder


@pytest.mark.parametrize("system", RESCORED)
def test_each_candidate_is_judged_by_weights_of_the_systems_own(checkpoint: Path, tmp_path: Path, system: str) -> None:
    made = engine(checkpoint, tmp_path)
    every = asked(made, system, additions="reranker")
    assert {round(a.probability, 2) for a in every.answers} == {0.98}  # 1 / (1 + exp(-4))
    assert every.system.settings["fitted_for"] == "retrieved"
    sure = asked(made, system, additions="verifier")
    assert all(text.isdigit() for text in texts(sure))
    assert sure.system.settings["verifier_digest"] == "abc"
    assert asked(made, system, additions="none").system.settings["reranking"] is None


def test_no_system_answers_with_the_weights_of_another(checkpoint: Path, tmp_path: Path) -> None:
    takers = {name for name in SYSTEMS if "additions" in options_of(name).names()}
    assert takers == {*RESCORED, "ambigprompt", "ambiscope"}
    with pytest.raises(CheckpointError, match="train reranker --system ambigprompt"):
        asked(engine(checkpoint, tmp_path), "ambigprompt", additions="reranker")
    assert file_of("retrieved_verified", "one-pass") == "reranker-one-pass_verified.json"


def test_a_verifier_that_was_asked_for_by_name_must_be_there(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifier, "load_verifier", missing)
    made = engine(checkpoint, tmp_path)
    with pytest.raises(CheckpointError, match="part-001"):
        asked(made, "one-pass", additions="verifier")
    assert asked(made, "one-pass", additions="reranker").answers


@pytest.mark.parametrize("loop", ["exact", "fast"])
def test_the_default_system_is_rescored_unless_switched_off(checkpoint: Path, tmp_path: Path, loop: str) -> None:
    made = engine(checkpoint, tmp_path)
    rescored, plain = asked(made, "ambiscope", loop=loop), asked(made, "ambiscope", loop=loop, additions="none")
    assert (rescored.answers, rescored.system.settings["reranking"]["bias"]) == ((), -50.0)  # [EOI] wins at once
    assert rescored.steps[0].eoi_probability > 0.99 > plain.steps[0].eoi_probability
    assert plain.system.settings["reranking"] is None


def test_questions_that_bring_their_passages_have_a_reranker_of_their_own(checkpoint: Path, tmp_path: Path) -> None:
    both = with_weights(checkpoint, tmp_path / "both", "own", Weights(ZERO, ZERO, ONE, 7.0, "questions with passages"))
    made = engine(both, tmp_path)
    assert made.system("ambiscope", own_passages=True).info.settings["reranking"]["bias"] == 7.0
    passages = tmp_path / "passages.tsv"
    passages.write_text("id\ttext\ttitle\n1\tMatteo Brisk won in 1999.\tTour\n", encoding="utf-8")
    made.library.create("small", [passages])
    assert made.system("ambiscope", "small").info.settings["reranking"]["bias"] == -50.0


def test_a_reranker_that_asks_the_verifier_comes_first_and_another_where_there_is_none(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = Weights({**ZERO, "verifier": 1.0}, ZERO, ONE, 0.0, "a test")
    verified = with_weights(checkpoint, tmp_path / "verified", "retrieved_verified", weights)
    assert texts(asked(engine(verified, tmp_path), "ambiscope")) == ["1999"]
    off = engine(verified, tmp_path, verifier="off").system("ambiscope", own_passages=True).info.settings
    assert (off["verifier"], off["reranking"]["bias"]) == (None, -50.0)
    monkeypatch.setattr(verifier, "load_verifier", missing)
    without = engine(verified, tmp_path).system("ambiscope", own_passages=True).info.settings
    assert (without["verifier"], without["reranking"]["bias"]) == (None, -50.0)
    assert "part-001" in without["verifier_missing"]
    with pytest.raises(CheckpointError, match="part-001"):  # who names one wants that one
        engine(verified, tmp_path, verifier="mine").system("ambiscope", own_passages=True)


def test_a_damaged_reranker_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    shutil.copytree(checkpoint, tmp_path / "damaged")
    (tmp_path / "damaged" / file_of("retrieved")).write_text("{")
    with pytest.raises(CheckpointError, match="damaged"):
        engine(tmp_path / "damaged", tmp_path).system("ambiscope", own_passages=True)


def test_questions_at_a_time_get_the_answers_of_one_by_one(checkpoint: Path, tmp_path: Path) -> None:
    passages = [*(QUESTION.passages or ()), t.Passage("z", "Sun", "Ada Brisk saw it in 1901 and in 1999.")]
    annotations = (t.Annotation("single", (t.QAPair("", ("Brisk",)),)),)
    questions = [
        t.ReferenceQuestion(str(n), f"Who won in {1990 + n}?", annotations, passages=tuple(passages[: 1 + n % 3]))
        for n in range(8)
    ]
    options = Options(clarify=False, extra={"additions": "none"})
    for name in ("ambigprompt", "dpr-threshold"):
        system = engine(checkpoint, tmp_path).system(name, options=options, own_passages=True)
        alone, together = (evaluate(system, questions, batch=batch, bootstrap=10) for batch in (1, 4))
        for one, other in zip(alone.rows, together.rows, strict=True):
            assert [a["text"] for a in other["answers"]] == [a["text"] for a in one["answers"]]
            # up to rounding: sums of a larger batch are added in another order
            assert [a["probability"] for a in other["answers"]] == pytest.approx([a["probability"] for a in one["answers"]])


# ------------------------------------------------------------ the loops' own options

COLOURS = tuple(
    t.Passage(str(i), "title", text)
    for i, text in enumerate(["red ball in the town", "blue car of the north", "green boat", "black door", "white film one"])
)


@pytest.fixture(scope="module")
def ablations(tmp_path_factory: pytest.TempPathFactory, tiny_bert_folder: Path) -> dict[str, Path]:
    """Weights trained with each mechanism, the first in the first stage only."""
    folders = {}
    for prompting, stage in (("interleaved", "pretrain"), ("separate", "tune"), ("learned", "tune")):
        torch.manual_seed(0)
        config = SpanConfig(
            base=str(tiny_bert_folder),
            prompting=prompting,  # type: ignore[arg-type]
            max_tokens=48,
            max_prompt_tokens=32,
            max_answer_tokens=3,
        )
        folders[prompting] = tmp_path_factory.mktemp(prompting)
        save_span_network(SpanNetwork(load_base(config.base), config), folders[prompting], {"arguments": {"stage": stage}})
    return folders


def ambigprompt(folder: Path, **extra: object) -> Any:
    return build(
        "ambigprompt", SystemParts(Settings(answerer=str(folder), device="cpu"), None), Options(clarify=False, extra=extra)
    )


@pytest.mark.parametrize("prompting", ["interleaved", "separate", "learned"])
def test_an_ablation_runs_on_weights_of_its_own_and_refuses_others(ablations: dict[str, Path], prompting: str) -> None:
    for option in ("trained", prompting):
        settings = ambigprompt(ablations[prompting], prompting=option).info.settings
        assert (settings["prompting"], settings["stage"]) == (prompting, "pretrain" if prompting == "interleaved" else "tune")
    prediction = answer(ambigprompt(ablations[prompting]), t.Question("colour ?", passages=COLOURS))
    assert isinstance(prediction.events[-1], t.Finished)
    for other in {"interleaved", "separate", "learned"} - {prompting}:
        with pytest.raises(CheckpointError, match=f"--prompting {other}"):
            ambigprompt(ablations[prompting], prompting=other)


def test_the_fast_loop_is_chosen_by_option(ablations: dict[str, Path]) -> None:
    exact = ambigprompt(ablations["interleaved"])
    fast = ambigprompt(ablations["interleaved"], loop="fast", reread=0.4)
    assert isinstance(exact.loop(), SpanAnswerer)
    assert isinstance(fast.loop(), FastSpanLoop)
    assert fast.loop() is not fast.loop()  # each run begins anew
    question = t.Question("colour ?", passages=COLOURS)
    one, again = answer(fast, question), answer(fast, question)
    assert texts(one) == texts(again)
    assert one.steps[0].candidates == answer(exact, question).steps[0].candidates
