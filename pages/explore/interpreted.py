"""The result of a run that clustered interpretations: the final ones as choices, the map of all, the nearest passages where there is none."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
import streamlit as st

from core import types as t
from core.disambiguation.consolidation import (
    Clustering,
    Consolidated,
    Consolidation,
    EmbeddedText,
    SameAnswer,
    Unclustered,
    consolidate,
    text_of,
)
from core.errors import AmbiscopeError, InputError
from core.systems.base.options import Options
from core.systems.base.system import check_question
from core.text import answer_key
from pages.explore import live
from pages.explore.corrections import MAX_CHARS, options_of
from pages.explore.options import HELP, LABELS, VALUE_LABELS
from pages.explore.runner import Plan
from pages.explore.trace import draw_found
from pages.session import shared
from pages.session.actions import action
from pages.ui import charts
from pages.ui.formatting import percent
from pages.ui.markup import around, changes, escape, named, short

NEAREST = 5  # passages shown where no interpretation was found
RECLUSTERING: dict[str, tuple[str, ...]] = {
    "clustering": get_args(Clustering),
    "embed": get_args(EmbeddedText),
    "unclustered": get_args(Unclustered),
    "same_answer": get_args(SameAnswer),
}
MAX_ONE_COLUMN = 6  # interpretations above which their cards stand in two columns
MAX_NAMED = 30  # interpretations of a map in which the kept ones are named
WIDTH = 200  # characters of a passage around its citation


def has_choices(prediction: t.Prediction) -> bool:
    """Whether a run ended in clustered interpretations; asked of what is stored, as its system may be gone."""
    return (
        any(isinstance(e, t.InterpretationsChosen) for e in prediction.events) and "consolidation" in prediction.system.settings
    )


def proposed(prediction: t.Prediction) -> list[t.Interpretation]:
    """What passages proposed, in the order that the map counts."""
    interpretations = (e.interpretation for e in prediction.events if isinstance(e, t.InterpretationProposed))
    return [i for i in interpretations if i.answer and not i.abstained and not i.failed]


def made_with(info: t.SystemInfo) -> Consolidation:
    """The clustering of a stored run; the default where it was stored by another version."""
    stored = info.settings.get("consolidation")
    known = {f.name for f in dataclasses.fields(Consolidation)}
    try:
        return Consolidation(**{k: v for k, v in stored.items() if k in known}) if isinstance(stored, dict) else Consolidation()
    except InputError:
        return Consolidation()


def reclustered(interpretations: Sequence[t.Interpretation], how: Consolidation) -> Consolidated:
    """Clusters anew, from embeddings that the encoder remembers; nothing is read.  Raises CheckpointError."""
    vectors = shared.engine().embed([text_of(i, how.embed) for i in interpretations])
    return consolidate(interpretations, np.asarray(vectors, np.float32), how)


def recluster(prefix: str, made_with: Consolidation) -> Consolidation:
    """The clustering to show: the run's own until a person chooses another."""
    values = {}
    for column, (name, choices) in zip(st.columns(len(RECLUSTERING)), RECLUSTERING.items()):
        with column:
            values[name] = st.selectbox(
                LABELS[name],
                choices,
                index=choices.index(getattr(made_with, name)),
                format_func=VALUE_LABELS.__getitem__,
                key=f"{prefix}.recluster.{name}",
                help=HELP[name],
            )
    return Consolidation(**values)


@dataclasses.dataclass
class Rejections:
    """What a person said of the interpretations of one prediction, by answer and question."""

    rejected: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    none: bool = False


def rejections_of(prefix: str) -> Rejections:
    rejections: Rejections = st.session_state.setdefault(f"{prefix}.choices", Rejections())
    return rejections


