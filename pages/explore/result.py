"""A finished prediction: a row for each answer that opens into its evidence, then corrections, sharing, and the trace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime

import streamlit as st

from core import types as t
from core.disambiguation.conflicts import Conflict, PassageClaim
from core.disambiguation.outcome import WHICH_ONE, Meaning, result_of
from core.errors import AmbiscopeError
from core.evaluation.cost import call_problems, cost_of, times_of
from core.evaluation.how_to import is_how_to, section
from core.systems import entry_of
from core.text import find_spans, listed
from core.trace import to_json
from pages.explore import corrections, interpreted, labels, paper_answers, share, to_project
from pages.explore.rows import distinction, meanings, row
from pages.session import shared as app
from pages.ui.copying import copy_link
from pages.ui.formatting import seconds
from pages.ui.markup import around, changes, distinct, escape, full_label, short
from pages.ui.trace import draw_evidence, draw_passages, draw_trace, round_trip
from storage.records.results import Judgment

MEANING_PARAMETER = "meaning"  # of the address
CHIP_CHARS = 40
MAX_CLAIMS = 6  # of documents that disagree
SOURCE_CHARS, QUOTED_CHARS = 60, 90
NEAREST_PASSAGES = 3  # passages shown where no answer was found


def draw_result(
    prediction: t.Prediction, saved: str, prefix: str, link: str, shared: Set[int] | None = None, side: str = ""
) -> None:
    """`saved`: id of the stored prediction, or empty; `link`: the query of its address; where two are compared, `shared`: positions of the
    answers that the other has, too, and `side`: suffix for the accessible names of its buttons."""
    result = result_of(prediction)
    judged: dict[int, list[Judgment]] = {}
    if saved:
        try:
            judged = labels.load(saved)
        except AmbiscopeError as error:
            app.show_error(error)
            saved = ""
    edits = corrections.corrections_of(prefix, judged)
    options = result.clarification.options if result.clarification else ()
    remaining = [m for m in options if m.answer not in {prediction.answers[p].text for p in edits.struck}]
    questions = meanings(prediction, (m.answer for m in remaining))
    with st.container(horizontal=True, vertical_alignment="center"):
        _headline(prediction, edits, bool(questions))
        meaning = _meaning([m for m in remaining if m.answer in questions], prediction, questions, prefix, side)
    _facts(prediction)
    paper_answers.draw(prediction)
    for conflict in result.conflicts:
        if not meaning or meaning & set(conflict.answers):
            _conflict(conflict, prediction, prefix)
    with st.container(key=f"answers.{prefix}", gap="xsmall"):
        for position, answer in _in_order(prediction):
            if meaning and answer.text not in meaning:
                continue
            for text, is_code in section(prediction, answer):
                st.code(text, language=None) if is_code else st.markdown(escape(text))
            badge = "" if shared is None else "· both" if position in shared else "· only here"
            label = row(prediction, answer, position in edits.struck, badge)
            with st.expander(full_label(label, side), key=f"{prefix}.open.{position}", expanded=bool(meaning)):
                _details(prediction, position, answer, saved, prefix, judged.get(position, []), side)
        for text in corrections.new_answers(prediction, edits):
            st.markdown(f"**{escape(text)}** :small[added by you; kept when you continue]")
    if not prediction.answers and prediction.ended:
        st.info("No answer was found. Read more passages, rephrase the question, or add an answer yourself.")
        draw_passages(prediction.passages[:NEAREST_PASSAGES])
    _actions(prediction, saved, prefix, edits, side, link)
    corrections.bar(prefix, saved, prediction, edits)
    interpreted.draw(prediction, prefix)
    with st.container(gap="xsmall"):
        _costs(prediction)
        draw_trace(prediction)


def _in_order(prediction: t.Prediction) -> list[tuple[int, t.Answer]]:
    """The answers with their positions, likeliest first.  The steps of a how-to answer keep the order of their documents."""

    def place(answer: t.Answer) -> tuple[int, int]:
        places = ((p.rank, e.start) for e in answer.evidence for p in prediction.passages if p.passage.id == e.passage_id)
        return min(places, default=(len(prediction.passages) + 1, 0))

    if is_how_to(prediction.question.text):
        return sorted(enumerate(prediction.answers), key=lambda pair: place(pair[1]))
    return sorted(enumerate(prediction.answers), key=lambda pair: -pair[1].probability)


def _meaning(
    options: Sequence[Meaning], prediction: t.Prediction, questions: Mapping[str, str], prefix: str, side: str
) -> Set[str]:
    """The meanings as chips, the likeliest answer first as in the rows below.  Returns the answers of the chosen one, which the address
    names: only these are drawn; empty for all.  `questions`: of the answers."""
    if not options:
        return frozenset()
    answers = {a.text: a for a in prediction.answers}
    ordered = sorted(options, key=lambda m: -answers[m.answer].probability)
    names = {m.answer: distinction(prediction, answers[m.answer]) or questions[m.answer] for m in ordered}
    chips = distinct(names, CHIP_CHARS)
    key, linked = f"{prefix}.meaning", st.query_params.get(MEANING_PARAMETER, "")
    chosen = st.pills(
        full_label(WHICH_ONE, side),
        list(chips),
        default=linked if linked in chips and key not in st.session_state else None,
        format_func=lambda answer: escape(chips[answer]),
        key=key,
        label_visibility="collapsed",
        on_change=_choose_meaning,
        args=(key, questions),
    )
    return {answer for m in ordered if m.answer == chosen for answer in (m.answer, *m.others)}


def _choose_meaning(key: str, questions: Mapping[str, str]) -> None:
    """Callback: puts the chosen meaning's question into the field, ready to be asked.  `questions`: by answer."""
    if answer := st.session_state.get(key):
        st.query_params[MEANING_PARAMETER] = answer
        st.session_state["explore.question"] = questions[answer]
    else:
        st.query_params.pop(MEANING_PARAMETER, None)


