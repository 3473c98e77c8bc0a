"""Draws the events of a run, live or from storage; and passages, evidence and rewritten questions wherever they appear."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import types as t
from core.disambiguation.round_trip import same_answer
from core.evaluation.how_to import SectionUnit, units
from core.systems import entry_of
from core.text import listed, probability_text, question_key
from pages.ui.formatting import seconds
from pages.ui.markup import around, changes, escape, highlighted, meter, short

MAX_CANDIDATES, NAME_CHARS = 8, 60
ANSWER_CHARS, REASON_CHARS = 60, 200
QUOTE = ":material/format_quote:"
_PART_OF = re.compile(r"([^#]+\.pdf)-p\d|([^#]+)#", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://[^\s<>()\[\]\\\"'$`]{1,1000}")
EOI_ROW = "no further answer"


def _draw_passage(
    place: DeltaGenerator, retrieved: t.RetrievedPassage, badges: Sequence[str] = (), notes: Sequence[str] = ()
) -> None:
    """Rank, title, scores; the text when opened.  `badges`, `notes`: Markdown beside the title and below the text."""
    title = short(retrieved.passage.title or retrieved.passage.id, 80)
    cosine = "" if retrieved.similarity is None else f" :gray-badge[cosine {retrieved.similarity:.2f}]"
    label = " ".join([f"{retrieved.rank}. **{escape(title)}**  :gray-badge[score {retrieved.score:.3f}]{cosine}", *badges])
    with place.expander(label):
        draw_text(retrieved.passage.text)
        for note in notes:
            st.caption(note)
        st.caption(f"Passage {source_link(retrieved.passage.id)}")


def document_of(passage_id: str) -> str:
    """The file or address of the document that a passage is a section or page of; empty for a passage on its own.

    >>> document_of("guide/ports.md#docker/volumes"), document_of("paper.pdf-p2"), document_of("s-p0762")
    ('guide/ports.md', 'paper.pdf', '')
    """
    match = _PART_OF.match(passage_id)
    return match[1] or match[2] if match else ""


def source_link(passage_id: str) -> str:
    """Markdown for the id, as a link if it is the document's address on the web."""
    return f"[{escape(passage_id)}]({passage_id})" if _ADDRESS.fullmatch(passage_id) else escape(passage_id)


def draw_text(text: str, spans: Sequence[tuple[int, int]] = (), mark: str = "") -> None:
    """A passage with the character `spans` marked, its listings as code; of a listing, the lines with a span are repeated below it, marked.
    `mark`: Markdown before it."""
    parts = units(text)
    if len(parts) > 1 and parts[1].is_code and not text[0].isalnum():  # a listing from the first line on
        parts[:2] = [parts[1]._replace(start=0)]
    position = 0
    for number, part in enumerate(parts):
        if part.is_code:
            st.code(text[part.start : part.end], language=None, wrap_lines=True)
            for start, end in dict.fromkeys(
                (text.rfind("\n", 0, s) + 1, _line_end(text, e)) for s, e in spans if _within(s, part)
            ):
                st.markdown(f"{mark}{highlighted(text[start:end].strip(), _moved(spans, start + _indent(text[start:end])))}")
            position = part.end
        elif number + 1 == len(parts) or parts[number + 1].is_code:
            prose = text[position : part.end]
            start = position + _indent(prose)
            st.markdown(f"{mark}{highlighted(prose.strip(), _moved(spans, start))}")
            position = part.end


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _within(position: int, part: SectionUnit) -> bool:
    return part.start <= position < part.end


def _moved(spans: Sequence[tuple[int, int]], start: int) -> list[tuple[int, int]]:
    """The spans of a text, shifted to its part from `start` on."""
    return [(s - start, e - start) for s, e in spans]


def draw_passages(passages: Sequence[t.RetrievedPassage]) -> None:
    for retrieved in passages:
        _draw_passage(st.container(), retrieved)


class PassageList:
    """The passages of one search in an expander, each with the answers that it supports and its interpretations."""

    def __init__(self, place: DeltaGenerator, event: t.PassagesRetrieved, query: str) -> None:
        """`query`: drawn if it isn't empty."""
        label = f"{listed(len(event.passages), 'passage')} retrieved in {seconds(event.seconds)}"
        box = place.expander(f"{label} for: {escape(short(query, 100))}" if query else label, icon=":material/menu_book:")
        self._slots = {p.passage.id: (p, box.empty()) for p in event.passages}
        self._badges, self._notes = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for retrieved, slot in self._slots.values():
            _draw_passage(slot, retrieved)

    def __contains__(self, passage_id: str) -> bool:
        return passage_id in self._slots

    def mark(self, passage_id: str, badge: str, note: str = "") -> None:
        if passage_id in self._slots:
            self._badges[passage_id].append(badge)
            self._notes[passage_id] += [note] if note else []
            retrieved, slot = self._slots[passage_id]
            _draw_passage(slot, retrieved, self._badges[passage_id], self._notes[passage_id])


