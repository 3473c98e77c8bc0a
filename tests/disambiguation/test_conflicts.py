"""Documents that disagree, in contrast to answers to different meanings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core import types as t
from core.disambiguation.conflicts import conflicts
from core.disambiguation.outcome import PredictionOutcome, result_of
from core.text import find_spans

BRIDGE = "When was the Kelvin Bridge in Tarnow opened to traffic?"
GUIDE = ("Kelvin Bridge", "The Kelvin Bridge was opened in 1891. It has five arches.")
HISTORY = ("History of Tarnow (2019)", "In 2019 the town counted again: the Kelvin Bridge was opened to traffic in 1893.")
TALL = "How many metres tall is the old lighthouse in Skaane harbour?"
BOTH = ("Kelvin Bridge", "It was opened in 1891 or 1893.")
# answers, each with the (title, text) from which it is read
ORCHARDS = (
    ("Bo Liska", ("The Salt Orchard (1951 film)", "Bo Liska directed it.")),
    ("Pilar Echandia", ("The Salt Orchard (1988 film)", "Pilar Echandia directed it.")),
)
NOVELS = (
    ("The Salt Tax", ("The Salt Tax", "The Salt Tax by Bo Liska is set in Tarnow.")),
    ("Seven Oars", ("Seven Oars", "Seven Oars, a novel of Bo Liska, is set in Tarnow.")),
)
WRITERS = (("Ada Quist", ("", "Ada Quist wrote it.")), ("Bo Liska", ("", "Bo Liska wrote it.")))
MAYORS = (("Ada Quist", ("Mayors", "Ada Quist won in 1990.")), ("Bo Liska", ("Mayors", "In 1994 Bo Liska won.")))
YEARS = (("1891", GUIDE), ("1893", ("Kelvin Bridge", "Opened in 1893.")))
NO_CONFLICT = {
    "titles name different things": ("Who directed The Salt Orchard?", ORCHARDS),
    "years differ": ("Who won the mayoral election?", MAYORS),
    "one passage": (BRIDGE, (("1891", BOTH), ("1893", BOTH))),
    "one knows both": (BRIDGE, (("1891", GUIDE), ("1893", ("Kelvin Bridge", "Planned for 1891, it was opened in 1893.")))),
    "other types": (BRIDGE, (("1891", GUIDE), ("Tarnow", ("Kelvin Bridge", "It is in Tarnow.")))),
    "one contains the other": (BRIDGE, (("1891", GUIDE), ("May 1891", ("Kelvin Bridge", "It opened in May 1891.")))),
    "several are asked for": ("Which years did the bridge open?", YEARS),
    "general, without titles": ("Who wrote it?", WRITERS),
    "about the answer": ("Which novel by Bo Liska is set in the harbour town of Tarnow?", NOVELS),
}


def result(question: str, *rows: tuple[str, tuple[str, str]]) -> PredictionOutcome:
    """The result of a prediction with these answers, each read from its (title, text)."""
    texts = list(dict.fromkeys(row for _, row in rows))
    passages = [t.Passage(f"p{n}", *row) for n, row in enumerate(texts)]
    answers: dict[str, t.Answer] = {}
    for text, row in rows:
        passage = passages[texts.index(row)]
        (start, end), *_ = find_spans(passage.text, text)
        known = answers.get(text, t.Answer(text, 0.5))
        answers[text] = replace(known, evidence=(*known.evidence, t.Evidence(passage.id, start, end, text)))
    retrieved = tuple(t.RetrievedPassage(p, n, 1.0) for n, p in enumerate(passages, 1))
    system = t.SystemInfo("x")
    return result_of(t.Prediction(t.Question(question), system, tuple(answers.values()), (), (), retrieved, 1.0, ()))


def test_two_documents_disagree() -> None:
    (conflict,) = result(BRIDGE, ("1891", GUIDE), ("1893", HISTORY)).conflicts
    assert [(c.answer, c.passage_id, c.title, c.dates) for c in conflict.claims] == [
        ("1891", "p0", GUIDE[0], ()),
        ("1893", "p1", HISTORY[0], ("2019",)),
    ]
    assert "1893" in conflict.claims[1].sentence


@pytest.mark.parametrize(("question", "rows"), NO_CONFLICT.values(), ids=NO_CONFLICT)
def test_no_conflict(question: str, rows: tuple[tuple[str, tuple[str, str]], ...]) -> None:
    assert not result(question, *rows).conflicts


def test_pasted_passages_disagree_about_a_specific_question() -> None:
    heights = ("31 metres", ("", "The lighthouse is 31 metres tall.")), ("28 metres", ("", "It rises 28 metres."))
    assert [c.answers for c in result(TALL, *heights).conflicts] == [("31 metres", "28 metres")]


def test_what_documents_disagree_on_is_one_meaning() -> None:
    alone = result(BRIDGE, ("1891", GUIDE), ("1893", HISTORY))
    assert (alone.outcome, alone.clarification) == ("answered", None)
    ferry = ("Kelvin Bridge (ferry)", "The ferry Kelvin Bridge began in May 1920.")
    several = result(BRIDGE, ("1891", GUIDE), ("May 1920", ferry), ("1893", HISTORY))
    assert several.outcome == "ambiguous"
    assert several.clarification is not None
    assert [(o.answer, o.others) for o in several.clarification.options] == [("1891", ("1893",)), ("May 1920", ())]


def test_three_documents_are_one_conflict_and_answers_without_evidence_none() -> None:
    later = ("Kelvin Bridge", "The bridge was opened in 1895.")
    (conflict,) = result(BRIDGE, ("1891", GUIDE), ("1893", HISTORY), ("1895", later)).conflicts
    assert conflict.answers == ("1891", "1893", "1895")
    assert conflicts(BRIDGE, [t.Answer("1891", 1.0), t.Answer("1893", 1.0)], []) == ()
