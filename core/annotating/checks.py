"""Checks of an annotation: errors, which block submission, and doubts, which are stored with it.

Source: the interface of AmbigQA's authors (shmsw25/AmbigQA, branch `annotation`, static/jsdeps.js and out.js), which counts a
page of Wikipedia where we count a passage, and whose reference date (2017-12-31) is a parameter here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from core.text import answer_keys, date_text, question_key, word_tokens
from core.types import Annotation

YEARS_AFTER, YEARS_BEFORE = 3, 5  # authors: 2012-2020 around 2017
MAX_CASES = 3  # "at most three variants, counting back": the authors' rule for questions that depend on time
QUESTION_WORDS = ("who", "whom", "whose", "what", "which", "when", "where", "why", "how")
_BASE_FORMS = {"whom": "who", "whose": "who"}
_RELATIVE = frozenset(
    "last next latest newest current currently now nowadays today present presently recent recently upcoming yet ago".split()
)
_THIS_PERIOD = re.compile(r"\bthis (?:year|season|month|week|decade|century)\b", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_SLASH = re.compile(r"[^\W\d_]\)?\s*/\s*\(?[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Finding:
    """`pair` counts from 0; None means the whole annotation.  `field`: "question", "answers" or empty.  `message` says what to
    do."""

    code: str
    message: str
    pair: int | None = None
    field: str = ""

    def __str__(self) -> str:
        return self.message if self.pair is None else f"Pair {self.pair + 1}: {self.message}"


def errors(annotation: Annotation, prompt: str, *, opened_count: int | None, must_read: int = 1) -> tuple[Finding, ...]:
    """The findings that block the submission.  `opened_count`: the number of opened passages, or None if reading isn't
    required.

    Codes: few-pairs, many-pairs, empty-question, empty-answer, duplicate-question, same-as-prompt, no-question-mark, nothing-read.
    """
    findings: list[Finding] = []
    pairs, several = annotation.pairs, annotation.type == "multiple"
    if several and len(pairs) < 2:
        message = "Several answers need two pairs or more: add one, or choose 'A single answer' or 'No answer'."
        findings.append(Finding("few-pairs", message))
    if annotation.type == "single" and not pairs:
        findings.append(Finding("empty-answer", "Write the answer.", 0, "answers"))
    if annotation.type == "single" and len(pairs) > 1:
        message = "A single answer was chosen, but there are several: take the others out, or choose 'Several answers'."
        findings.append(Finding("many-pairs", message))
    if annotation.type == "none" and pairs:
        message = "'No answer' was chosen, but there are answers: take them out, or choose another kind."
        findings.append(Finding("many-pairs", message))
    first_pairs: dict[str, int] = {}
    for number, pair in enumerate(pairs):
        if not any(alias.strip() for alias in pair.answers):
            findings.append(Finding("empty-answer", "Write the answer.", number, "answers"))
        if not several:
            continue
        question = pair.question.strip()
        if not question:
            findings.append(Finding("empty-question", "Write the question that has only this answer.", number, "question"))
            continue
        key = question_key(question)
        if key == question_key(prompt):
            message = "This is the prompt question: say what makes it have this answer only."
            findings.append(Finding("same-as-prompt", message, number, "question"))
        elif key in first_pairs:
            message = f"The same question as in pair {first_pairs[key] + 1}: change one, or put its answer there as an alias."
            findings.append(Finding("duplicate-question", message, number, "question"))
        if not question.endswith("?"):
            findings.append(Finding("no-question-mark", "End the question with a question mark.", number, "question"))
        first_pairs.setdefault(key, number)
    if opened_count is not None and opened_count < must_read:
        passages = "a passage" if must_read == 1 else f"{must_read} passages"
        findings.append(Finding("nothing-read", f"Search and open {passages} first: an answer must be read, not remembered."))
    return tuple(findings)


def doubts(annotation: Annotation, prompt: str, *, reference_date: date | None, alias_words: int = 7) -> tuple[Finding, ...]:
    """The findings that deserve a second look.  They are stored with the annotation and never block it.

    Codes: long-alias, slash, shared-answer (answers); time-dependent, question-word, other (questions).  No time-dependent ones
    without a reference date.
    """
    findings: list[Finding] = []
    several = annotation.type == "multiple"
    first_with: dict[str, int] = {}
    for number, pair in enumerate(annotation.pairs):
        if any(len(alias.split()) >= alias_words for alias in pair.answers):
            message = f"An answer of {alias_words} words or more: is there a shorter one?"
            findings.append(Finding("long-alias", message, number, "answers"))
        if any(_SLASH.search(alias) for alias in pair.answers):
            findings.append(Finding("slash", "Separate aliases with |. A / is part of the answer.", number, "answers"))
        if not several:
            continue
        keys = answer_keys(pair.answers)
        before = min((first_with[key] for key in keys if key in first_with), default=None)
        if before is not None:
            message = f"The same answer as in pair {before + 1}: does one question cover both?"
            findings.append(Finding("shared-answer", message, number, "answers"))
        for key in keys:
            first_with.setdefault(key, number)
        findings += _question_doubts(pair.question, prompt, number, reference_date)
    if several and reference_date is not None:
        near = range(reference_date.year - YEARS_BEFORE, reference_date.year + YEARS_AFTER + 1)
        if sum(any(int(year) in near for year in _YEAR.findall(pair.question)) for pair in annotation.pairs) > MAX_CASES:
            message = (
                f"More than {MAX_CASES} pairs name a year close to {date_text(reference_date)}: keep the {MAX_CASES} latest."
            )
            findings.append(Finding("time-dependent", message))
    return tuple(findings)


def _question_doubts(question: str, prompt: str, number: int, reference_date: date | None) -> list[Finding]:
    findings = []
    tokens = word_tokens(question)
    if reference_date is not None and (time_words := _time_words(question, tokens, reference_date)):
        message = (
            f"'{time_words}' depends on when it is asked. Write the year or date, and give at most the {MAX_CASES} latest cases "
            f"up to {date_text(reference_date)}."
        )
        findings.append(Finding("time-dependent", message, number, "question"))
    prompt_word, word = question_word(prompt), question_word(question)
    if prompt_word and word and prompt_word != word:
        message = f"It asks '{word}', the prompt question '{prompt_word}': keep the question word where you can."
        findings.append(Finding("question-word", message, number, "question"))
    if other := next((t for t in tokens if t in ("other", "another", "others")), ""):
        message = f"'{other}' cannot be understood without the pairs before it: name what is meant."
        findings.append(Finding("other", message, number, "question"))
    return findings


def _time_words(question: str, tokens: list[str], reference: date) -> str:
    """The first wording that depends on the time of asking, or a year close to the reference date."""
    if this := _THIS_PERIOD.search(question):
        return this.group().lower()
    if word := next((t for t in tokens if t in _RELATIVE), ""):
        return word
    for year in _YEAR.findall(question):
        if reference.year < int(year) <= reference.year + YEARS_AFTER:  # a past year says when; a coming one is a guess
            return str(year)
    return ""


def question_word(question: str) -> str:
    """The first question word ("who" for whom and whose), or empty.

    >>> question_word("In which year did it end?")
    'which'
    """
    word = next((t for t in word_tokens(question) if t in QUESTION_WORDS), "")
    return _BASE_FORMS.get(word, word)