def draw(prediction: t.Prediction, prefix: str) -> None:
    """Everything above the answers' cards and the trace."""
    interpretations, how = proposed(prediction), made_with(prediction.system)
    why = next((e.why for e in prediction.events if isinstance(e, t.InterpretationsChosen)), "")
    if not interpretations:
        _nothing(prediction, why)
        return
    place = st.container()
    with st.expander("Map of the interpretations", icon=":material/bubble_chart:", expanded=len(interpretations) > 1):
        clustering = recluster(prefix, how)
        placed = next((e.placed for e in prediction.events if isinstance(e, t.InterpretationsClustered)), ())
        final = list(prediction.interpretations)
        if clustering != how or len(placed) != len(interpretations):
            try:
                result = reclustered(interpretations, clustering)
            except AmbiscopeError as error:
                shared.show_error(error)
            else:
                placed, final = result.placed, _worded([interpretations[i] for i in result.kept], final)
                st.caption("Clustered again from the same interpretations. The stored prediction is unchanged.")
        clusters = {p.cluster for p in placed} - {-1}
        alone = sum(p.cluster < 0 for p in placed)
        counts = f"{len(interpretations)} interpretations, {len(clusters)} clusters, {alone} unclustered."
        charts.show(
            interpretation_map(placed, interpretations),
            f"{prefix}.map",
            f"Map: {counts} The list of passages below has the same.",
        )
        st.caption(
            f"{counts} Points close together have similar questions and answers; "
            "stars mark the ones kept. The axes are the first two principal components and have no meaning of their own."
        )
    with place:
        _interpretations(prediction, final, why, prefix)


def interpretation_map(placed: Sequence[t.InterpretationPlaced], interpretations: Sequence[t.Interpretation]) -> go.Figure:
    """A point for each, coloured by cluster, the kept ones named.  `placed[i].index` counts `interpretations`: those that passages proposed,
    in the order of reading."""
    frame = pd.DataFrame(
        {
            "x": p.x,
            "y": p.y,
            "cluster": "unclustered" if p.cluster < 0 else f"cluster {p.cluster + 1}",
            "symbol": "kept" if p.medoid else f"not kept{p.cluster // len(charts.PALETTE) or ''}",
            "answer": interpretations[p.index].answer,
            "question": short(interpretations[p.index].question, 120),
            "name": short(interpretations[p.index].answer, 28) if p.medoid else "",
        }
        for p in sorted(placed, key=lambda p: (p.cluster < 0, p.cluster))
    )
    bare = {"showticklabels": False, "title": None, "zeroline": False}
    chart_figure = charts.figure(
        px.scatter,
        frame,
        x="x",
        y="y",
        color="cluster",
        color_discrete_map={"unclustered": charts.NEUTRAL},
        symbol="symbol",
        symbol_map={"kept": "star"},
        text="name" if len(placed) <= MAX_NAMED else None,
        hover_name="answer",
        hover_data={"question": True, "x": False, "y": False, "name": False, "symbol": False},
        layout={"xaxis": bare, "yaxis": bare},
        chars=120,
    )
    chart_figure.update_traces(textposition="top center", marker_size=12)
    return chart_figure


def _worded(kept: list[t.Interpretation], final: Sequence[t.Interpretation]) -> list[t.Interpretation]:
    """The final wording of those that the run itself ended with; the others as their passages proposed them."""
    worded = {(i.passage_id, i.answer): i for i in final}
    return [worded.get((i.passage_id, i.answer), i) for i in kept]


def _interpretations(prediction: t.Prediction, final: Sequence[t.Interpretation], why: str, prefix: str) -> None:
    rejections = rejections_of(prefix)
    if not final:
        st.info(f"No interpretation is left: {escape(why)}." if why else "No interpretation is left.")
    elif len(final) == 1:
        st.markdown("The corpus answers **one meaning** of this question.")
    else:
        st.markdown("**Which of these do you mean?**")
    places = st.columns(2) if len(final) > MAX_ONE_COLUMN else [st.container()]
    for number, interpretation in enumerate(final):
        with places[number % len(places)]:
            _card(prediction, interpretation, number, prefix, rejections)
    rejected = [i for i in final if _key(i) in rejections.rejected]
    with st.container(horizontal=True, vertical_alignment="center"):
        if final:
            st.button(
                "None of these" if not rejections.none else "Undo",
                key=f"{prefix}.none",
                icon=":material/block:" if not rejections.none else ":material/undo:",
                on_click=_none,
                args=(prefix,),
            )
        if rejected or rejections.none or not final:
            banned = [i.answer for i in (final if rejections.none else rejected)]
            st.button(
                "Search further",
                key=f"{prefix}.further",
                type="primary",
                icon=":material/travel_explore:",
                on_click=_further,
                args=(prediction, banned),
                help="Reads twice as many passages and excludes the rejected answers.",
            )
    if rejections.none:
        st.info("None of these is what you mean. Search further, or rephrase your question above.")


