"""Documents that disagree: their claims, with dates."""

from __future__ import annotations

import streamlit as st

from core import types as t
from core.disambiguation.conflicts import Claim, Conflict
from core.text import find_spans, listed
from pages.ui.markup import around, escape, short

MAX_CLAIMS = 6
NAME_CHARS, QUOTED_CHARS = 60, 90


def draw(conflict: Conflict, prediction: t.Prediction, prefix: str) -> None:
    """A box above answers that contradict each other."""
    position = next(i for i, a in enumerate(prediction.answers) if a.text == conflict.answers[0])
    with st.container(border=True, key=f"{prefix}.conflict.{position}", gap="xsmall"):
        st.markdown(":material/compare_arrows: **These documents disagree**")
        for claim in conflict.claims[:MAX_CLAIMS]:
            st.markdown(_claim(claim))
        if (more := len(conflict.claims) - MAX_CLAIMS) > 0:
            st.caption(f"and {listed(more, 'more passage')}")


def _claim(claim: Claim) -> str:
    source = escape(short(claim.title or f"passage {claim.passage_id}", NAME_CHARS))
    dates = ", ".join(d for d in claim.dates if d not in claim.title)
    quote = around(claim.sentence, find_spans(claim.sentence, claim.answer), QUOTED_CHARS)
    return f"- **{escape(claim.answer)}**, says {source}{f' ({escape(dates)})' if dates else ''}: {quote}"