def _headline(prediction: t.Prediction, edits: corrections.PredictionCorrections, asks_back: bool) -> None:
    """The number of answers after corrections."""
    count = len(prediction.answers) - len(edits.struck) + len(corrections.new_answers(prediction, edits))
    if not prediction.answers and not count:
        st.subheader("No answer" if prediction.ended else "The run did not finish", anchor=False)
    else:
        title = f"{listed(count, 'answer')}{': which of these do you mean?' if asks_back else ''}"
        st.subheader(title, anchor=False, width="content")


def _conflict(conflict: Conflict, prediction: t.Prediction, prefix: str) -> None:
    """A box above answers that contradict each other: the claims of their documents, with dates."""
    position = next(i for i, a in enumerate(prediction.answers) if a.text == conflict.answers[0])
    with st.container(border=True, key=f"{prefix}.conflict.{position}", gap="xsmall"):
        st.markdown(":material/compare_arrows: **These documents disagree**")
        for claim in conflict.claims[:MAX_CLAIMS]:
            st.markdown(_claim(claim))
        if (more := len(conflict.claims) - MAX_CLAIMS) > 0:
            st.caption(f"and {listed(more, 'more passage')}")


def _claim(claim: PassageClaim) -> str:
    source = escape(short(claim.title or f"passage {claim.passage_id}", SOURCE_CHARS))
    dates = ", ".join(d for d in claim.dates if d not in claim.title)
    quote = around(claim.sentence, find_spans(claim.sentence, claim.answer), QUOTED_CHARS)
    return f"- **{escape(claim.answer)}**, says {source}{f' ({escape(dates)})' if dates else ''}: {quote}"


def _facts(prediction: t.Prediction) -> None:
    info = prediction.system
    facts = [
        f"**{escape(info.name)}**{f', {escape(title)}' if (title := entry_of(info.name).title) else ''}",
        f"{listed(len(prediction.passages), 'passage')} of **{escape(info.corpus or 'the question')}**",
    ]
    facts += [seconds(prediction.seconds)] if prediction.seconds else []
    facts += [escape(prediction.ended)] if prediction.ended else []
    facts += [f"excluded: {', '.join(map(escape, prediction.question.banned))}"] if prediction.question.banned else []
    st.caption(" · ".join(facts))
    for problem in call_problems(prediction.events):
        st.warning(escape(problem), icon=":material/warning:")


