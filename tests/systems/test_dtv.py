from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from system_fakes import parts, texts

from core import types as t
from core.errors import LanguageModelError, NothingRetrievedError
from core.evaluation.cost import cost_of
from core.models.language.loading import NoLanguageModelError
from core.models.language.prompted import PromptedGenerator
from core.models.language.scripted import ScriptedLanguageModel, passages_of, question_of
from core.settings import Settings
from core.systems import build
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.systems.dtv import DiversifyThenVerify, union
from core.systems.options import DtvOptions

CORPUS = {
    "a": ("West Side Story (film)", "Natalie Wood played Maria in the film of 1961."),
    "b": ("West Side Story (2021)", "Rachel Zegler played Maria in the film by Steven Spielberg."),
    "c": ("Basalt", "It is a dark rock."),
    "d": ("West Side Story (musical)", "Carol Lawrence was Maria on the stage."),
    "e": ("Maria", "A given name."),
}


class ListedRetriever:
    """Passages by query from a table; "*" for the rest."""

    def __init__(self, table: dict[str, str]) -> None:
        self.table, self.queries = table, []

    def search(self, query: str, k: int) -> list[t.RetrievedPassage]:
        self.queries.append(query)
        ids = self.table.get(query, self.table.get("*", ""))[:k]
        return [t.RetrievedPassage(t.Passage(i, *CORPUS[i]), rank, 1 / rank, 1 / rank) for rank, i in enumerate(ids, 1)]


PSEUDO = ["Who played Maria in the 1961 film?", "Who played Maria on stage?", "Who played Maria in an opera?"]
TABLE = {PSEUDO[0]: "ab", PSEUDO[1]: "da", PSEUDO[2]: "ec"}


def supporting(request: Any) -> str:
    name = {PSEUDO[0]: "Natalie", PSEUDO[1]: "Carol"}.get(question_of(request), "nothing")
    return json.dumps({"passages": [n for n, _, text in passages_of(request) if name in text]})


RULES = {"pseudo_interpretations": json.dumps({"questions": [*PSEUDO, PSEUDO[0].upper()]}), "supporting": supporting}


def system(
    rules: dict[str, Any] | None = None, name: str = "dtv", **options: Any
) -> tuple[DiversifyThenVerify, ScriptedLanguageModel, ListedRetriever]:
    model, retriever = ScriptedLanguageModel({**RULES, **(rules or {})}), ListedRetriever(TABLE)
    generator = PromptedGenerator(model)
    return DiversifyThenVerify(name, parts(retriever=retriever), Options(**options), generator, DtvOptions()), model, retriever


QUESTION = t.Question("Who played Maria?")


def test_imagine_search_prune_verify_answer() -> None:
    dtv, model, retriever = system(top_k=4)
    prediction = answer(dtv, QUESTION)
    assert retriever.queries == PSEUDO  # Eq. 2: a search for each, the repetition left out
    kinds = [type(e).__name__ for e in prediction.events]
    order = ["QuestionsImagined", "PassagesRetrieved", "PassagesPruned", "QuestionVerified", "InterpretationProposed"]
    assert [k for k in dict.fromkeys(kinds) if k in order] == order
    assert [(e.kept, e.dropped) for e in prediction.events if isinstance(e, t.PassagesPruned)] == [
        (("a", "d", "e", "b"), ("c",)),  # a was found twice: 1 + 1/2; c falls out
        (("a", "d"), ("e", "b")),  # Eq. 3
    ]
    verified = [(e.question, e.passage_ids) for e in prediction.events if isinstance(e, t.QuestionVerified)]
    assert verified == [(PSEUDO[0], ("a",)), (PSEUDO[1], ("d",)), (PSEUDO[2], ())]
    assert [(a.text, a.evidence[0].passage_id) for a in prediction.answers] == [("Natalie Wood", "a"), ("Carol Lawrence", "d")]
    assert [i.passage_id for i in prediction.interpretations] == ["a", "d"]
    assert [c.question != QUESTION.text for c in prediction.clarifications] == [True, True]
    # Eq. 4 read the verified passages only
    assert [n for n, _, _ in passages_of(model.requests[-1])] == [1, 2]


