"""Options of `ambigprompt`: the loop, the ablations of Table 3, and the stage of the weights (zero-shot)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from core import types as t
from core.errors import CheckpointError, InputError
from core.models.span.answerer import SpanAnswerer
from core.models.span.checkpoints import save_span_network
from core.models.span.fast_loop import FastSpanLoop
from core.models.span.model import load_base
from core.models.span.network import SpanConfig, SpanNetwork
from core.settings import Settings
from core.systems.ambigprompt import build
from core.systems.base.base import Options, Parts, answer

PASSAGES = tuple(
    t.Passage(str(i), "title", text)
    for i, text in enumerate(["red ball in the town", "blue car of the north", "green boat", "black door", "white film one"])
)


def checkpoint(folder: Path, base: Path, prompting: str, stage: str) -> Path:
    torch.manual_seed(0)
    config = SpanConfig(base=str(base), prompting=prompting, max_tokens=48, max_prompt_tokens=32, max_answer_tokens=3)  # type: ignore[arg-type]
    save_span_network(SpanNetwork(load_base(config.base), config), folder, {"arguments": {"stage": stage}})
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, tiny_bert_folder: Path) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("answerers")
    return {
        p: checkpoint(root / p, tiny_bert_folder, p, stage)
        for p, stage in (("interleaved", "pretrain"), ("separate", "tune"), ("learned", "tune"))
    }


def parts(folder: Path) -> Parts:
    return Parts(Settings(answerer=str(folder), device="cpu"), None)


@pytest.mark.parametrize("prompting", ["interleaved", "separate", "learned"])
def test_each_ablation_runs_on_weights_of_its_own(folders: dict[str, Path], prompting: str) -> None:
    for wanted in ("trained", prompting):
        system = build(parts(folders[prompting]), Options(clarify=False, extra={"prompting": wanted}))
        assert system.info.settings["prompting"] == prompting
    prediction = answer(system, t.Question("colour ?", passages=PASSAGES))
    assert isinstance(prediction.events[-1], t.Finished)


@pytest.mark.parametrize(
    ("have", "wanted"), [("interleaved", "separate"), ("interleaved", "learned"), ("separate", "interleaved")]
)
def test_an_ablation_refuses_weights_of_another(folders: dict[str, Path], have: str, wanted: str) -> None:
    with pytest.raises(
        CheckpointError, match=f"trained with prompting {have}, not {wanted}; train one with .*--prompting {wanted}"
    ):
        build(parts(folders[have]), Options(extra={"prompting": wanted}))


def test_a_prediction_remembers_the_stage_of_its_weights(folders: dict[str, Path]) -> None:
    """Zero-shot: a checkpoint after post-pretraining alone."""
    assert build(parts(folders["interleaved"]), Options(clarify=False)).info.settings["stage"] == "pretrain"
    assert build(parts(folders["separate"]), Options(clarify=False)).info.settings["stage"] == "tune"


def test_the_fast_loop_is_chosen_by_option(folders: dict[str, Path]) -> None:
    exact = build(parts(folders["interleaved"]), Options(clarify=False))
    fast = build(parts(folders["interleaved"]), Options(clarify=False, extra={"loop": "fast", "reread": 0.4}))
    assert isinstance(exact.loop(), SpanAnswerer)
    assert isinstance(fast.loop(), FastSpanLoop)
    assert fast.loop() is not fast.loop()  # each run begins anew
    assert exact.info.settings["loop"] == "exact"
    assert (fast.info.settings["loop"], fast.info.settings["share"]) == ("fast", 0.4)
    question = t.Question("colour ?", passages=PASSAGES)
    one, again = answer(fast, question), answer(fast, question)
    assert [a.text for a in one.answers] == [a.text for a in again.answers]
    assert one.steps[0].candidates == answer(exact, question).steps[0].candidates


@pytest.mark.parametrize("extra", [{"loop": "slow"}, {"reread": 2}, {"prompting": "none"}, {"lop": "fast"}])
def test_bad_options(folders: dict[str, Path], extra: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(extra))):
        build(parts(folders["interleaved"]), Options(extra=extra))
