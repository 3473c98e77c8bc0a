"""The words of the clustering options, and the controls that cluster a stored run anew."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from core.consolidation import Clustering, Consolidation, Embed, SameAnswer, Unclustered

SAID = {
    "by generator": "Default: verified, or keep under a language model",
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
LABELS = {
    "clustering": "Clustering",
    "embed": "Embed",
    "unclustered": "Unclustered interpretations",
    "same_answer": "Equal answers",
}
CHOICES: dict[str, tuple[str, ...]] = {
    "clustering": get_args(Clustering),
    "embed": get_args(Embed),
    "unclustered": get_args(Unclustered),
    "same_answer": get_args(SameAnswer),
}


def recluster(prefix: str, made_with: Consolidation) -> Consolidation:
    """The clustering to show: the run's own until a person chooses another."""
    values = {}
    for column, (name, choices) in zip(st.columns(len(CHOICES)), CHOICES.items()):
        with column:
            values[name] = st.selectbox(
                LABELS[name],
                choices,
                index=choices.index(getattr(made_with, name)),
                format_func=SAID.__getitem__,
                key=f"{prefix}.recluster.{name}",
                help=HELP[name],
            )
    return Consolidation(**values)
