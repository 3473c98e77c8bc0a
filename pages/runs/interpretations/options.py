"""The sidebar's options of `verdict`, and its clustering controls."""

from __future__ import annotations

from typing import Any, get_args

import streamlit as st

from core.consolidation import Clustering, Consolidation, Embed, SameAnswer, Unclustered
from core.systems.verdict import BY_GENERATOR

SAID = {
    BY_GENERATOR: "Default: verified, or keep under a language model",
    "default": "Default",
    "conservative": "Conservative: fewer",
    "question and answer": "Question and answer",
    "question": "Question alone",
    "verified": "Keep if verified",
    "keep": "Keep",
    "drop": "Drop",
    "decides": "One cluster an answer",
    "ignored": "As the embeddings lie",
}
HELP = {
    "clustering": "Conservative asks for more interpretations in a cluster, and keeps near clusters together.",
    "embed": "What is embedded: the disambiguated question with its answer, or the question alone.",
    "unclustered": "What becomes of an interpretation that no other one is like. Verified: a second look at its passage spoke for it.",
    "same_answer": "Whether interpretations with other answers leave a cluster, and those with the same answer join.",
}
CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "clustering": ("Clustering", get_args(Clustering)),
    "embed": ("Embed", get_args(Embed)),
    "unclustered": ("Unclustered interpretations", get_args(Unclustered)),
    "same_answer": ("Equal answers", get_args(SameAnswer)),
}


def controls(prefix: str) -> dict[str, Any]:
    """Options of a run, in the sidebar; what is left at its default is left out, so that the system decides."""
    chosen: dict[str, Any] = {}
    with st.expander("Clustering", icon=":material/bubble_chart:"):
        for name in ("clustering", "embed", "unclustered"):
            label, choices = CHOICES[name]
            choices = (BY_GENERATOR, *choices) if name == "unclustered" else choices
            value = st.selectbox(
                label,
                choices,
                format_func=SAID.__getitem__,
                key=f"{prefix}.verdict.{name}",
                help=HELP[name],
                persist_state="session",
            )
            if value is not None and value != choices[0]:
                chosen[name] = value
    return chosen


def recluster(prefix: str, made_with: Consolidation) -> Consolidation:
    """The clustering to show: the run's own until a person chooses another."""
    values = {}
    for column, (name, (label, choices)) in zip(st.columns(len(CHOICES)), CHOICES.items()):
        with column:
            values[name] = st.selectbox(
                label,
                choices,
                index=choices.index(getattr(made_with, name)),
                format_func=SAID.__getitem__,
                key=f"{prefix}.recluster.{name}",
                help=HELP[name],
            )
    return Consolidation(**values)
