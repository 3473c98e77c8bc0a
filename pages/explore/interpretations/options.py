"""The words of the clustering options, and the controls that cluster a stored run anew."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from core.disambiguation.consolidation import Clustering, Consolidation, EmbeddedText, SameAnswer, Unclustered

VALUE_LABELS = {
    "by generator": "Default",
    "default": "Default",
    "conservative": "Conservative: fewer clusters",
    "question and answer": "Question and answer",
    "question": "Question only",
    "verified": "Keep if verified",
    "keep": "Keep",
    "drop": "Drop",
    "decides": "One cluster per answer",
    "ignored": "By embeddings only",
}
HELP = {
    "additions": "Ours, not of a paper: a reranker judges the candidates anew, and may ask a verifier about each.",
    "clustering": "Conservative needs more interpretations per cluster, and merges clusters that are close together.",
    "embed": "What to embed: the disambiguated question with its answer, or the question only.",
    "unclustered": "What happens to an interpretation unlike any other. Keep if verified: only when a second look at its passage supports it. "
    "Default: keep if verified, or keep all with a language model.",
    "same_answer": "Whether interpretations with the same answer always form one cluster, or embeddings alone decide.",
}
LABELS = {
    "clustering": "Clustering",
    "embed": "Embed",
    "unclustered": "Unclustered interpretations",
    "same_answer": "Equal answers",
}
CHOICES: dict[str, tuple[str, ...]] = {
    "clustering": get_args(Clustering),
    "embed": get_args(EmbeddedText),
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
                format_func=VALUE_LABELS.__getitem__,
                key=f"{prefix}.recluster.{name}",
                help=HELP[name],
            )
    return Consolidation(**values)
