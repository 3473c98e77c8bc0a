"""What diversify-then-verify shows before it answers: the imagined questions and what became of each, and the pruned passages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import types as t
from core.text import listed
from pages.ui.markup import escape, short

TITLE, WHY = 80, 200  # characters shown of each
LISTED, BESIDE = 100, 5  # passages in the list of the pruned ones, and beside a question
OUTCOMES = ("verified", "rejected", "failed", "kept", "pruned", "searched", "nothing found", "waiting")


@dataclass
class Imagined:
    """What is known so far of one imagined question."""

    question: str
    found: tuple[str, ...] | None = None  # ids of the passages that its search found; None before its search
    kept: int | None = None  # how many of these pruning left; None where nothing was pruned
    why: str = ""  # what the kept passages are
    decision: t.QuestionVerified | None = None

    @property
    def outcome(self) -> str:
        """One of OUTCOMES."""
        if self.decision is not None:
            return "failed" if self.decision.failed else "verified" if self.decision.passage_ids else "rejected"
        if self.found is None:
            return "waiting"
        if not self.found:
            return "nothing found"
        return "searched" if self.kept is None else "kept" if self.kept else "pruned"


class ImaginedQuestions:
    """A line for each imagined question, drawn anew when something becomes of it."""

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
        self._counts = box.empty()
        self._lines = [box.empty() for _ in self._all]
        self._show()

    def knows(self, question: str) -> bool:
        return any(i.question == question for i in self._all)

    def searched(self, event: t.PassagesRetrieved) -> None:
        """A search for one of them; one for another question is of passages that all of them share."""
        ids = tuple(p.passage.id for p in event.passages)
        own = [i for i in self._all if i.question == event.query]
        for one in own or [i for i in self._all if i.found is None]:
            one.found = ids
        self._show()

    def pruned(self, event: t.PassagesPruned) -> None:
        """What verification prunes afterwards is told by the verifier."""
        for one in self._all:
            if one.found and one.decision is None:
                one.kept, one.why = len(set(one.found) & set(event.kept)), event.why
        self._show()

    def verified(self, event: t.QuestionVerified) -> None:
        for one in self._all:
            if one.question == event.question:
                one.decision = event
        self._show()

    def close(self) -> None:
        """What waits by now will not be searched: the run was stopped, or it failed."""
        self._show(ended=True)

    def _show(self, ended: bool = False) -> None:
        outcomes = [i.outcome for i in self._all]
        said = [f"{n} {'not searched' if ended and o == 'waiting' else o}" for o in OUTCOMES if (n := outcomes.count(o))]
        self._counts.caption(" · ".join([listed(len(self._all), "question"), *said]))
        for number, (place, one) in enumerate(zip(self._lines, self._all, strict=True), 1):
            with place.container():
                st.markdown(f"{number}\\. {escape(one.question)}")
                st.caption(outcome_markdown(one, self._passages, self._ranks, ended))


class Ranks:
    """The ranks of each passage in all searches of one run."""

    def __init__(self) -> None:
        self._of: dict[str, list[int]] = defaultdict(list)

    def note(self, passages: Iterable[t.RetrievedPassage]) -> None:
        for p in passages:
            self._of[p.passage.id].append(p.rank)

    def of(self, passage_id: str) -> tuple[int, ...]:
        """Rising, each once; () where no search found it."""
        return tuple(sorted(set(self._of.get(passage_id, ()))))


def draw_pruned(
    place: DeltaGenerator, event: t.PassagesPruned, passages: Mapping[str, t.RetrievedPassage], ranks: Ranks
) -> None:
    """Which passages are read no further, and why."""
    total, why = len(event.kept) + len(event.dropped), escape(short(event.why, WHY))
    if not event.dropped:
        place.caption(f":material/filter_alt: None of {listed(total, 'passage')} pruned. Kept: {why}.")
        return
    with place.expander(f"{len(event.dropped)} of {listed(total, 'passage')} pruned", icon=":material/filter_alt:"):
        st.caption(f"Kept: {why}. Pruned because they are not among these:")
        st.markdown("\n".join(f"- {title_with_ranks(i, passages, ranks)}" for i in event.dropped[:LISTED]))
        if len(event.dropped) > LISTED:
            st.caption(f"and {len(event.dropped) - LISTED} more")


def outcome_markdown(one: Imagined, passages: Mapping[str, t.RetrievedPassage], ranks: Ranks, ended: bool = False) -> str:
    """The outcome and what made it, as Markdown."""
    found = listed(len(one.found or ()), "passage")
    match one.outcome:
        case "verified":
            ids = one.decision.passage_ids if one.decision else ()
            more = f" and {len(ids) - BESIDE} more" if len(ids) > BESIDE else ""
            titles = "; ".join(title_with_ranks(i, passages, ranks) for i in ids[:BESIDE])
            return f":green[:material/check_circle: verified]: answered by {titles}{more}"
        case "rejected":
            return ":orange[:material/cancel: rejected]: verification found no passage that answers it"
        case "failed":
            why = one.decision.failed if one.decision else ""
            return f":red[:material/error: failed]: it could not be verified, {escape(short(why, WHY))}"
        case "kept":
            return f":blue[:material/filter_alt: kept]: {one.kept} of its {found} read on"
        case "pruned":
            return f":orange[:material/filter_alt_off: pruned]: {found} found, none of them among {escape(short(one.why, WHY))}"
        case "searched":
            return f":gray[:material/search: searched]: {found} found"
        case "nothing found":
            return ":gray[:material/search_off: nothing found]: the corpus has no passage for it"
        case _:
            return ":gray[not searched]" if ended else ":gray[:material/hourglass_empty: waiting]"


def title_with_ranks(passage_id: str, passages: Mapping[str, t.RetrievedPassage], ranks: Ranks) -> str:
    """Title and rank of a passage; its ranks where several searches found it."""
    found, at = passages.get(passage_id), ranks.of(passage_id)
    name = escape(short((found.passage.title if found else "") or passage_id, TITLE))
    if not at:
        return f"{name} :gray-badge[not retrieved]"
    return f"{name} :gray-badge[rank{'s' if len(at) > 1 else ''} {', '.join(map(str, at))}]"
