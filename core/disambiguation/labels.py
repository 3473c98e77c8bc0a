"""Labels that distinguish an answer in a few words: those in its own question that the prompt question lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from core.text import STOPWORDS, comparable, content_words

MAX_LABEL_CHARS = 60


def labels_of(prompt: str, questions: Sequence[str]) -> list[str]:
    """The label of each answer, from its question: the longest run of words that it adds to the prompt question, starting and
    ending with words that neither the prompt nor every question has.  Empty if there is none, or if another answer has the
    same.

    >>> labels_of("who directed the salt orchard?", ["Who directed the 1951 film The Salt Orchard?", "Who staged the play The Salt Orchard?"])
    ['1951 film', 'staged the play']
    >>> labels_of("default visibility timeout", ["default visibility timeout (Amazon SQS)", ""])
    ['Amazon SQS', '']
    """
    known = [set(_bare(q)) for q in questions if q]
    shared = set.intersection(*known) if len(known) > 1 else set[str]()
    labels = [_label(prompt, q, shared) if q else "" for q in questions]
    counts = Counter(map(comparable, labels))
    return [label if counts[comparable(label)] == 1 else "" for label in labels]


def _bare(text: str) -> list[str]:
    """The comparable words without punctuation, as many as the text has."""
    return [comparable(word).strip("()[].,:;?!\"'") for word in text.split()]


def _label(prompt: str, question: str, shared: set[str]) -> str:
    words, before, after = question.split(), _bare(prompt), _bare(question)
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    silent = STOPWORDS | shared | set(before)
    runs = []
    for kind, _, _, first, end in blocks:
        telling = [i for i in range(first, end) if after[i] and after[i] not in silent]
        if kind in ("insert", "replace") and telling:
            runs.append(" ".join(words[telling[0] : telling[-1] + 1]).strip("()[].,:;?! "))
    label = max(runs, key=lambda run: (len(content_words(run)), len(run)), default="")
    return label if len(label) <= MAX_LABEL_CHARS else ""
