"""Counts the errors of one answer set in buckets.

Every reference answer that was not matched (core.metrics.answers, the annotation with the highest F1) is in exactly one of `alias_mismatch`,
`not_retrieved` and `missed`; every answer that matched none is in exactly one of `alias_mismatch`, `duplicate` and `spurious`.
`stopped_early` and `ran_on` mean that too few or too many answers were given.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from core.metrics.answers import best_set, matching, scored_as
from core.metrics.base import Example
from core.metrics.retrieval import covered
from core.text import normalize_answer, overlapping

MIN_CLOSE_RATIO = 0.85  # of difflib's ratio: one letter in seven may differ
BUCKETS = ("missed", "spurious", "alias_mismatch", "duplicate", "stopped_early", "ran_on", "not_retrieved")


@dataclass(frozen=True, slots=True)
class Errors:
    """Counts; `references` = matched + missed + not_retrieved + alias_mismatch, `answers` = matched + spurious + duplicate + alias_mismatch.

    `not_retrieved` is None, and such answers are among the missed, where the passages are not known.
    """

    references: int
    answers: int
    matched: int
    missed: int  # in the passages that were read, but not given
    spurious: int  # given, but not similar to any reference
    alias_mismatch: int  # pairs that are close but not equal: another spelling, a longer or a shorter name
    duplicate: int  # an answer that repeats another one
    stopped_early: int  # 1: fewer answers than references, and a missing one was in the passages
    ran_on: int  # 1: more answers than references
    not_retrieved: int | None  # no alias occurs in any passage that was read

    def buckets(self) -> dict[str, int | None]:
        return {name: value for name, value in asdict(self).items() if name in BUCKETS}


def close(aliases: Sequence[str], answer: str) -> bool:
    """Whether an answer is close to an alias: one contains the words of the other, or few letters differ.

    >>> close(["John F. Kennedy"], "Kennedy"), close(["Colour"], "color"), close(["Rome"], "Oslo")
    (True, True, False)
    """
    text = normalize_answer(answer)
    for alias in aliases:
        reference = normalize_answer(alias)
        if not text or not reference:
            continue
        if overlapping(text, reference):
            return True
        # numbers that differ by a digit are different answers
        if (
            not any(c.isdigit() for c in text + reference)
            and difflib.SequenceMatcher(None, text, reference).ratio() >= MIN_CLOSE_RATIO
        ):
            return True
    return False


def errors_of(example: Example, passages: Sequence[str] | None = None) -> Errors | None:
    """The errors of an answer set against the annotation with the highest F1; None if no annotation has an answer.

    `passages`: the texts of the passages that the system read, including the question's own.
    """
    references = best_set(example)
    if references is None:
        return None
    pairs = matching(references, example.answers)
    unmatched = sorted(set(range(len(references))) - {i for i, _ in pairs})
    extra = sorted(set(range(len(example.answers))) - {j for _, j in pairs})
    texts = {scored_as(alias) for i, _ in pairs for alias in references[i]}
    duplicates, unknown = 0, []
    for j in extra:
        text = scored_as(example.answers[j])
        if text in texts:
            duplicates += 1
        else:
            texts.add(text)
            unknown.append(j)
    mismatched = set[int]()
    for j in unknown:
        index = next((i for i in unmatched if i not in mismatched and close(references[i], example.answers[j])), None)
        if index is not None:
            mismatched.add(index)
    absent = [references[i] for i in unmatched if i not in mismatched]
    unread = None if passages is None else len(absent) - covered(passages, absent)
    missed = len(absent) - (unread or 0)
    return Errors(
        references=len(references),
        answers=len(example.answers),
        matched=len(pairs),
        missed=missed,
        spurious=len(unknown) - len(mismatched),
        alias_mismatch=len(mismatched),
        duplicate=duplicates,
        stopped_early=int(len(example.answers) < len(references) and missed > 0),
        ran_on=int(len(example.answers) > len(references)),
        not_retrieved=unread,
    )