def _details(
    prediction: t.Prediction,
    position: int,
    answer: t.Answer,
    saved: str,
    prefix: str,
    judgments: list[Judgment],
    side: str,
) -> None:
    """The quotation with the answer marked, the rewritten questions with their buttons, the labels."""
    draw_evidence(answer.evidence, {p.passage.id: p for p in prediction.passages}, app.readable_corpus(prediction))
    questions = share.questions_of(prediction, answer)
    for number, question in enumerate(questions or [prediction.question.text]):
        if questions:
            st.markdown(f":material/edit_note: {changes(prediction.question.text, question)}")
        if questions and number == 0 and (clarification := prediction.clarification_of(answer.text)):
            round_trip(clarification)
        with st.container(horizontal=True, vertical_alignment="center"):
            name = f"{answer.text}, {question}{side}"
            _question_buttons(prediction, question, f"{prefix}.{position}.{number}", name, bool(questions))
            if saved and number == 0:
                labels.controls(saved, position, judgments, side)
    if saved:
        labels.below(judgments)


def _question_buttons(prediction: t.Prediction, question: str, key: str, name: str, is_rewritten: bool) -> None:
    if is_rewritten:
        st.button(
            full_label("Ask this", name),
            key=f"{key}.ask",
            icon=":material/ads_click:",
            on_click=corrections.ask_instead,
            args=(prediction, question),
            help="Asks this question instead",
        )
    with st.popover(full_label("Edit", name), icon=":material/edit:"):
        st.text_input("The question you mean", value=question, key=f"{key}.edit", max_chars=4 * corrections.MAX_CHARS)
        st.button(
            "Ask the edited question", key=f"{key}.edited", on_click=corrections.ask_edited, args=(prediction, f"{key}.edit")
        )


def _actions(
    prediction: t.Prediction, saved: str, prefix: str, edits: corrections.PredictionCorrections, side: str, link: str
) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        if prediction.answers:
            st.button(
                full_label("None of these", side),
                key=f"{prefix}.none",
                icon=":material/travel_explore:",
                on_click=corrections.search_further,
                args=(prediction,),
                help="Excludes these answers and reads twice as many passages.",
            )
        corrections.adder(prefix, side)
        to_project.draw(saved, prefix, edits, side)
        address = f"{(st.context.url or '').split('?')[0].rstrip('/')}/?{link}" if link else ""
        today = datetime.now(UTC).date()
        files = (
            ("Trace", "json", "application/json", lambda: json.dumps(to_json(prediction), ensure_ascii=False, indent=1)),
            ("Markdown", "md", "text/markdown", lambda: share.markdown(prediction, address, today)),
            ("Card (PNG)", "png", "image/png", lambda: share.card(prediction, address, today)),
        )
        with st.popover(full_label("Download", side), icon=":material/download:"):
            for label, ending, mime, data in files:
                name = f"ambiscope-{saved or 'unsaved'}.{ending}"
                st.download_button(label, data, name, mime, key=f"{prefix}.{ending}", on_click="ignore")
        if link:
            copy_link(link, f"{prefix}.link", side)


def _costs(prediction: t.Prediction) -> None:
    """The run's time by part, and the calls of a language model with their tokens."""
    times = [f"{part} {seconds(value)}" for part, value in times_of(prediction).items()]
    cost = cost_of(prediction)
    if cost.model_calls:
        tokens = f": {cost.prompt_tokens:,} tokens read, {cost.completion_tokens:,} written" if cost.prompt_tokens else ""
        times.append(f"{listed(int(cost.model_calls), 'model call')}{tokens}")
    st.caption(f"**How the answers were found** · {' · '.join(times)}")
