"""The answers of the project's systems beside the form that people write or validate, each with its probability and passage."""

from __future__ import annotations

import streamlit as st

from core.annotating import generation as form_of
from core.annotating import groups
from core.annotating.aliases import parse_aliases
from core.annotating.generation import OfferedSuggestion, SuggestionAction
from core.text import answer_key, answer_keys, probability_text
from pages.annotate import search, state
from pages.annotate.state import Work
from pages.ui import keys
from pages.ui.markup import around, changes, escape, full_label
from storage.records.annotation import Suggestion, SuggestionUse

BADGES: dict[SuggestionAction, str] = {
    "accepted": ":green-badge[accepted]",
    "edited": ":blue-badge[accepted, then edited]",
    "rejected": ":red-badge[rejected]",
}


def as_offer(suggestion: Suggestion) -> OfferedSuggestion:
    ids = tuple(dict.fromkeys(e.passage_id for e in suggestion.evidence))
    return OfferedSuggestion(suggestion.prediction_id, suggestion.position, suggestion.text, suggestion.question, ids)


def merged_by_answer(suggestions: tuple[Suggestion, ...]) -> list[list[Suggestion]]:
    """Suggestions without repetitions: if two systems gave the same answer, the first of each list is shown.  The most probable
    ones come first."""
    by_answer: dict[str, list[Suggestion]] = {}
    for suggestion in suggestions:
        by_answer.setdefault(answer_key(suggestion.text), []).append(suggestion)
    return sorted(by_answer.values(), key=lambda group: -max(s.probability for s in group))


def uses(work: Work) -> tuple[SuggestionUse, ...]:
    """The action on each suggestion that was decided on, in their order."""
    merged = merged_by_answer(work.suggestions)
    actions = {answer_key(group[0].text): form_of.decision_on(work.form, as_offer(group[0])) for group in merged}
    decided = ((s, actions[answer_key(s.text)]) for s in work.suggestions)
    return tuple(SuggestionUse(s.prediction_id, s.position, s.text, action) for s, action in decided if action is not None)


def _decision(work: Work, suggestion: Suggestion) -> SuggestionAction | None:
    """The decision on a suggestion.  A validator's list either has the answer or doesn't have it yet."""
    if work.stage == "generation":
        return form_of.decision_on(work.form, as_offer(suggestion))
    keys = answer_keys((suggestion.text,))
    return "accepted" if any(keys & answer_keys(group.aliases) for group in work.form.groups) else None


def _decide(work: Work, offers: list[OfferedSuggestion], decision: str) -> None:
    """Callback: decides on each offer in turn, as one undo step."""

    def changed() -> object:
        form = work.form
        for offer in offers:
            if work.stage == "validation":
                form = groups.add(form, parse_aliases(offer.answer), offer.question, offer.passage_ids)
            else:
                form = {"accept": form_of.accept, "reject": form_of.reject, "withdraw": form_of.withdraw}[decision](form, offer)
        return form

    state.attempt(work, changed)


def _read(work: Work, offer: OfferedSuggestion) -> None:
    passage = search.look_up(work, offer.passage_ids[0])
    if passage is not None:
        search.note_opened(work, passage)


def draw(work: Work) -> None:
    """Undecided suggestions come first.  The keys A, X and E apply to the first of them, L to all."""
    if not work.suggestions:
        return
    decisions = [(group[0], _decision(work, group[0])) for group in merged_by_answer(work.suggestions)]
    undecided = [as_offer(suggestion) for suggestion, decision in decisions if decision is None]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**Suggestions** :gray[{len(undecided)} of {len(decisions)} left]",
            width="content",
            help="From a model: check each against its passage. The number is the model's score for the answer.",
        )
        if len(undecided) > 1:
            work.button(
                "Accept all",
                ("accept.all",),
                _decide,
                undecided,
                "accept",
                shortcut=keys.ACCEPT_ALL,
                icon=":material/done_all:",
            )
    for number, (suggestion, decision) in sorted(enumerate(decisions), key=lambda entry: entry[1][1] is not None):
        if decision is None:
            _card(work, number, suggestion, as_offer(suggestion) == undecided[0])
        else:
            _decided(work, number, suggestion, decision)


def _decided(work: Work, number: int, suggestion: Suggestion, decision: SuggestionAction) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        if work.stage == "validation":
            st.markdown(
                f"{escape(suggestion.text)} :gray-badge[{probability_text(suggestion.probability, False)}] :green-badge[in the list]"
            )
            return
        st.markdown(f"{escape(suggestion.text)} {BADGES[decision]}", width="content")
        label = full_label("Undo", f"the decision on {suggestion.text}")
        work.button(label, ("withdraw", number), _decide, [as_offer(suggestion)], "withdraw", type="tertiary")


def _card(work: Work, number: int, suggestion: Suggestion, is_first: bool) -> None:
    offer = as_offer(suggestion)
    with st.container(border=True, key=work.key("suggestion", number)):
        st.markdown(f"**{escape(suggestion.text)}** :gray-badge[{probability_text(suggestion.probability, False)}]")
        if suggestion.question:
            st.markdown(changes(work.task.question, suggestion.question))
        is_whole = _passage(work, suggestion)
        with st.container(horizontal=True):
            for word, key in (("Accept", keys.ACCEPT), ("Reject", keys.REJECT)):
                if word == "Accept" or work.stage == "generation":  # a validator adds it, or leaves it
                    label, action = full_label(word, suggestion.text), word.lower()
                    work.button(label, (action, number), _decide, [offer], action, shortcut=key if is_first else None)
            if offer.passage_ids and not is_whole:
                label, look = (
                    full_label("Read", f"the passage for {suggestion.text}"),
                    {"shortcut": keys.READ if is_first else None},
                )
                work.button(label, ("read", number), _read, offer, icon=":material/menu_book:", type="tertiary", **look)


def _passage(work: Work, suggestion: Suggestion) -> bool:
    """The text around its evidence, or the whole passage once it is opened.  Returns whether that is all there is to read."""
    if not suggestion.evidence:
        st.caption(":material/link_off: No passage contains these words.")
        return True
    first = suggestion.evidence[0]
    passage = search.look_up(work, first.passage_id)
    if passage is None:
        st.caption(f"Passage {escape(first.passage_id)} is not in the project's corpus.")
        return True
    if is_open := passage.id in work.opened_ids:
        st.markdown(f":small[{escape(passage.title)}: {search.marked_text(passage, [suggestion.text])}]")
    else:
        st.caption(f"{escape(passage.title)}: {around(passage.text, [(first.start, first.end)], 90)}")
    return is_open