def draw_evidence(evidence: tuple[t.Evidence, ...], passages: dict[str, t.RetrievedPassage], corpus: str = "") -> None:
    """Each passage with the answer marked: the first in full, the others as the text around it.  `corpus`: the one whose page
    shows a passage in its document."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for e in evidence:
        spans.setdefault(e.passage_id, []).append((e.start, e.end))
    if not spans:
        st.caption(":material/link_off: No retrieved passage contains these words.")
    for position, (passage_id, passage_spans) in enumerate(spans.items()):
        retrieved = passages.get(passage_id)
        if retrieved is None:
            st.caption(f"Passage {escape(passage_id)} was not retrieved.")
            continue
        text = retrieved.passage.text
        if position:
            st.markdown(f"{QUOTE} {around(text, passage_spans)}")
        else:
            draw_text(text, passage_spans, f"{QUOTE} ")
        with st.container(horizontal=True, vertical_alignment="center"):
            title = escape(retrieved.passage.title or passage_id)
            st.caption(f"**{title}** · passage {source_link(passage_id)}, rank {retrieved.rank}", width="content")
            if corpus and document_of(passage_id):
                query = {"corpus": corpus, "passage": passage_id}
                st.page_link("pages/corpora/page.py", label="In its document", icon=":material/menu_book:", query_params=query)


def round_trip(c: t.Clarification) -> None:
    """The round trip of a rewritten question: the reader's answers when it was asked over the same passages."""
    if not c.question:
        return
    others = [text for text in c.returned if not same_answer(text, c.answer)]
    listing = ", ".join(f"**{escape(short(text, NAME_CHARS))}**" for text in others)
    if not c.passed:
        st.caption(
            f"Not confirmed: {escape(c.why or 'it was not asked again')}{f'. It returned {listing}' if listing else ''}."
        )
    elif others:
        st.caption(
            f"Asked again over these passages, it returned this answer and none of the other answers here, but also {listing}."
        )
    elif c.returned:
        st.caption("Asked again over these passages, it returned this answer alone.")


def read_outcome(interpretation: t.Interpretation, checked: bool = False) -> tuple[str, str, str]:
    """The outcome of reading a passage: a word, the same as Markdown, and the reason.  `checked`: each interpretation of this run was
    verified, so that one without a result is a failed call."""
    if interpretation.failed:
        return "failed", ":red[:material/error: failed]", interpretation.failed
    if not interpretation.answer:
        return "no answer", ":material/do_not_disturb_on: no answer", interpretation.abstained
    if interpretation.abstained:  # it was proposed, then dropped
        return "dropped", ":orange[:material/filter_alt_off: dropped]", interpretation.abstained
    if interpretation.verified:
        return "answered", ":green[:material/check_circle: verified]", ""
    if interpretation.verified is False:
        return "rejected", ":orange[:material/cancel: rejected]", "its passage does not support it"
    return ("not verified", ":red[:material/error: not verified]", "the call failed") if checked else ("answered", "", "")


def draw_proposed(
    place: DeltaGenerator, interpretation: t.Interpretation, passages: dict[str, t.RetrievedPassage], checked: bool
) -> None:
    """An interpretation, or the reason why there is none.  `checked`: as in `read_outcome`."""
    retrieved = passages.get(interpretation.passage_id)
    title = (retrieved.passage.title if retrieved else "") or interpretation.passage_id
    source = escape(short(title, 80)) if interpretation.passage_id else "no passage"
    text = f"**{escape(interpretation.answer)}**: {escape(interpretation.question)}" if interpretation.answer else ""
    _, mark, reason = read_outcome(interpretation, checked)
    parts = [mark, text, f"({source})" if text else source, escape(short(reason, REASON_CHARS))]
    place.caption(" · ".join(p for p in parts if p))


