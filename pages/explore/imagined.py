"""What diversify-then-verify shows before it answers: the imagined questions and what became of each, and the pruned passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from streamlit.delta_generator import DeltaGenerator

from core import types as t
from core.text import listed
from pages.ui.markup import escape, short

TITLE_CHARS, WHY_CHARS = 80, 200
MAX_PRUNED, MAX_BESIDE = 100, 5  # passages in the list of the pruned ones, and beside a question
Ranks = Mapping[str, Collection[int]]  # passage id -> its ranks in the searches of one run


@dataclass
class Imagined:
    """What is known so far of one imagined question."""

    question: str
    passage_ids: tuple[str, ...] | None = None  # ids of the passages that its search found; None before its search
    remaining: int | None = None  # how many of these pruning left; None where nothing was pruned
    why: str = ""  # what the kept passages are
    decision: t.QuestionVerified | None = None


def outcome(one: Imagined, passages: Mapping[str, t.RetrievedPassage], ranks: Ranks, ended: bool = False) -> tuple[str, str]:
    """What became of it in a word, and with what made it as Markdown."""
    count, decision = listed(len(one.passage_ids or ()), "passage"), one.decision
    if decision is not None and decision.failed:
        why = escape(short(decision.failed, WHY_CHARS))
        return "failed", f":red[:material/error: failed]: it could not be verified, {why}"
    if decision is not None and decision.passage_ids:
        ids = decision.passage_ids
        more = f" and {len(ids) - MAX_BESIDE} more" if len(ids) > MAX_BESIDE else ""
        titles = "; ".join(title_with_ranks(i, passages, ranks) for i in ids[:MAX_BESIDE])
        return "verified", f":green[:material/check_circle: verified]: answered by {titles}{more}"
    if decision is not None:
        return "rejected", ":orange[:material/cancel: rejected]: verification found no passage that answers it"
    if one.passage_ids is None:
        return ("not searched", ":gray[not searched]") if ended else ("waiting", ":gray[:material/hourglass_empty: waiting]")
    if not one.passage_ids:
        return "nothing found", ":gray[:material/search_off: nothing found]: the corpus has no passage for it"
    if one.remaining is None:
        return "searched", f":gray[:material/search: searched]: {count} found"
    if one.remaining:
        return "kept", f":blue[:material/filter_alt: kept]: {one.remaining} of its {count} read on"
    why = escape(short(one.why, WHY_CHARS))
    return "pruned", f":orange[:material/filter_alt_off: pruned]: {count} found, none of them among {why}"


class ImaginedQuestions:
    """A line for each imagined question, drawn again when something becomes of it."""

    def __init__(
        self, place: DeltaGenerator, questions: Sequence[str], passages: Mapping[str, t.RetrievedPassage], ranks: Ranks
    ) -> None:
        """`passages` and `ranks` are the trace's; they grow."""
        self._passages, self._ranks = passages, ranks
        self._all = [Imagined(q) for q in questions]
        box = place.container(border=True)
        box.markdown(
            "**Imagined questions** :gray[what the language model thinks the question may mean, before it reads any passage]"
        )
        self._counts, self._lines = box.empty(), box.empty()
        self.draw()

    def knows(self, question: str) -> bool:
        return any(i.question == question for i in self._all)

    def searched(self, event: t.PassagesRetrieved) -> None:
        """A search for one of them; one for another question is of passages that all of them share."""
        ids = tuple(p.passage.id for p in event.passages)
        own = [i for i in self._all if i.question == event.query]
        for one in own or [i for i in self._all if i.passage_ids is None]:
            one.passage_ids = ids
        self.draw()

    def pruned(self, event: t.PassagesPruned) -> None:
        """What verification prunes afterwards is told by the verifier."""
        for one in self._all:
            if one.passage_ids and one.decision is None:
                one.remaining, one.why = len(set(one.passage_ids) & set(event.kept)), event.why
        self.draw()

    def verified(self, event: t.QuestionVerified) -> None:
        for one in self._all:
            if one.question == event.question:
                one.decision = event
        self.draw()

    def draw(self, ended: bool = False) -> None:
        """`ended`: what waits by now will not be searched, as the run was stopped, or it failed."""
        outcomes = [outcome(i, self._passages, self._ranks, ended) for i in self._all]
        counts = [f"{n} {name}" for name, n in Counter(name for name, _ in outcomes).items()]
        self._counts.caption(" · ".join([listed(len(self._all), "question"), *counts]))
        lines = (f"{n}. {escape(i.question)}  \n   {words}" for n, (i, (_, words)) in enumerate(zip(self._all, outcomes), 1))
        self._lines.markdown("\n".join(lines))


def draw_pruned(
    place: DeltaGenerator, event: t.PassagesPruned, passages: Mapping[str, t.RetrievedPassage], ranks: Ranks
) -> None:
    """Which passages are read no further, and why."""
    total, why = len(event.kept) + len(event.dropped), escape(short(event.why, WHY_CHARS))
    if not event.dropped:
        place.caption(f":material/filter_alt: None of {listed(total, 'passage')} pruned. Kept: {why}.")
        return
    box = place.expander(f"{len(event.dropped)} of {listed(total, 'passage')} pruned", icon=":material/filter_alt:")
    box.caption(f"Kept: {why}. Pruned because they are not among these:")
    box.markdown("\n".join(f"- {title_with_ranks(i, passages, ranks)}" for i in event.dropped[:MAX_PRUNED]))
    if len(event.dropped) > MAX_PRUNED:
        box.caption(f"and {len(event.dropped) - MAX_PRUNED} more")


def title_with_ranks(passage_id: str, passages: Mapping[str, t.RetrievedPassage], ranks: Ranks) -> str:
    """Title and rank of a passage; its ranks where several searches found it."""
    retrieved, at = passages.get(passage_id), sorted(ranks.get(passage_id, ()))
    name = escape(short((retrieved.passage.title if retrieved else "") or passage_id, TITLE_CHARS))
    if not at:
        return f"{name} :gray-badge[not retrieved]"
    return f"{name} :gray-badge[rank{'s' if len(at) > 1 else ''} {', '.join(map(str, at))}]"
