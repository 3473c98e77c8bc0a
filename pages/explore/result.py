"""A finished prediction: its answers as cards, corrections and downloads, then how it came about (what evidence looks like:
`pages.explore.trace`)."""

from __future__ import annotations

import json
from collections.abc import Set
from datetime import UTC, date, datetime

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import types as t
from core.errors import AmbiscopeError
from core.evaluation.cost import PARTS, calls_of, cost_of, doubts, failures, times_of
from core.text import listed
from core.trace import to_json
from pages.explore import corrections, interpreted, labels, share
from pages.explore.trace import TraceView, bar, draw_evidence, round_trip
from pages.session import shared as app
from pages.ui.formatting import percent, seconds
from pages.ui.markup import changes, escape, named, short
from storage.records.results import Judgment

TIME_CELLS = 40  # block characters of the whole bar


def draw_result(
    place: DeltaGenerator,
    prediction: t.Prediction,
    saved: str,
    prefix: str,
    shared: Set[int] | None = None,
    side: str = "",
) -> None:
    """`saved`: id of the stored prediction, or empty; where two are compared, `shared`: positions of the answers that the other has, too, and
    `side`: which of them this is, for the names of its buttons."""
    with place:
        _headline(prediction)
        judged: dict[int, list[Judgment]] = {}
        if saved:
            try:
                judged = labels.load(saved)
            except AmbiscopeError as error:
                app.show_error(error)
                saved = ""
        wanted = corrections.corrections_of(prefix, judged)
        cards = st.container()
        if interpreted.has_choices(prediction):
            with cards:
                interpreted.draw(prediction, prefix)
            if prediction.answers:
                cards = st.expander("Judge and correct the answers", icon=":material/rule:", expanded=shared is not None)
        with cards:
            for position, answer in enumerate(prediction.answers):
                _card(prediction, position, answer, saved, prefix, wanted, judged.get(position, []), shared, side)
        if not prediction.answers and _finished(prediction) and not interpreted.has_choices(prediction):
            st.info(
                "No answer was found in these passages. Read more passages, rephrase the question, or add an answer yourself."
            )
            corrections.adder(prefix, -1)
        corrections.bar(prefix, prediction, wanted)
        _keep(prediction, saved, prefix, side)
        st.subheader("How the answers were found", divider="gray")
        _costs(prediction)
        view = TraceView(st.container(), prediction.question.text, prefix, shared is not None, prediction.system.name)
        for event in prediction.events:
            view.add(event)
        view.close()


def _finished(prediction: t.Prediction) -> bool:
    """False for a run that an error ended: then the page must not say that nothing was found."""
    return any(isinstance(e, t.Finished) for e in prediction.events)


def _headline(prediction: t.Prediction) -> None:
    count = len(prediction.answers)
    if not count and interpreted.has_choices(prediction):
        st.subheader("No interpretation")
    elif not count and not _finished(prediction):
        st.subheader("The run did not finish")
    else:
        st.subheader(f"{count} answer{'' if count == 1 else 's'}" if count else "No answer")
    info = prediction.system
    facts = [f"**{escape(info.name)}**", f"{len(prediction.passages)} passages of **{escape(info.corpus or 'the question')}**"]
    if prediction.seconds:
        facts.append(seconds(prediction.seconds))
    if prediction.ended:
        facts.append(escape(prediction.ended))
    st.caption(" · ".join(facts))
    calls = calls_of(prediction.events)
    for trouble in filter(None, (failures(calls), doubts(calls))):
        st.warning(escape(trouble), icon=":material/warning:")
    if prediction.question.banned:
        st.caption(f"Excluded: {', '.join(escape(b) for b in prediction.question.banned)}")