def _card(prediction: t.Prediction, one: t.Interpretation, number: int, prefix: str, rejections: Rejections) -> None:
    gone = rejections.none or _key(one) in rejections.rejected
    with st.container(border=True):
        answer = f"~~{escape(one.answer)}~~" if gone else f"**{escape(one.answer)}**"
        badges = f":gray-badge[{percent(one.probability)}]" if one.probability else ""
        st.markdown(f"{number + 1}\\. {changes(prediction.question.text, one.question)}")
        st.markdown(f"{answer} {badges}")
        _citation(prediction, one)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                named("Ask this", one.question),
                key=f"{prefix}.pick.{number}",
                icon=":material/ads_click:",
                on_click=ask_on,
                args=(prediction, one.question),
                disabled=gone,
                help="Asks this question instead",
            )
            with st.popover(named("Edit", one.question), icon=":material/edit:", disabled=gone):
                st.text_input(
                    "The question you mean",
                    value=one.question,
                    key=f"{prefix}.edit.{number}.{_mark(one)}",
                    max_chars=4 * MAX_CHARS,
                )
                st.button(
                    "Ask the edited question",
                    key=f"{prefix}.edited.{number}",
                    on_click=_ask_edited,
                    args=(prediction, f"{prefix}.edit.{number}.{_mark(one)}"),
                )
            st.button(
                named("Restore" if _key(one) in rejections.rejected else "Reject", one.question),
                key=f"{prefix}.reject.{number}",
                icon=":material/undo:" if _key(one) in rejections.rejected else ":material/thumb_down:",
                on_click=_reject,
                args=(prefix, _key(one)),
                disabled=rejections.none,
            )


def _citation(prediction: t.Prediction, one: t.Interpretation) -> None:
    """The passage's words around the answer, marked."""
    passage = prediction.passage(one.passage_id)
    if passage is None:
        st.caption(":material/link_off: No known passage supports this.")
        return
    spans = [(one.evidence.start, one.evidence.end)] if one.evidence and one.evidence.passage_id == one.passage_id else []
    st.markdown(f":material/format_quote: {around(passage.text, spans, WIDTH)}")
    st.caption(f"{escape(short(passage.title or passage.id, 90))}, passage {escape(passage.id)}")


def _nothing(prediction: t.Prediction, why: str) -> None:
    st.info(f"{escape(why[:1].upper() + why[1:])}." if why else "No passage answers any meaning of this question.")
    if prediction.passages:
        st.markdown("**The nearest passages**")
        draw_found(prediction.passages[:NEAREST])


def _key(one: t.Interpretation) -> tuple[str, str]:
    return answer_key(one.answer), one.passage_id


def _mark(one: t.Interpretation) -> str:
    """Part of a widget's key: another interpretation at the same place has another edit box."""
    return f"{one.passage_id}.{one.evidence.start if one.evidence else 0}"


# ---------------------------------------------------------------- callbacks


@action("ask questions")
def ask_on(prediction: t.Prediction, text: str) -> None:
    """Starts a run with a picked question, by the same system and options, over the same passages where the question brought them."""
    info = prediction.system
    question = check_question(t.Question(text, passages=prediction.question.passages), shared.settings().max_question_chars)
    st.session_state["explore.question"] = question.text
    live.start([Plan(question, info.name, info.corpus, options_of(info))])


def _ask_edited(prediction: t.Prediction, key: str) -> None:
    ask_on(prediction, str(st.session_state.get(key, "")))


def _reject(prefix: str, key: tuple[str, str]) -> None:
    rejections_of(prefix).rejected ^= {key}


def _none(prefix: str) -> None:
    rejections = rejections_of(prefix)
    rejections.none = not rejections.none


@action("ask questions")
def _further(prediction: t.Prediction, answers: Sequence[str]) -> None:
    """Twice the passages; the rejected answers are banned beside those that were."""
    options: Options = options_of(prediction.system)
    size = shared.passages_of(prediction.system.corpus) or 200
    changed: dict[str, Any] = {"top_k": min(200, size, 2 * options.passages)}
    banned = tuple(dict.fromkeys([*prediction.question.banned, *answers]))
    question = dataclasses.replace(prediction.question, banned=banned)
    live.start([Plan(question, prediction.system.name, prediction.system.corpus, dataclasses.replace(options, **changed))])
