from __future__ import annotations

import json
from typing import Any

import pytest
from system_fakes import Shelf, parts, texts

from core import types as t
from core.errors import LanguageModelError
from core.evaluation.cost import cost_of
from core.evaluation.run import example_of
from core.models.language.prompted import PromptedGenerator
from core.models.language.roles import Request
from core.models.language.scripted import ScriptedLanguageModel, passages_of, question_of
from core.systems import options_of
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.systems.rac import RetrievalAugmentedClarification

CORPUS = (
    t.Passage("a", "Harbour House (1961)", "Nora Vance led the film of 1961."),
    t.Passage("b", "Harbour House (2003)", "Ida Brook led the series. Tom Reed joined in its second season."),
    t.Passage("c", "Basalt", "it is a dark rock."),
)
QUESTION = t.Question("Who led Harbour House?")


def rows(*pairs: tuple[str, str, int]) -> str:
    return json.dumps({"interpretations": [{"question": q, "answer": a, "passage": p} for q, a, p in pairs]})


def run(
    rules: dict[str, Any] | None = None,
    name: str = "rac",
    question: t.Question = QUESTION,
    config: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[t.Prediction, ScriptedLanguageModel, Shelf]:
    model, shelf, values = ScriptedLanguageModel(rules), Shelf(CORPUS), options_of(name).read(name, config or {})
    system = RetrievalAugmentedClarification(name, parts(retriever=shelf), Options(**options), PromptedGenerator(model), values)
    return answer(system, question), model, shelf


def test_one_relaxed_search_and_one_long_call() -> None:
    prediction, model, retriever = run()
    relaxed = next(e for e in prediction.events if isinstance(e, t.QuestionRelaxed))
    assert retriever.queries == [relaxed.question] == ["led harbour house"]
    assert [r.purpose for r in model.requests] == ["relax", "clarify_long"]
    assert [text for _, _, text in passages_of(model.requests[1])] == [p.text for p in CORPUS]
    assert texts(prediction) == ["Nora Vance", "Ida Brook"]
    assert [a.evidence[0].passage_id for a in prediction.answers] == ["a", "b"]
    cost = cost_of(prediction)
    assert (cost.retriever_calls, cost.model_calls, cost.passages_read) == (1, 2, 3)


def test_a_question_may_stay_as_it_is_and_does_after_a_failed_relaxation() -> None:
    prediction, model, retriever = run(config={"relax": "no"})
    assert (retriever.queries, len(model.requests)) == ([QUESTION.text], 1)
    assert prediction.system.settings["extra"]["relax"] == "no"
    prediction, _, retriever = run({"relax": "sorry"})
    assert (retriever.queries, cost_of(prediction).failed_calls, len(prediction.answers)) == ([QUESTION.text], 1, 2)


def test_answers_are_grounded_where_they_stand_not_where_the_model_says() -> None:
    film, third = ("Who led the film?", "nora vance", 3), ("Who led a third one?", "Harrison Ford", 1)
    prediction, _, _ = run({"clarify_long": rows(film, third, ("Who?", "", 1), ("", "Ida", 2))})
    assert [(i.answer, i.passage_id) for i in prediction.interpretations] == [("Nora Vance", "a"), ("Harrison Ford", "")]
    assert [bool(a.evidence) for a in prediction.answers] == [True, False]


def test_two_questions_with_one_answer_are_one_answer_and_two_interpretations() -> None:
    leading, first = ("Who led the series?", "Ida Brook", 2), ("Who was first in the series?", "Ida Brook", 2)
    prediction, _, _ = run({"clarify_long": rows(leading, first, leading)})
    assert [i.question for i in prediction.interpretations] == ["Who led the series?", "Who was first in the series?"]
    assert [(a.text, len(a.evidence)) for a in prediction.answers] == [("Ida Brook", 1)]
    assert prediction.clarifications[0].question == "Who led the series?"


def test_at_most_as_many_as_asked_for() -> None:
    reply = rows(*[(f"Who led number {n}?", f"Name {n}", 1) for n in range(30)])
    prediction, model, _ = run({"clarify_long": reply}, max_answers=3)
    assert len(prediction.answers) == 3
    assert "at most 3" in model.requests[-1].messages[0].text


@pytest.mark.parametrize("words", ["", "no", '{"interpretations": "none"}'])
def test_a_failed_long_call_fails_the_question(words: str) -> None:
    with pytest.raises(LanguageModelError, match="clarify_long"):
        run({"clarify_long": words})


def grown(request: Request) -> str:
    if "series" in question_of(request):
        return rows(("Who joined the series later?", "Tom Reed", 2), ("Who led the film?", "Nora Vance", 1))
    return rows(("Who led the film?", "Nora Vance", 1), ("Who led the series?", "Ida Brook", 2), ("Who is dark?", "rock", 3))


def supported(request: Request) -> str:
    assert question_of(request) == QUESTION.text  # self-verification asks with the question as it was put
    return json.dumps({"supported": "<answer>\nrock" not in request.messages[-1].text})


TREE = {"clarify_long": grown, "verify": supported}


def test_the_tree_grows_from_valid_nodes_and_prunes_the_others() -> None:
    prediction, _model, retriever = run(TREE, name="rac-tree")
    assert texts(prediction) == ["Nora Vance", "Ida Brook", "Tom Reed"]
    proposed = [e.interpretation for e in prediction.events if isinstance(e, t.InterpretationProposed)]
    assert [(i.answer, i.verified, bool(i.abstained)) for i in proposed] == [
        ("Nora Vance", True, False),
        ("Ida Brook", True, False),
        ("rock", False, True),
        ("Tom Reed", True, False),
    ]
    # the root's search is the relaxed question's; then one for each valid node, none for the pruned one
    assert retriever.queries[1:] == ["Who led the film?", "Who led the series?"]
    assert cost_of(prediction).calls_by_role == {"relax": 1, "clarify_long": 3, "verify": 4, "long_answer": 1}
    assert all(c.passed for c in prediction.clarifications)
    assert prediction.system.settings["extra"]["depth"] == 2


def test_a_tree_of_depth_one_is_a_verified_long_call() -> None:
    prediction, _, retriever = run(TREE, name="rac-tree", config={"depth": 1})
    assert (len(retriever.queries), texts(prediction)) == (1, ["Nora Vance", "Ida Brook"])


def test_a_tree_ends_at_the_maximum_and_at_its_depth() -> None:
    count = iter(range(1000))

    def endless(request: Request) -> str:
        return rows(*[(f"Who led part {next(count)}?", "Ida Brook", 2) for _ in range(3)])

    rules = {"clarify_long": endless, "verify": '{"supported": true}'}
    prediction, model, _ = run(rules, name="rac-tree", config={"depth": 4}, max_answers=5)
    assert len(prediction.interpretations) == 5
    assert sum(r.purpose == "clarify_long" for r in model.requests) <= 6


def test_failed_branches_and_checks_leave_the_rest() -> None:
    def half(request: Request) -> str:
        return "" if question_of(request) != QUESTION.text else grown(request)

    prediction, _, _ = run({"clarify_long": half, "verify": "?"}, name="rac-tree", check_coverage=False)
    assert [i.verified for i in prediction.interpretations] == [None] * 3
    assert not any(c.passed for c in prediction.clarifications)
    assert cost_of(prediction).failed_calls == 6


def test_the_tree_ends_with_one_long_answer_without_what_was_struck() -> None:
    text = "The film was led by Nora Vance, the series by Ida Brook."
    question = t.Question(QUESTION.text, banned=("Tom Reed",))
    prediction, model, _ = run(TREE | {"long_answer": json.dumps({"text": text})}, name="rac-tree", question=question)
    assert prediction.long_answer == text
    (prompt,) = (r.messages[-1].text for r in model.requests if r.purpose == "long_answer")
    pairs = prompt.split("</pairs>")[0]
    assert "Ida Brook" in pairs
    assert "Tom Reed" not in pairs
    assert example_of(t.ReferenceQuestion("q", QUESTION.text, ()), prediction).text == text
    failed, _, _ = run(TREE | {"long_answer": "no"}, name="rac-tree")
    assert (failed.long_answer, len(failed.answers)) == ("", 3)
    assert run()[0].long_answer == ""