class TraceView:
    """Draws events one by one.  `system`: the name of the running system.  `is_calibrated`: whether its probabilities are."""

    def __init__(self, place: DeltaGenerator, question: str, system: str = "", is_calibrated: bool = False) -> None:
        self.place, self.question, self.is_calibrated = place, question, is_calibrated
        self.passages: dict[str, t.RetrievedPassage] = {}
        self._lists: list[PassageList] = []
        self._supported: dict[str, tuple[t.Evidence, ...]] = {}  # by answer
        self._clarified: DeltaGenerator | None = None
        self._by_passage = entry_of(system).view == "interpretations"
        self._read: DeltaGenerator | None = None  # the line that counts the passages read, by outcome
        self._outcomes = Counter[str]()
        self._open: dict[int, Any] = {}
        self._query, self._checked = question, False
        self._failures: dict[tuple[str, str], tuple[DeltaGenerator, int]] = {}  # (role, error) -> where it is drawn, calls

    def add(self, event: t.Event) -> None:
        match event:
            case t.PassagesRetrieved():
                self.passages.update({p.passage.id: p for p in event.passages})
                self._lists.append(PassageList(self.place, event, "" if event.query == self._query else event.query))
                if self._by_passage:
                    self._read = self.place.empty()
            case t.QuestionRelaxed(question=question):
                self._query = question
                if question_key(question) != question_key(self.question):
                    self.place.caption(f"Searched for: {escape(question)}")
            case t.QuestionsImagined(questions=questions):
                count = listed(len(questions), "imagined question")
                box = self.place.expander(f"{count}, before any passage was read", icon=":material/psychology_alt:")
                box.markdown("\n".join(f"1. {escape(q)}" for q in questions))
            case t.PassagesPruned(kept=kept, dropped=dropped, why=why):
                for passage_id in dropped:
                    self._mark(passage_id, ":gray-badge[pruned]")
                total = listed(len(kept) + len(dropped), "passage")
                self.place.caption(
                    f":material/filter_alt: {len(dropped)} of {total} pruned. Kept: {escape(short(why, REASON_CHARS))}."
                )
            case t.QuestionVerified():
                self.place.caption(f"{escape(event.question)} {self._verified(event)}")
            case t.ModelCalled(role=role, error=error):
                self._checked |= role == "verify"
                if error and not (role == "interpret" and self._read is not None):  # the list of passages says so
                    line, earlier = self._failures.get((role, error)) or (self.place.empty(), 0)
                    self._failures[role, error] = line, earlier + 1
                    times = f" ({earlier + 1} times)" if earlier else ""
                    line.caption(f":red[:material/error: failed call] {escape(role)}{times}: {escape(short(error, 300))}")
            case t.StepStarted(number=number):
                self._open[number] = self.place.status(f"Step {number}: looking for an answer", type="step")
            case t.StepFinished(answer=answer):
                if answer is not None:
                    self._supported[answer.text] = answer.evidence
                if self._read is None:
                    self._step(event)
            case t.AnswerRejected(answer=rejected, why=why):
                self._supported.pop(rejected, None)
                self.place.caption(f":material/block: **{escape(rejected)}** was rejected: {escape(why)}")
            # with one answer the question stays as it is
            case t.QuestionClarified(clarification=c) if c.question or len(self._supported) > 1:
                self._question(c)
            case t.InterpretationProposed(interpretation=i) if self._read is not None and i.passage_id in self._lists[-1]:
                self._count(i)
            case t.InterpretationProposed(interpretation=interpretation):
                draw_proposed(self.place, interpretation, self.passages, self._checked)
            case t.InterpretationsClustered(placed=placed):
                clusters, alone = len({p.cluster for p in placed} - {-1}), sum(p.cluster < 0 for p in placed)
                self.place.caption(
                    f"{listed(len(placed), 'interpretation')}, {listed(clusters, 'cluster')}, {alone} unlike any other"
                )
            case t.LongAnswerWritten(text=text):
                self.place.markdown(f"**Long answer.** {escape(text)}")
            case t.Finished():
                self.close()
                self.place.caption(f":material/flag: Finished after {seconds(event.seconds)}: {escape(event.why)}.")

    def _question(self, c: t.Clarification) -> None:
        """An answer's line in the list of all answers: its rewritten question, or that it has none, with what distinguishes
        it."""
        if self._clarified is None:
            self._clarified = self.place.expander("Rewritten questions (changes highlighted)", icon=":material/edit_note:")
        with self._clarified:
            if c.question and question_key(c.question) != question_key(self.question):
                st.markdown(f"**{escape(c.answer)}**: {changes(self.question, c.question)}")
                round_trip(c)
            else:
                label = f" :gray-badge[{escape(c.label)}]" if c.label else ""
                st.markdown(
                    f"**{escape(c.answer)}**:{label} :gray[no question of its own{f', {escape(c.why)}' if c.why else ''}]"
                )

    def close(self) -> None:
        """Closes the open steps: the run was stopped, or (one pass) they gave no answer."""
        for number, status in self._open.items():
            status.update(label=f"Step {number}: no answer", state="complete")
        self._open.clear()
        for text, evidence in self._supported.items():
            for passage_id in dict.fromkeys(e.passage_id for e in evidence):
                self._mark(passage_id, f":green-badge[supports {escape(short(text, 40))}]")
        self._supported.clear()

    def _mark(self, passage_id: str, badge: str) -> None:
        for passages in self._lists:
            passages.mark(passage_id, badge)

    def _verified(self, event: t.QuestionVerified) -> str:
        if event.failed:
            return f":red[:material/error: failed]: it could not be verified, {escape(short(event.failed, REASON_CHARS))}"
        if not event.passage_ids:
            return ":orange[:material/cancel: rejected]: verification found no passage that answers it"
        passages = (self.passages[i].passage for i in event.passage_ids if i in self.passages)
        titles = dict.fromkeys(short(p.title or p.id, 80) for p in passages)
        return f":green[:material/check_circle: verified]: answered by {'; '.join(map(escape, titles))}"

    def _count(self, interpretation: t.Interpretation) -> None:
        """Counts a passage as read."""
        outcome, badge, reason = read_outcome(interpretation)
        self._outcomes[outcome] += 1
        answer = escape(short(interpretation.answer, ANSWER_CHARS))
        note = f"**{answer}**: {escape(interpretation.question)}" if answer else escape(short(reason, REASON_CHARS))
        self._lists[-1].mark(interpretation.passage_id, f":blue-badge[{answer}]" if outcome == "answered" else badge, note)
        if self._read is not None:
            counts = " · ".join(f"{n} {name}" for name, n in self._outcomes.items())
            self._read.caption(f"Passages read: {self._outcomes.total()} · {counts}")

    def _step(self, event: t.StepFinished) -> None:
        step, answer = event.step, event.answer
        if answer is not None:
            outcome = f"**{escape(answer.text)}** {'kept' if answer.pinned else probability_text(answer.probability, self.is_calibrated)}"
        else:
            outcome = f"stopped, {escape(step.stopped_because or 'the loop ended')}"
        time = f" · {seconds(step.seconds)}" if step.seconds else ""
        label = f"Step {step.number}: {outcome}{time}"
        status = self._open.pop(step.number, None)
        if status is None:
            status = self.place.status(label, state="complete", type="step")
        else:
            status.update(label=label, state="complete")
        with status:
            # systems without a prompt (one pass) leave it empty
            if step.prompt:
                st.caption("Prompt, including the answers found so far")
                st.code(step.prompt, language=None, wrap_lines=True)
            elif step.number == 1 and step.candidates:
                st.caption("No answers yet, so the prompt is just the question.")
            if step.candidates or answer is None:
                st.markdown(candidates_table(step, self.is_calibrated))
            if answer is not None:
                draw_evidence(answer.evidence, self.passages)


