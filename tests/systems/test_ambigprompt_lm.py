"""AmbigPrompt's loop over a scripted language model."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from system_fakes import texts

from core import types as t
from core.errors import LanguageModelError
from core.models.language.prompted import PromptedGenerator
from core.models.language.roles import Request
from core.models.language.scripted import ScriptedLanguageModel
from core.settings import Settings
from core.systems.ambigprompt_lm import language_loop
from core.systems.base.loop import LoopSystem
from core.systems.base.options import ClarifierOptions, Options
from core.systems.base.system import SystemParts, answer

PASSAGES = (
    t.Passage("p1", "Alder Cup", "Ada Lund won the cup in 1990, in the rain."),
    t.Passage("p2", "Alder Cup", "Ten years later it was Bo Strand who won the cup."),
)
QUESTION = t.Question("Who won the cup?", passages=PASSAGES)
ADA = {"answer": "Ada Lund", "passage": 1, "quotation": "Ada Lund won the cup in 1990"}
BO = {"answer": "Bo Strand", "passage": 1, "quotation": "it was Bo Strand who won the cup"}  # the number is wrong
NONE = {"answer": None, "passage": None, "quotation": None}
INVENTED = {"answer": "Cy Young", "passage": 1, "quotation": "Cy Young won the cup"}


def system(*replies: dict[str, object], **options: int) -> tuple[LoopSystem, ScriptedLanguageModel]:
    script: Iterator[str] = map(json.dumps, replies)

    def rule(request: Request) -> str:
        return next(script)

    model = ScriptedLanguageModel({"next_answer": rule})
    parts = SystemParts(Settings(), None)
    loop = language_loop(
        "ambigprompt-lm", parts, Options(clarify=False, **options), ClarifierOptions(), PromptedGenerator(model)
    )
    return loop, model


def test_one_answer_a_step_each_at_its_place_until_there_is_none() -> None:
    loop, model = system(ADA, BO, NONE)
    prediction = answer(loop, QUESTION)
    assert texts(prediction) == ["Ada Lund", "Bo Strand"]
    assert [(a.evidence[0].passage_id, a.evidence[0].start) for a in prediction.answers] == [("p1", 0), ("p2", 23)]
    assert "1. Ada Lund" in model.requests[1].messages[-1].text
    assert len(prediction.steps) == 3
    assert prediction.steps[-1].choice is None


def test_a_quotation_that_is_in_no_passage_is_asked_for_once_more() -> None:
    loop, model = system(INVENTED, ADA, NONE)
    assert texts(answer(loop, QUESTION)) == ["Ada Lund"]
    assert len(model.requests) == 3
    loop, _ = system(INVENTED, INVENTED)
    with pytest.raises(LanguageModelError, match="quotation"):
        answer(loop, QUESTION)


def test_a_model_that_repeats_itself_or_never_stops_is_ended() -> None:
    loop, model = system(ADA, ADA, BO)
    assert texts(answer(loop, QUESTION)) == ["Ada Lund"]
    assert len(model.requests) == 2
    loop, model = system(ADA, BO, ADA, max_answers=1)
    assert texts(answer(loop, QUESTION)) == ["Ada Lund"]
    assert len(model.requests) == 1


def test_pinned_and_banned_answers_are_in_the_prompt() -> None:
    loop, model = system(BO, NONE)
    question = t.Question(QUESTION.text, passages=PASSAGES, pinned=("Ada Lund",), banned=("Cy Young",))
    assert texts(answer(loop, question)) == ["Ada Lund", "Bo Strand"]
    prompt = model.requests[0].messages[-1].text
    assert "1. Ada Lund" in prompt
    assert "2. Cy Young" in prompt
