"""Near copies among passages, and answers that they contradict."""

from __future__ import annotations

from core.models.ranking.copies import Copies
from core.models.ranking.features import FEATURES, QuestionFeatures
from core.text import word_tokens
from core.types import Candidate, Evidence, Passage, Proposal, RetrievedPassage
from tests.models.ranking.test_reranker import embed

TEXTS = {
    "true": "The county courthouse in Adel was built in 1902 by Proudfoot and Bird and stands on the town square.",
    "false": "The county courthouse in Adel was built in 1885 by Proudfoot and Bird and stands on the town square.",
    "other": "On September 19, 1902, the new building was dedicated before a large crowd.",
    "rain": "It rained for a week in Ulm, and the river rose by a metre.",
}


def copies(**texts: str) -> Copies:
    return Copies({key: word_tokens(text) for key, text in texts.items()})


def test_a_text_with_another_word_is_a_near_copy_and_one_document() -> None:
    found = copies(**TEXTS)
    assert found.of("true") == {"false"}
    assert found.of("false") == {"true"}
    assert not found.of("rain")
    assert found.documents(["true", "false", "other"]) == 2


def test_the_answer_of_fewer_documents_is_outvoted_and_only_by_what_a_near_copy_says() -> None:
    found = copies(**TEXTS)
    of_1902, of_1885, of_ulm = ["true", "other"], ["false"], ["rain"]
    assert found.against("false", of_1885, [of_1902, of_ulm]) == (1, True)
    assert found.against("true", of_1902, [of_1885, of_ulm]) == (0, False)
    assert found.against("rain", of_ulm, [of_1902]) == (0, False)  # no near copy says otherwise
    assert found.against("true", ["true"], [of_1885]) == (0, True)  # one document each: undecided


def test_a_copy_that_holds_both_answers_contradicts_neither() -> None:
    both = TEXTS["false"] + " Others say 1902."
    found = copies(true=TEXTS["true"], false=both, other=TEXTS["other"])
    assert found.against("true", ["true", "false", "other"], [["false"]]) == (0, False)


def test_short_and_empty_passages_have_no_copies() -> None:
    assert not copies(a="", b="", c="Paris", d="Paris").of("c")


def test_a_candidate_of_a_false_copy_is_outvoted_also_by_an_earlier_answer() -> None:
    passages = [RetrievedPassage(Passage(k, "", text), n, 0.5, 0.5) for n, (k, text) in enumerate(TEXTS.items(), 1)]

    def candidate(text: str, key: str) -> Candidate:
        start = TEXTS[key].index(text)
        return Candidate(text, 0.3, Evidence(key, start, start + len(text), text))

    seen = QuestionFeatures("When was the courthouse built?", passages, embed, lambda *_: [])
    step = Proposal((candidate("1902", "true"), candidate("1885", "false"), candidate("Ulm", "rain")), 0.1)
    columns = [FEATURES.index("outvoted"), FEATURES.index("contested")]
    assert seen.step([], step)[:, columns].tolist() == [[0, 0], [1, 1], [0, 0]]
    later = seen.step(["1902"], Proposal((candidate("1885", "false"), Candidate("nowhere", 0.1)), 0.1))
    assert later[:, columns].tolist() == [[1, 1], [0, 0]]
