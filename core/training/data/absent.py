"""Questions over passages that look right and do not answer them: what a search finds where the corpus has no answer.

An answering model learns from them to give [EOI] at its first step, and the per-passage reader to abstain on hard neighbours: the wrong year, the
wrong person, another product.  SQuAD 2.0's unanswerable questions (Rajpurkar et al. 2018) are the same idea, written by people.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from core.settings import Settings
from core.text import find_spans, mentions
from core.training.data.examples import MultiExample
from core.training.data.mining import Miner

CONTEXT = Settings.top_k  # passages of a question, as many as a system reads by default
MIN_PASSAGES = 2
# a name inside the question (words that begin with a capital, its first word aside), a year, another number
_NAME = re.compile(r"(?<=\s)[A-Z][\w'’.-]*(?:\s+(?:(?:of|the|de|von|van)\s+)?[A-Z][\w'’.-]*)*")
_YEAR = re.compile(r"\b1[0-9]{3}\b|\b20[0-9]{2}\b")
_NUMBER = re.compile(r"\b\d{1,3}(?:\.\d+)?\b")


def absent(e: MultiExample, question: str, passages: Iterable[tuple[str, str]]) -> MultiExample | None:
    """The question over passages that hold no answer of it; None if there are too few."""
    context = tuple(passages)[:CONTEXT]
    return MultiExample(question, context, (), f"{e.source}-absent") if len(context) >= MIN_PASSAGES else None


def without_support(examples: Sequence[MultiExample]) -> list[MultiExample]:
    """Each question over the neighbours of its supporting passages alone, those that mention an answer left out.

    Examples that do not know their supporting passages give nothing.
    """
    out = []
    for e in examples:
        if not e.gold or "supporting" not in e.extra:
            continue
        answers = [a for names in e.gold for a in names]
        others = e.passages[len(e.extra["supporting"]) :]
        out.append(absent(e, e.question, (p for p in others if not mentions(" ".join(p), answers))))
    return [e for e in out if e]


def with_another_name(examples: Sequence[MultiExample], seed: int) -> list[MultiExample]:
    """Each question with a name, a year or a number exchanged for one of another question, over its own passages, none of which mentions that one.

    Of several, one is exchanged at random.  A question without any gives nothing.
    """
    rng = random.Random(f"{seed}-names")
    kinds = (_NAME, _YEAR, _NUMBER)
    pools = [sorted({m.group() for e in examples for m in kind.finditer(e.question)}) for kind in kinds]
    out = []
    for e in examples:
        places = [(m, pool) for kind, pool in zip(kinds, pools) for m in kind.finditer(e.question)]
        if not places or not e.gold:
            continue
        match, pool = rng.choice(places)
        text = " ".join(" ".join(p) for p in e.passages)
        for other in rng.sample(pool, min(len(pool), 8)):
            if not find_spans(text, other) and not find_spans(e.question, other):
                question = e.question[: match.start()] + other + e.question[match.end() :]
                out.append(absent(e, question, e.passages))
                break
    return [e for e in out if e]


def over_other_documents(examples: Sequence[MultiExample], seed: int) -> list[MultiExample]:
    """Each question over the passages of another source that look most like its answer: a question about one product, asked of another one's manual.

    With one source there is nothing to exchange.
    """
    rng = random.Random(f"{seed}-documents")
    by_source: dict[str, list[MultiExample]] = defaultdict(list)
    for e in examples:
        by_source[e.source].append(e)
    miners = {name: Miner(list(dict.fromkeys(p for e in group for p in e.passages))) for name, group in by_source.items()}
    questions_of: dict[str, list[MultiExample]] = defaultdict(list)  # by the source that is asked
    for name, group in by_source.items():
        others = [other for other in miners if other != name]
        for e in group if others else []:
            questions_of[rng.choice(others)].append(e)
    out = []
    for name, group in questions_of.items():
        for e, neighbours in zip(group, miners[name].neighbours([e.question for e in group], 2 * CONTEXT)):
            answers = [a for names in e.gold for a in names]
            out.append(absent(e, e.question, miners[name].without(neighbours, answers, [], CONTEXT)))
    return [e for e in out if e]


def absent_sources(
    annotated: Sequence[MultiExample], multi: Sequence[MultiExample], seed: int
) -> tuple[list[MultiExample], list[MultiExample]]:
    """(of annotated questions, of questions about documentation): two sources, because the second is a tenth of the first and as important."""
    manuals = [e for e in multi if "conditions" in e.extra]
    return (
        [*without_support(annotated), *with_another_name(annotated, seed)],
        [*without_support(manuals), *over_other_documents(manuals, seed)],
    )
