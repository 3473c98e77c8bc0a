"""AmbigQA's F1 BLEU-n and F1 EDIT-F1 of disambiguated questions, and the share that passes the round trip
(core.disambiguation.round_trip).

Source: Min et al. 2020, section 3.2, and the authors' script; BLEU as in coco-caption: per sentence, closest reference length, constants
in place of smoothing.  Written from the formulas.  A reference question may hold variants separated by `|`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from core.metrics.answers import best_set, f1, is_match, matching
from core.metrics.base import Example, Value
from core.metrics.ptb import caption_tokens
from core.text import normalize_answer
from core.types import Annotation

_TINY, _SMALL = 1e-15, 1e-9  # coco-caption's: keep 0/0 at 0 and x/0 finite

QuestionSimilarity = Callable[[str, Sequence[str], str], float]  # (predicted, reference variants, prompt), all normalised


@lru_cache(maxsize=65_536)
def normal_question(text: str) -> str:
    """Penn Treebank tokens without punctuation, then AmbigQA's normalisation.

    >>> normal_question("Who doesn't play the U.S. Open?")
    'who does nt play us open'
    """
    return normalize_answer(" ".join(caption_tokens(text)))


def variants(question: str) -> list[str]:
    """A reference question's variants, normalised.

    >>> variants("Who won in 2010? | Who was the winner of 2010?")
    ['who won in 2010', 'who was winner of 2010']
    """
    return [normal_question(v.strip()) for v in question.split("|") if v.strip()]


def bleu(predicted: str, references: Sequence[str], n: int) -> float:
    """Sentence BLEU-1..n's geometric mean with the brevity penalty; the sentences are normalised.  0..1 (1 up to 1e-9).

    >>> round(bleu("who won in 2010", ["who won race in 2010"], 1), 4)  # precision 1, penalty exp(1 - 5/4)
    0.7788
    >>> round(bleu("who won in 2010", ["who won race in 2010"], 2), 4)  # times sqrt(2/3)
    0.6359
    """
    words = predicted.split()
    targets = [r.split() for r in references]
    product = 1.0
    for k in range(1, n + 1):
        have = _ngrams(words, k)
        limits: Counter[tuple[str, ...]] = Counter()
        for target in targets:
            limits |= _ngrams(target, k)
        correct = (have & limits).total()
        product *= (correct + _TINY) / (max(0, len(words) - k + 1) + _SMALL)
    closest = min((abs(len(t) - len(words)), len(t)) for t in targets)[1]
    ratio = (len(words) + _TINY) / (closest + _SMALL)
    score = product ** (1 / n)
    return float(score * math.exp(1 - 1 / ratio) if ratio < 1 else score)


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def edit(prompt: str, question: str) -> Counter[tuple[str, str]]:
    """The multiset of tokens deleted from and added to the prompt question.

    >>> sorted(edit("who won race", "who won in 2010"))
    [('+', '2010'), ('+', 'in'), ('-', 'race')]
    """
    # Splitting at single spaces as the authors do: an empty sentence is one empty token, not none.
    before, after = Counter(prompt.split(" ")), Counter(question.split(" "))
    deleted = {("-", word): count for word, count in (before - after).items()}
    return Counter(deleted | {("+", word): count for word, count in (after - before).items()})


def edit_f1(predicted: str, references: Sequence[str], prompt: str) -> float:
    """F1 of the predicted edit against the reference edit, the highest over variants.

    >>> edit_f1("who won in 2010", ["who won in 2011"], "who won")  # 'in' of 'in', '2010'
    0.5
    >>> edit_f1("who won", ["who won"], "who won"), edit_f1("who won", ["who won in 2011"], "who won")
    (1.0, 0.0)
    """
    change, targets = edit(prompt, predicted), [edit(prompt, r) for r in references]
    # 2pr/(p+r) of multisets; 0 if one of them is empty, 1 if both are
    return max(2 * (change & r).total() / (change.total() + r.total()) if change or r else 1.0 for r in targets)


def matched_f1(annotation: Annotation, example: Example, similarity: QuestionSimilarity) -> Value:
    """2 x sum of similarities / (references + predictions) over pairs with equal answers, taken greedily from the most similar.

    None if a reference pair has no question, or the system makes none.  Each side of a pair is used at most once.
    """
    if example.questions is None or any(not p.question.strip(" |") for p in annotation.pairs):
        return None
    prompt = normal_question(example.prompt)
    candidates = [
        (similarity(normal_question(example.questions[j]), variants(pair.question), prompt), i, j)
        for i, pair in enumerate(annotation.pairs)
        for j, answer in enumerate(example.answers)
        if is_match(pair.answers, answer)
    ]
    total, used_references, used_predictions = 0.0, set[int](), set[int]()
    for value, i, j in sorted(candidates, key=lambda pair: -pair[0]):  # stable: equal ones in reference order, as the authors'
        if i not in used_references and j not in used_predictions:
            used_references.add(i)
            used_predictions.add(j)
            total += value
    return 2 * total / (len(annotation.pairs) + len(example.answers))


def _f1_question(example: Example, similarity: QuestionSimilarity) -> Value:
    """The highest value over annotations.  A single-answer annotation counts with its F1 answer."""
    if example.questions is None:
        return None
    values = [
        f1([p.answers for p in a.pairs], example.answers) if a.type == "single" else matched_f1(a, example, similarity)
        for a in example.annotations
        if a.type != "none" and a.pairs
    ]
    return max((v for v in values if v is not None), default=None)


def _bleu(predicted: str, references: Sequence[str], prompt: str, *, n: int) -> float:
    return bleu(predicted, references, n)


f1_bleu1, f1_bleu2, f1_bleu3, f1_bleu4 = (partial(_f1_question, similarity=partial(_bleu, n=n)) for n in (1, 2, 3, 4))
f1_edit = partial(_f1_question, similarity=edit_f1)


# ---------------------------------------------------------------- the round trip


def right_ones(example: Example) -> list[int]:
    """The indexes of the right answers, by the annotation with the highest F1."""
    best = best_set(example)
    return [] if best is None else [j for _, j in matching(best, example.answers)]


def clarified(example: Example) -> Value:
    """The share of right answers whose question passes the round trip.  A question counts once per right answer.  Undefined if
    the system clarifies nothing."""
    right = right_ones(example)
    if not right or example.passed is None or all(p is None for p in example.passed):
        return None
    return sum(bool(example.passed[j]) for j in right) / len(right)
