"""AmbigPrompt's loop over a scripted language model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from system_fakes import parts, texts

from core import types as t
from core.errors import LanguageModelError
from core.models.language.prompted import PromptedGenerator
from core.models.language.scripted import ScriptedLanguageModel
from core.systems.ambigprompt_lm import language_loop
from core.systems.base.loop import LoopSystem
from core.systems.base.options import ClarifierOptions, Options
from core.systems.base.system import answer

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
    script = map(json.dumps, replies)
    model = ScriptedLanguageModel({"next_answer": lambda _: next(script)})
    run = Options(clarify=False, **options)
    return language_loop("ambigprompt-lm", parts(), run, ClarifierOptions(), PromptedGenerator(model)), model


def test_one_answer_a_step_each_at_its_place_until_there_is_none() -> None:
    loop, model = system(ADA, BO, NONE)
    prediction = answer(loop, QUESTION)
    assert texts(prediction) == ["Ada Lund", "Bo Strand"]
    assert [(a.evidence[0].passage_id, a.evidence[0].start) for a in prediction.answers] == [("p1", 0), ("p2", 23)]
    assert "1. Ada Lund" in model.requests[1].messages[-1].text
    assert [step.choice is None for step in prediction.steps] == [False, False, True]


@pytest.mark.parametrize(
    ("replies", "options", "calls"),
    [
        pytest.param([INVENTED, ADA, NONE], {}, 3, id="a quotation that is in no passage is asked for once more"),
        pytest.param([ADA, ADA, BO], {}, 2, id="a model that repeats itself"),
        pytest.param([ADA, BO, ADA], {"max_answers": 1}, 1, id="a model that never stops"),
    ],
)
def test_the_loop_has_one_answer_after_so_many_calls(replies: list[Any], options: dict[str, int], calls: int) -> None:
    loop, model = system(*replies, **options)
    assert texts(answer(loop, QUESTION)) == ["Ada Lund"]
    assert len(model.requests) == calls


def test_two_quotations_that_are_in_no_passage_fail_the_question() -> None:
    with pytest.raises(LanguageModelError, match="quotation"):
        answer(system(INVENTED, INVENTED)[0], QUESTION)


def test_pinned_and_banned_answers_are_in_the_prompt() -> None:
    loop, model = system(BO, NONE)
    question = t.Question(QUESTION.text, passages=PASSAGES, pinned=("Ada Lund",), banned=("Cy Young",))
    assert texts(answer(loop, question)) == ["Ada Lund", "Bo Strand"]
    prompt = model.requests[0].messages[-1].text
    assert "1. Ada Lund" in prompt
    assert "2. Cy Young" in prompt