def draw_trace(prediction: t.Prediction) -> None:
    """All events of a stored run."""
    view = TraceView(
        st.container(gap="xxsmall"), prediction.question.text, prediction.system.name, prediction.system.is_calibrated
    )
    for event in prediction.events:
        view.add(event)
    view.close()


# ---------------------------------------------------------------- the candidates of a step
# As text: plotly's scripts and a chart per step would take more of the processor than the models do.


def candidates_table(step: t.Step, is_calibrated: bool) -> str:
    """Markdown: the likeliest first, the chosen one marked, [EOI] last (a system without it leaves its probability at 0)."""
    lines = [f"| Candidate | {'Probability' if is_calibrated else 'Score'} |", "|:--|:--|"]
    for c in step.candidates[:MAX_CANDIDATES]:
        name = escape(short(c.text, NAME_CHARS))
        is_chosen = step.choice is not None and c.text == step.choice.text
        lines.append(_row(f"**{name}**" if is_chosen else name, c.probability, is_calibrated))
    if step.eoi_probability or step.choice is None:
        lines.append(_row(f":gray[{EOI_ROW}]", step.eoi_probability, is_calibrated))
    return "\n".join(lines)


def _row(name: str, probability: float, is_calibrated: bool) -> str:
    return f"| {name} | {f'{probability_text(probability, is_calibrated)} {meter(probability)}'.strip()} |"
