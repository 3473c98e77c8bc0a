"""The three papers: their worked examples, to ask with one click, and their tables beside our runs."""

from __future__ import annotations

import streamlit as st

from core.evaluation.published import examples
from core.systems import choice_of
from pages.papers import tables
from pages.session import run_source, shared
from pages.session.systems import ready_systems
from pages.session.to_explore import open_explore
from pages.ui.markup import escape, full_label, published_answers

PAPERS = {
    "AmbigPrompt": "Sun et al. 2023, Answering Ambiguous Questions via Iterative Prompting: answers one at a time, each prompted with the earlier ones.",
    "AmbigQA": "Min et al. 2020, AmbigQA: Answering Ambiguous Open-domain Questions: the task, its data and its metrics.",
    "VerDICt": "Lee et al. 2025, Agentic Verification for Ambiguous Query Disambiguation: meanings that the corpus can answer, each with its passage.",
}


def draw_examples(paper: str) -> None:
    names = ready_systems(shared.systems(), shared.settings().system)
    system = str(st.selectbox("System that answers", names, key="papers.system", format_func=choice_of, width=420))
    for example in (e for e in examples() if e.extra["paper"] == paper):
        with st.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{escape(example.question)}** :gray-badge[{escape(example.extra['where'])}]", width="stretch")
                if st.button(full_label("Ask", example.question), key=f"papers.ask.{example.id}", icon=":material/search:"):
                    open_explore(example.question, passages=example.passages, system=system)
            st.caption(published_answers(example))
            with st.expander(full_label("Passages, in our own words", example.question)):
                for passage in example.passages or ():
                    st.markdown(f"**{escape(passage.title)}.** {escape(passage.text)}")


st.header("Papers")
shared.store().allow("see evaluations")
tables.watch()
run_source.choose()
paper = str(st.segmented_control("Paper", list(PAPERS), default=next(iter(PAPERS)), required=True, key="papers.paper"))
st.caption(escape(PAPERS[paper]))
st.subheader("Worked examples")
draw_examples(paper)
st.subheader("Tables")
tables.draw(paper)