def _card(
    prediction: t.Prediction,
    position: int,
    answer: t.Answer,
    saved: str,
    prefix: str,
    wanted: corrections.Corrections,
    judgments: list[Judgment],
    shared: Set[int] | None,
    side: str,
) -> None:
    sided = f"{answer.text}{side}"
    struck = position in wanted.struck
    with st.container(border=True):
        name = f"~~{escape(answer.text)}~~" if struck else f"**{escape(answer.text)}**"
        badges = ":blue-badge[added by a person]" if answer.pinned else f":gray-badge[{percent(answer.probability)}]"
        if shared is not None:
            both = position in shared
            badges += " :green-badge[:material/join_inner: both sides]" if both else " :orange-badge[this side only]"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"{position + 1}\\. {name} {badges}", width="content")
            _evidence(prediction, answer, sided)
        clarification = prediction.clarification_of(answer.text)
        if clarification is not None:
            if clarification.question:
                st.markdown(changes(prediction.question.text, clarification.question))
            elif clarification.label:
                st.markdown(escape(clarification.label))
            round_trip(clarification)
        with st.container(horizontal=True, vertical_alignment="center"):
            if saved:
                labels.controls(saved, position, judgments, side)
            corrections.adder(prefix, position, f"an answer after {sided}")
        if saved:
            labels.below(saved, position, judgments)
        if position in wanted.added:
            st.markdown(f":material/add: **{escape(wanted.added[position])}** :blue-badge[to be added]")


def _evidence(prediction: t.Prediction, answer: t.Answer, name: str) -> None:
    passages = {p.passage.id: p for p in prediction.passages}
    first = next((passages[e.passage_id] for e in answer.evidence if e.passage_id in passages), None)
    if first is None:
        st.caption(":material/link_off: No retrieved passage contains these words.", width="content")
        return
    more = len({e.passage_id for e in answer.evidence}) - 1
    label = f"{escape(short(first.passage.title or first.passage.id, 70))}{f' and {more} more' if more else ''}"
    with st.popover(
        named(label, f"for {name}"),
        icon=":material/menu_book:",
        type="tertiary",
        help="The passage this answer comes from",
    ):
        draw_evidence(answer.evidence, passages)


def _costs(prediction: t.Prediction) -> None:
    """Its time by part, and the calls of a language model with their tokens.  No chart: its scripts would keep the browser busier than the
    models keep the server."""
    parts = times_of(prediction)
    if not parts:
        return
    total, colours = sum(parts.values()), dict(zip(PARTS, ("blue", "green", "violet", "orange", "gray"), strict=True))
    words = " · ".join(f":{colours[part]}[:material/square:] {part} {seconds(value)}" for part, value in parts.items())
    bars = " ".join(f":{colours[part]}[{bar(value / total, TIME_CELLS)}]" for part, value in parts.items())
    st.caption(f"Time: {words}  \n{bars}")
    cost = cost_of(prediction)
    if cost.model_calls:
        tokens = f": {cost.prompt_tokens:,} tokens read, {cost.completion_tokens:,} written" if cost.prompt_tokens else ""
        st.caption(f"{listed(int(cost.model_calls), 'model call')}{tokens}")


def _keep(prediction: t.Prediction, saved: str, prefix: str, side: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            named("Download trace", side),
            data=json.dumps(to_json(prediction), ensure_ascii=False, indent=1),
            file_name=f"ambiscope-{saved or 'unsaved'}.json",
            mime="application/json",
            key=f"{prefix}.download",
            icon=":material/download:",
            on_click="ignore",
        )
        link = f"{(st.context.url or '').split('?')[0].rstrip('/')}/?prediction={saved}" if saved else ""
        today = datetime.now(UTC).date()
        st.download_button(
            named("Markdown", side),
            data=share.markdown(prediction, link, today),
            file_name=f"ambiscope-{saved or 'unsaved'}.md",
            mime="text/markdown",
            key=f"{prefix}.markdown",
            icon=":material/description:",
            on_click="ignore",
        )
        st.download_button(
            named("Card (PNG)", side),
            data=_card_of(prediction, link, today, prefix),
            file_name=f"ambiscope-{saved or 'unsaved'}.png",
            mime="image/png",
            key=f"{prefix}.card",
            icon=":material/image:",
            on_click="ignore",
        )
        if saved:
            st.code(link, language=None, wrap_lines=True, width="content")


def _card_of(prediction: t.Prediction, link: str, day: date, prefix: str) -> bytes:
    """Painted once a session for each result that is shown: the page is drawn again at each click."""
    key = f"{prefix}.card.painted"
    made: tuple[t.Prediction, str, bytes] | None = st.session_state.get(key)
    if made is None or made[:2] != (prediction, link):
        made = st.session_state[key] = (prediction, link, share.card(prediction, link, day))
    return made[2]
