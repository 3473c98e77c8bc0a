"""One answer written in two ways counts once, and two answers that a sign tells apart count twice, whichever way a system finds them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from system_fakes import parts, texts
from test_rac import rows
from test_rac import run as rac

from core import types as t
from core.disambiguation.consolidation import by_answer
from core.models.seq2seq.decoding import merge
from core.models.span.reader import Readout
from core.systems import build
from core.systems.base.interpretations import interpretation_events
from core.systems.base.options import Options
from core.systems.base.selection import candidates_of, choose
from core.systems.base.system import answer, check_question
from core.text import normalize_answer

PAIRS = [
    ("O\u2019Rourke", "O'Rourke"),
    ("1914\u20131918", "1914-1918"),
    ("Cafe\u0301 Roma", "Caf\u00e9 Roma"),
    ("Paci\ufb01c", "Pacific"),
    ("New\u00a0York\u200b", "new york"),
]
DIFFERENT = [
    ("1.5 million", "15 million"),
    ("C++", "C"),
    ("-40 degrees", "40 degrees"),
    ("3.11", "31.1"),
    ("10\u00b2 km", "102 km"),
    ("3:1", "31"),
    ("40%", "40"),
    ("Hepatitis A", "Hepatitis B"),
]
QUESTION = t.Question("Which one?")
PASSAGE = t.Passage("p", "", "text")


def by_passages(a: str, b: str) -> list[str]:
    readouts = [Readout(PASSAGE, (t.Candidate(text, p),), 0.1) for text, p in ((a, 0.8), (b, 0.7))]
    return [c.text for c in candidates_of(readouts)]


def by_threshold(a: str, b: str) -> list[str]:
    return [c.text for c in choose([t.Candidate(a, 0.8), t.Candidate(b, 0.7)], QUESTION, 0.1, 8)]


def by_loop(a: str, b: str) -> list[str]:
    options = Options(clarify=False, extra={"table": {QUESTION.text: [a, b]}})
    prediction = answer(build("scripted", parts([PASSAGE]), options), QUESTION)
    assert len(prediction.steps[0].candidates) == len(prediction.answers)
    return texts(prediction)


def by_interpretations(a: str, b: str) -> list[str]:
    interpretations = [t.Interpretation("p", f"Which {i}?", text, 0.5) for i, text in enumerate((a, b))]
    return [e.answer.text for e in interpretation_events(QUESTION, interpretations, ()) if e.answer]


def by_clusters(a: str, b: str) -> list[str]:
    labels = by_answer(np.array([-1, -1]), [a, b])
    return [a] if labels.tolist() == [0, 0] else [a, b]  # else both are noise


def by_long_call(a: str, b: str) -> list[str]:
    prediction, _, _ = rac({"clarify_long": rows(("Q one?", a, 1), ("q one ?", b, 1))})
    return [i.answer for i in prediction.interpretations] or [a]


def by_sequences(a: str, b: str) -> list[str]:
    return [text for text, _ in merge([[(a, 0.5)], [(b, 0.5)]])]


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize(
    "way", [by_passages, by_threshold, by_loop, by_interpretations, by_clusters, by_long_call, by_sequences]
)
def test_one_answer_in_two_spellings_counts_once(way: Callable[[str, str], list[str]], a: str, b: str) -> None:
    assert len(way(a, b)) == 1
    assert normalize_answer(a) != normalize_answer(b)  # the script keeps its own rule


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
@pytest.mark.parametrize("way", [by_passages, by_threshold, by_loop, by_interpretations, by_clusters, by_sequences])
def test_two_answers_that_a_sign_tells_apart_count_twice(way: Callable[[str, str], list[str]], a: str, b: str) -> None:
    assert sorted(way(a, b)) == sorted((a, b))


def test_what_is_struck_is_struck_in_every_spelling() -> None:
    assert len(check_question(t.Question("Which one?", banned=("O\u2019Rourke", "O'Rourke")), 100).banned) == 1
    assert choose([t.Candidate("O'Rourke", 0.9)], t.Question("Which?", banned=("O\u2019Rourke",)), 0.1, 8) == []
