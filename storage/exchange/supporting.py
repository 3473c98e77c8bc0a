"""Which of the read passages support the answers that the majority holds correct (storage.exchange.consensus.RULE)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from core.text import answer_key, content_words, has_answer
from storage.exchange.consensus import Said


def supporting(one: Said, answers: Sequence[Sequence[str]], passages: Sequence[Mapping[str, Any]]) -> set[str]:
    """Ids of the passages that support these answers, as far as that is known: those that annotations cite for them,
    and the first evidence passage of a predicted answer that was judged correct (all its evidence was judged as a whole).

    An answer without any (a judge added it) is looked for in the passages: `_holding`.  Empty where a one-word answer would be left that
    only other passages hold: training counts such an answer in the supporting ones only, and would take it for absent.
    """
    of = {answer_key(alias): number for number, aliases in enumerate(answers) for alias in aliases}
    named: dict[int, set[str]] = defaultdict(set)  # answer -> its passages
    for pair in (pair for statement in one.statements for pair in statement.annotation.pairs):
        for number in {of[key] for key in map(answer_key, pair.answers) if key in of}:
            named[number].update(pair.passage_ids)
    for vote in one.votes:
        if vote.label == "correct" and answer_key(vote.answer) in of:
            named[of[answer_key(vote.answer)]].update(vote.passage_ids[:1])
    cited = set().union(*named.values())
    for number, aliases in enumerate(answers):
        if not named[number] and not cited & _places(aliases, passages).keys():
            cited |= _holding(aliases, passages)
    for aliases in answers:
        if all(len(alias.split()) == 1 for alias in aliases):
            places = _places(aliases, passages).keys()
            if places and not places & cited:
                return set()
    return cited


def _places(aliases: Sequence[str], passages: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Ids of the passages that hold the answer, with how many passages have this id."""
    return Counter(str(p["id"]) for p in passages if has_answer(str(p["text"]), aliases))


def _holding(aliases: Sequence[str], passages: Sequence[Mapping[str, Any]]) -> set[str]:
    """Passages that support an answer as its words stand there: a word or a number alone may stand anywhere, so it must be in one only."""
    telling = [a for a in aliases if len(tokens := content_words(a)) > 1 and not all(t.isdigit() for t in tokens)]
    if found := _places(telling, passages):
        return set(found)
    found = _places(aliases, passages)
    return set(found) if found.total() == 1 else set()
