"""Questions with judged spans for the verifier, from the files that the reader is trained on.

Wrong spans are those that a reader takes for answers: other spans of a passage that answers (half of the answer, for
example), and spans of passages that do not.  The reader may have seen the questions.  Its wrong spans are still of the
right kind, and the verifier sees texts, not probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from core.models.ranking.verifier_rows import Window, window_bounds
from core.models.span.reader import PassageReader, Readout
from core.text import find_spans, normalize_answer
from core.training.data.examples import MultiExample, Reading, Titled
from core.types import Passage

SPANS = 5  # of a passage that the reader names
PLACES = 2  # occurrences of an alias in a passage that are taken
RIGHT, WRONG = 3, 3  # windows of a question, with and without a right span
PASSAGES = 6  # of a question that are read, supporting ones first
PASSAGE_CHARS = 1_500


@dataclass(frozen=True)
class Judged:
    """A question's windows.  `right` says of each span of each window whether it is an answer."""

    windows: tuple[Window, ...]
    right: tuple[tuple[bool, ...], ...]


@dataclass(frozen=True)
class VerifierQuestion:
    """`answering`: indices of the passages in which an alias of `gold` is known to answer the question.

    Another passage that contains an alias may or may not answer it.
    """

    question: str
    passages: tuple[Titled, ...]
    gold: tuple[str, ...]
    answering: frozenset[int]


def of_reading(row: Reading) -> VerifierQuestion:
    """A reading row as a question over one passage that answers it."""
    return VerifierQuestion(row.question, (row.passage,), row.answers, frozenset({0}))


def of_multi(example: MultiExample) -> VerifierQuestion:
    """Answering are the passages known to support the answers.

    If these are not known: all that are not marked as false or irrelevant (RAMDocs' `origin`).
    """
    if "supporting" in example.extra:
        answering = frozenset(range(len(example.extra["supporting"])))
    else:
        origin = example.extra.get("origin") or [None] * len(example.passages)
        answering = frozenset(i for i, o in enumerate(origin) if o in (None, "correct"))
    passages = tuple((title, text[:PASSAGE_CHARS]) for title, text in example.passages[:PASSAGES])
    return VerifierQuestion(example.question, passages, tuple(a for names in example.gold for a in names), answering)


def judged(asked: VerifierQuestion, readouts: Sequence[Readout], words: int) -> Judged | None:
    """The windows of a question, those in which the reader is surest first; None if it has no span.

    `readouts`: one per passage.  `words`: of a window.
    """
    keys = {normalize_answer(a) for a in asked.gold}
    spans: dict[tuple[int, int, int], dict[tuple[int, int], bool]] = {}  # (passage, window) -> span -> right
    surest: dict[tuple[int, int, int], float] = {}
    for i, ((_, text), readout) in enumerate(zip(asked.passages, readouts)):
        named = {(c.evidence.start, c.evidence.end): c.probability for c in readout.candidates if c.evidence is not None}
        if i in asked.answering:
            for alias in asked.gold:
                named |= {place: named.get(place, 0.0) for place in find_spans(text, alias)[:PLACES]}
        for (start, end), probability in named.items():
            right = normalize_answer(text[start:end]) in keys
            if right and i not in asked.answering:
                continue
            a, b = window_bounds(text, start, end, words)
            spans.setdefault((i, a, b), {})[start - a, end - a] = right
            surest[i, a, b] = max(surest.get((i, a, b), 0.0), probability)
    order = sorted(spans, key=lambda key: -surest[key])
    kept = [key for key in order if any(spans[key].values())][:RIGHT] + [key for key in order if not any(spans[key].values())][
        :WRONG
    ]
    windows = [
        Window(asked.question, asked.passages[i][0], asked.passages[i][1][a:b], tuple(spans[i, a, b])) for i, a, b in kept
    ]
    return Judged(tuple(windows), tuple(tuple(spans[key].values()) for key in kept)) if kept else None


def mine(
    questions: Iterable[VerifierQuestion], reader: PassageReader, words: int, log: Callable[[str], None] = print
) -> list[Judged]:
    """Reads every passage once with the reader: about 50 per second on one core in bf16."""
    out: list[Judged] = []
    for number, asked in enumerate(questions, 1):
        pairs = [(asked.question, Passage(str(i), title, text)) for i, (title, text) in enumerate(asked.passages)]
        if (found := judged(asked, reader.read_pairs(pairs, SPANS), words)) is not None:
            out.append(found)
        if number % 500 == 0:
            log(f"{number} questions read")
    return out