def test_what_it_costs_is_table_1() -> None:
    cost = cost_of(answer(system(top_k=4)[0], QUESTION))
    assert cost.retriever_calls == 3  # one for each pseudo-interpretation
    assert cost.calls_by_role == {"pseudo_interpretations": 1, "supporting": 3, "clarify_long": 1}
    assert cost.passages_read == 3 * 4 + 2  # each Verify call reads the whole universe
    assert cost.prompt_tokens > 500
    assert (cost.model_calls, cost.failed_calls, cost.model_seconds) == (5, 0, pytest.approx(0.005))
    unverified = answer(system(top_k=4, name="dtv-unverified")[0], QUESTION)
    assert texts(unverified) == ["Natalie Wood", "Carol Lawrence", "Rachel Zegler"]  # every passage is read
    without = cost_of(unverified)
    assert (without.model_calls, without.passages_read) == (2, 4)


def test_nothing_verified_is_nothing_found_and_said() -> None:
    prediction = answer(system({"supporting": '{"passages": []}'})[0], QUESTION)
    assert (prediction.answers, prediction.interpretations) == ((), ())
    assert prediction.passages  # the nearest ones are there to look at


def test_a_question_with_its_own_passages_searches_nothing() -> None:
    dtv, _, retriever = system({"supporting": '{"passages": [1, 2]}'})
    passages = tuple(t.Passage(i, *CORPUS[i]) for i in "abc")
    prediction = answer(dtv, replace(QUESTION, passages=passages))
    assert (retriever.queries, cost_of(prediction).retriever_calls) == ([], 0)
    assert texts(prediction) == ["Natalie Wood", "Rachel Zegler"]


@pytest.mark.parametrize("role", ["pseudo_interpretations", "supporting", "clarify_long"])
@pytest.mark.parametrize("words", ["", "<html>", '{"questions": ['])
def test_a_failed_decisive_call_fails_the_question_with_its_reason(role: str, words: str) -> None:
    dtv, _, _ = system({role: words})
    with pytest.raises(LanguageModelError, match=f"failed at '{role}'"):
        answer(dtv, QUESTION)


def test_one_failed_verification_leaves_the_others() -> None:
    prediction = answer(system({"supporting": lambda r: "" if "opera" in question_of(r) else supporting(r)})[0], QUESTION)
    assert [e.failed != "" for e in prediction.events if isinstance(e, t.QuestionVerified)] == [False, False, True]
    assert texts(prediction) == ["Natalie Wood", "Carol Lawrence"]
    assert cost_of(prediction).failed_calls == 1


def test_a_search_that_finds_nothing_is_no_failure_until_all_do() -> None:
    dtv, _, retriever = system()
    retriever.table = {PSEUDO[0]: "a"}
    assert texts(answer(dtv, QUESTION)) == ["Natalie Wood"]
    retriever.table = {}
    with pytest.raises(NothingRetrievedError):
        answer(dtv, QUESTION)


def test_without_a_language_model_it_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.models.language.loading.BUNDLED", tmp_path)  # without the bundled one
    with pytest.raises(NoLanguageModelError, match="AMBISCOPE_LM_URL"):
        build("dtv", parts(), Options())
    settings, retriever = Settings(lm_url="scripted:"), ListedRetriever({"*": "abd"})
    scripted = build("dtv", parts(settings=settings, retriever=retriever), Options())
    assert texts(answer(scripted, QUESTION)) == ["Natalie Wood", "Rachel Zegler", "Carol Lawrence"]


@pytest.mark.parametrize("similarity", [None, 0.4])
def test_the_union_without_all_similarities_goes_by_ranks(similarity: float | None) -> None:
    def retrieved(ids: str, similarity: float | None) -> list[t.RetrievedPassage]:
        return [t.RetrievedPassage(t.Passage(i, "", ""), rank, 1.0, similarity) for rank, i in enumerate(ids, 1)]

    assert [p.passage.id for p in union([retrieved("ab", similarity), retrieved("cb", None)])] == ["b", "a", "c"]
    assert union([]) == []
