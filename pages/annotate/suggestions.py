"""What the project's systems answered, beside the form: each answer with its evidence, to accept, edit or reject."""

from __future__ import annotations

import streamlit as st

from core.annotating import generation as form_of
from core.annotating.generation import Action, OfferedSuggestion
from core.text import answer_key
from pages.annotate import search, state
from pages.annotate.state import Work
from pages.ui.formatting import percent
from pages.ui.markup import around, changes, escape, named
from storage.records.annotation import Suggestion, SuggestionUse

PIXELS, TALL = 420, 3  # of the list, when more than three are left
BADGES: dict[Action, str] = {
    "accepted": ":green-badge[accepted]",
    "edited": ":blue-badge[accepted, then edited]",
    "rejected": ":red-badge[rejected]",
}


def as_offer(suggestion: Suggestion) -> OfferedSuggestion:
    ids = tuple(dict.fromkeys(e.passage_id for e in suggestion.evidence))
    return OfferedSuggestion(suggestion.prediction_id, suggestion.position, suggestion.text, suggestion.question, ids)


def merged_by_answer(suggestions: tuple[Suggestion, ...]) -> list[list[Suggestion]]:
    """The same answer of two systems is one suggestion: the first of each list is shown.  The most probable ones come first."""
    by_answer: dict[str, list[Suggestion]] = {}
    for suggestion in suggestions:
        by_answer.setdefault(answer_key(suggestion.text), []).append(suggestion)
    return sorted(by_answer.values(), key=lambda same: -max(s.probability for s in same))


def uses(work: Work) -> tuple[SuggestionUse, ...]:
    """What became of each suggestion that was decided on, in their order."""
    actions: dict[tuple[str, int], Action] = {}
    for same in merged_by_answer(work.suggestions):
        action = form_of.decision_on(work.form, as_offer(same[0]))
        if action is not None:
            actions.update({(s.prediction_id, s.position): action for s in same})
    return tuple(
        SuggestionUse(s.prediction_id, s.position, s.text, actions[(s.prediction_id, s.position)])
        for s in work.suggestions
        if (s.prediction_id, s.position) in actions
    )


def _decide(work: Work, offer: OfferedSuggestion, what: str) -> None:
    act = {"accept": form_of.accept, "reject": form_of.reject, "withdraw": form_of.withdraw}[what]
    state.attempt(work, lambda: act(work.form, offer))


def _read(work: Work, offer: OfferedSuggestion) -> None:
    passage = search.look_up(work, offer.passage_ids[0])
    if passage is not None:
        search.open_passage(work, passage)
        work.refresh = True


def draw(work: Work) -> None:
    """Those to decide on come first; the keys A, X and E belong to the first of them."""
    if not work.suggestions:
        return
    lists = merged_by_answer(work.suggestions)
    states = [form_of.decision_on(work.form, as_offer(same[0])) for same in lists]
    undecided = [number for number, became in enumerate(states) if became is None]
    st.markdown(f"**Suggestions** :gray[from a model: check each against its passage · {len(undecided)} of {len(lists)} left]")
    with st.container(height=PIXELS if len(undecided) > TALL else "content", border=False):
        for number in undecided:
            _card(work, number, lists[number][0], number == undecided[0])
        for number, became in enumerate(states):
            if became is not None:
                _decided(work, number, lists[number][0], became)


def _decided(work: Work, number: int, suggestion: Suggestion, became: Action) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"{escape(suggestion.text)} {BADGES[became]}", width="content")
        key, args = work.key("withdraw", number), (work, as_offer(suggestion), "withdraw")
        st.button(named("Undo", f"the decision on {suggestion.text}"), key=key, type="tertiary", on_click=_decide, args=args)


def _card(work: Work, number: int, suggestion: Suggestion, first: bool) -> None:
    offer = as_offer(suggestion)
    with st.container(border=True, key=work.key("suggestion", number)):
        st.markdown(
            f"**{escape(suggestion.text)}** :gray-badge[{percent(suggestion.probability)}]",
            help="The model's own probability for this answer",
        )
        if suggestion.question:
            st.markdown(changes(work.task.question, suggestion.question))
        _evidence(work, suggestion)
        with st.container(horizontal=True):
            for label, what, key in (("Accept", "accept", "A"), ("Reject", "reject", "X")):
                work.button(
                    named(label, suggestion.text), (what, number), _decide, offer, what, shortcut=key if first else None
                )
            if offer.passage_ids:
                work.button(
                    named("Read the evidence", f"for {suggestion.text}"),
                    ("read", number),
                    _read,
                    offer,
                    icon=":material/menu_book:",
                    type="tertiary",
                    shortcut="E" if first else None,
                )


def _evidence(work: Work, suggestion: Suggestion) -> None:
    if not suggestion.evidence:
        st.caption(":material/link_off: No passage contains these words.")
        return
    first = suggestion.evidence[0]
    passage = search.look_up(work, first.passage_id)
    if passage is None:
        st.caption(f"Passage {escape(first.passage_id)} is not in the project's corpus.")
        return
    st.caption(f"{escape(passage.title)}: {around(passage.text, [(first.start, first.end)], 90)}")
