"""The grid of passages of a system that interprets each one: a cell each, filled as the passage is read."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import types as t
from pages.ui.formatting import percent
from pages.ui.markup import escape, short

COLUMNS, NARROW = 4, 2
ANSWER_CHARS, QUESTION_CHARS, WHY_CHARS = 60, 110, 150


def outcome(interpretation: t.Interpretation) -> str:
    """interpreted, abstained or failed."""
    if interpretation.failed:
        return "failed"
    return "abstained" if interpretation.abstained or not interpretation.answer else "interpreted"


class PassageGrid:
    """`fill` puts what a passage gave into its cell; a second interpretation of a passage stands below the first."""

    def __init__(self, place: DeltaGenerator, passages: Sequence[t.RetrievedPassage], narrow: bool = False) -> None:
        self._found = {p.passage.id: p for p in passages}
        self._results: dict[str, list[t.Interpretation]] = {}
        self._counts = place.empty()
        box = place.container()
        width = NARROW if narrow else COLUMNS
        self._cells: dict[str, DeltaGenerator] = {}
        ids = list(self._found)
        for first in range(0, len(ids), width):
            for column, passage_id in zip(box.columns(width), ids[first : first + width]):
                self._cells[passage_id] = column.empty()
                self._draw(passage_id)
        self._count()

    def knows(self, passage_id: str) -> bool:
        return passage_id in self._cells

    def fill(self, interpretation: t.Interpretation) -> None:
        self._results.setdefault(interpretation.passage_id, []).append(interpretation)
        self._draw(interpretation.passage_id)
        self._count()

    def close(self) -> None:
        """What is unread by now will stay so: the run was stopped."""
        for passage_id in self._cells:
            if passage_id not in self._results:
                self._draw(passage_id, ended=True)

    def _count(self) -> None:
        kinds = [outcome(i) for some in self._results.values() for i in some]
        parts = [f"{len(self._results)} of {len(self._cells)} passages read"]
        parts += [f"{n} {kind}" for kind in ("interpreted", "abstained", "failed") if (n := kinds.count(kind))]
        self._counts.caption(" · ".join(parts))

    def _draw(self, passage_id: str, ended: bool = False) -> None:
        retrieved = self._found[passage_id]
        with self._cells[passage_id].container(border=True):
            st.markdown(f"{retrieved.rank}\\. {escape(short(retrieved.passage.title or passage_id, 50))}")
            for one in self._results.get(passage_id, ()):
                kind = outcome(one)
                if kind == "interpreted":
                    sure = f" :gray-badge[{percent(one.probability)}]" if one.probability else ""
                    st.markdown(f":green[:material/check_circle:] **{escape(short(one.answer, ANSWER_CHARS))}**{sure}")
                    st.caption(escape(short(one.question, QUESTION_CHARS)))
                elif kind == "abstained":
                    st.markdown(":gray[:material/do_not_disturb_on: abstained]")
                    st.caption(escape(short(one.abstained or "it gave no answer", WHY_CHARS)))
                else:
                    st.markdown(":red[:material/error: failed]")
                    st.caption(escape(short(one.failed, WHY_CHARS)))
            if passage_id not in self._results:
                st.markdown(":gray[not read]" if ended else ":gray[:material/hourglass_empty: waiting]")
