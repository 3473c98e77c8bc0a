"""Draws the events of a run, live or from storage; and how passages, an answer's evidence and its question look wherever a
run shows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import types as t
from core.systems import entry_of
from pages.explore.grid import PassageGrid
from pages.explore.imagined import Imagined, ImaginedQuestions, draw_pruned, outcome
from pages.ui.formatting import percent, seconds
from pages.ui.markup import around, changes, escape, highlighted, short

BAR_CELLS, MAX_CANDIDATES, NAME_CHARS = 10, 8, 40
EIGHTHS = " ▏▎▍▌▋▊▉█"


def draw_found(passages: Sequence[t.RetrievedPassage], answers: Mapping[str, Sequence[str]] | None = None) -> None:
    """Retrieved passages: rank, title, score and which of the run's `answers` (by passage id) it supports, the text when opened."""
    for retrieved in passages:
        title = short(retrieved.passage.title or retrieved.passage.id, 80)
        supported = "".join(
            f" :green-badge[supports {escape(short(a, 40))}]" for a in (answers or {}).get(retrieved.passage.id, ())
        )
        cosine = "" if retrieved.similarity is None else f" :gray-badge[cosine {retrieved.similarity:.2f}]"
        with st.expander(f"{retrieved.rank}. **{escape(title)}**  :gray-badge[score {retrieved.score:.3f}]{cosine}{supported}"):
            st.markdown(escape(retrieved.passage.text))
            st.caption(f"Passage {escape(retrieved.passage.id)}")


def draw_passages(
    place: DeltaGenerator, event: t.PassagesRetrieved, query: str = "", answers: Mapping[str, Sequence[str]] | None = None
) -> None:
    """`query`: what was searched for, where the trace says it nowhere else; `answers`: as `draw_found` has them."""
    count = len(event.passages)
    label = f"{count} passage{'' if count == 1 else 's'} retrieved in {seconds(event.seconds)}"
    with place.expander(f"{label} for: {escape(short(query, 100))}" if query else label, icon=":material/menu_book:"):
        draw_found(event.passages, answers)


def draw_evidence(evidence: tuple[t.Evidence, ...], passages: dict[str, t.RetrievedPassage], whole: bool = True) -> None:
    """Each passage that holds the answer, with the answer marked; the first one whole, the others their surroundings."""
    if not evidence:
        st.caption("No passage contains these words.")
    spans: dict[str, list[tuple[int, int]]] = {}
    for e in evidence:
        spans.setdefault(e.passage_id, []).append((e.start, e.end))
    for position, (passage_id, places) in enumerate(spans.items()):
        retrieved = passages.get(passage_id)
        if retrieved is None:
            st.caption(f"Passage {escape(passage_id)} was not retrieved.")
            continue
        text = retrieved.passage.text
        st.markdown(f"**{escape(retrieved.passage.title or passage_id)}** :gray-badge[rank {retrieved.rank}]")
        st.markdown(highlighted(text, places) if whole and position == 0 else around(text, places))


def draw_clarification(c: t.Clarification, prompt_question: str) -> None:
    st.markdown(f"**{escape(c.answer)}**: {changes(prompt_question, c.question)}")
    round_trip(c)


def round_trip(c: t.Clarification) -> None:
    """Whether the reader, asked the disambiguated question, returned this answer and none of the others."""
    if c.passed:
        st.caption(
            ":green[:material/check_circle:] Checked: asked over the same passages, this question returns only this answer."
        )
        return
    returned = f" It returned {', '.join(escape(r) for r in c.returned[:4])}." if c.returned else ""
    why = escape(c.why or "the reader returned something else")
    st.caption(f":orange[:material/warning:] Not confirmed: {why}.{returned}")


def draw_proposed(
    place: DeltaGenerator, interpretation: t.Interpretation, passages: dict[str, t.RetrievedPassage], checked: bool = False
) -> None:
    """An interpretation, or why there is none.  `checked`: each one of this run was verified, so that none without a result is a failed call."""
    known = passages.get(interpretation.passage_id)
    where = (
        escape(short((known.passage.title if known else "") or interpretation.passage_id, 80))
        if interpretation.passage_id
        else "No passage"
    )
    text = f"**{escape(interpretation.answer)}**: {escape(interpretation.question)}" if interpretation.answer else ""
    if interpretation.failed:
        mark, why = ":red[:material/error: failed]", interpretation.failed
    elif interpretation.abstained and interpretation.answer:  # it was proposed, then dropped
        mark, why = ":orange[:material/filter_alt_off: dropped]", interpretation.abstained
    elif interpretation.abstained or not interpretation.answer:
        mark, why = ":gray[:material/do_not_disturb_on: abstained]", interpretation.abstained or "it gave no answer"
    elif interpretation.verified:
        mark, why = ":green[:material/check_circle: verified]", ""
    elif interpretation.verified is False:
        mark, why = ":orange[:material/cancel: rejected]", "its passage does not support it"
    else:
        mark, why = (":red[:material/error: not verified]", "the call failed") if checked else ("", "")
    parts = [mark, text, f"({where})" if text else where, escape(short(why, 200))]
    place.caption(" · ".join(p for p in parts if p))


class FailedCalls:
    """Calls of a model that failed: one line for all of a role with the same reason."""

    def __init__(self, place: DeltaGenerator) -> None:
        self._place = place
        self._lines: dict[tuple[str, str], tuple[DeltaGenerator, int]] = {}

    def add(self, event: t.ModelCalled) -> None:
        key = event.role, event.error
        line, n = self._lines.get(key) or (self._place.empty(), 0)
        self._lines[key] = line, n + 1
        times = f" ({n + 1} times)" if n else ""
        line.caption(f":red[:material/error: failed call] {escape(event.role)}{times}: {escape(short(event.error, 300))}")


class TraceView:
    """Events in, drawing out.  `prefix` makes the keys unique; `narrow` puts chart and evidence below one another; `system`: what runs."""

    def __init__(self, place: DeltaGenerator, question: str, prefix: str, narrow: bool = False, system: str = "") -> None:
        self.place, self.question, self.prefix, self.narrow = place, question, prefix, narrow
        self.passages: dict[str, t.RetrievedPassage] = {}
        self._lists: list[tuple[DeltaGenerator, t.PassagesRetrieved, str]] = []
        self._supported: dict[str, tuple[t.Evidence, ...]] = {}  # by answer
        self._clarified: DeltaGenerator | None = None
        self._grids, self._grid = entry_of(system).view == "interpretations", None
        self._open: dict[int, Any] = {}
        self._ranks, self._imagined = defaultdict[str, set[int]](set), None
        self._searched_for, self._checked = question, False
        self._failed = FailedCalls(place)

    def add(self, event: t.Event) -> None:
        match event:
            case t.PassagesRetrieved():
                self.passages.update({p.passage.id: p for p in event.passages})
                for p in event.passages:
                    self._ranks[p.passage.id].add(p.rank)
                self._lists.append((self.place.empty(), event, "" if event.query == self._searched_for else event.query))
                draw_passages(*self._lists[-1])
                if self._imagined is not None:
                    self._imagined.searched(event)
                if self._grids:
                    self._grid = PassageGrid(self.place.container(), event.passages, self.narrow)
            case t.QuestionRelaxed(question=question):
                self._searched_for = question
                self.place.caption(f"Searched for: {escape(question)}")
            case t.QuestionsImagined(questions=questions):
                self._imagined = ImaginedQuestions(self.place, questions, self.passages, self._ranks)
            case t.PassagesPruned():
                draw_pruned(self.place, event, self.passages, self._ranks)
                if self._imagined is not None:
                    self._imagined.pruned(event)
            case t.QuestionVerified(question=question) if self._imagined is not None and self._imagined.knows(question):
                self._imagined.verified(event)
            case t.QuestionVerified(question=question):
                alone = Imagined(question, decision=event)
                self.place.caption(f"{escape(question)} {outcome(alone, self.passages, self._ranks)[1]}")
            case t.ModelCalled(role=role, error=error):
                self._checked |= role == "verify"
                if error and not (role == "interpret" and self._grid is not None):  # the grid says so of its passage
                    self._failed.add(event)
            case t.StepStarted(number=number):
                self._open[number] = self.place.status(f"Step {number}: looking for an answer", expanded=True)
            case t.StepFinished(answer=answer):
                if answer is not None:
                    self._supported[answer.text] = answer.evidence
                if self._grid is None:
                    self._step(event)
            case t.AnswerRejected(answer=rejected, why=why):
                self._supported.pop(rejected, None)
                self.place.caption(f":material/block: **{escape(rejected)}** was rejected: {escape(why)}")
            case t.QuestionClarified(clarification=clarification):
                if self._clarified is None:
                    self._clarified = self.place.container(border=True)
                    self._clarified.markdown("**Disambiguated questions** :gray[changes to your question]")
                with self._clarified:
                    draw_clarification(clarification, self.question)
            case t.InterpretationProposed(interpretation=proposed) if self._grid is not None and self._grid.knows(
                proposed.passage_id
            ):
                self._grid.fill(proposed)
            case t.InterpretationProposed(interpretation=proposed):
                draw_proposed(self.place, proposed, self.passages, self._checked)
            case t.InterpretationsClustered(placed=placed):
                clusters, alone = len({p.cluster for p in placed} - {-1}), sum(p.cluster < 0 for p in placed)
                self.place.caption(f"{len(placed)} interpretations, {clusters} clusters, {alone} unclustered")
            case t.LongAnswerWritten(text=text):
                self.place.markdown(f"**Long answer.** {escape(text)}")
            case t.Finished(seconds=took, why=why):
                self.close()
                self.place.caption(f":material/flag: Finished after {seconds(took)}: {escape(why)}.")

    _grid: PassageGrid | None
    _imagined: ImaginedQuestions | None

    def close(self) -> None:
        """Steps that were begun and not ended: the run was stopped, or (one pass) no answer came of them."""
        for number, status in self._open.items():
            status.update(label=f"Step {number}: no answer", state="complete", expanded=False)
        self._open.clear()
        answers: dict[str, list[str]] = {}
        for text, evidence in self._supported.items():
            for passage_id in dict.fromkeys(e.passage_id for e in evidence):
                answers.setdefault(passage_id, []).append(text)
        for place, event, query in self._lists if answers else ():
            draw_passages(place, event, query, answers)
        if self._grid is not None:
            self._grid.close()
        if self._imagined is not None:
            self._imagined.draw(ended=True)

    def _step(self, event: t.StepFinished) -> None:
        step, answer = event.step, event.answer
        if answer is not None and answer.pinned:
            outcome = f"**{escape(answer.text)}** was added by a person"
        elif answer is not None:
            outcome = f"**{escape(answer.text)}** {percent(answer.probability)}"
        else:
            why = step.stopped_because or "the loop ended"
            outcome = escape(why if t.EOI in why else f"{t.EOI} {why}")
        took = f" · {seconds(step.seconds)}" if step.seconds else ""
        label = f"Step {step.number}: {outcome}{took}"
        status = self._open.pop(step.number, None)
        if status is None:
            status = self.place.status(label, state="complete", expanded=bool(step.candidates))
        else:
            status.update(label=label, state="complete", expanded=True)
        with status:
            self._prompt(step)
            left, right = (st.container(), st.container()) if self.narrow else st.columns(2, gap="medium")
            with left:
                if step.candidates or answer is None:
                    st.markdown(candidates_table(step))
                if note := candidates_note(step):
                    st.caption(note)
            with right:
                if answer is not None:
                    draw_evidence(answer.evidence, self.passages)

    def _prompt(self, step: t.Step) -> None:
        """What the model was told of the answers so far.  Systems without a prompt (one pass) say nothing."""
        if step.prompt:
            st.caption("Prompt with the answers so far")
            st.code(step.prompt, language=None, wrap_lines=True)
        elif step.number == 1 and step.candidates:
            st.caption("No answers so far: the prompt is the question alone.")


# ---------------------------------------------------------------- the candidates of a step
# As text: plotly's scripts and a chart a step would keep the browser busier than the models keep the server, on the same two cores.


def bar(value: float, cells: int = BAR_CELLS) -> str:
    """Block characters, `cells` of them for a probability of 1; to an eighth of a cell, and at least that above 0."""
    eighths = round(min(1.0, max(0.0, value)) * cells * 8) or int(value > 0)
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def candidates_table(step: t.Step) -> str:
    """Markdown: the likeliest first, the chosen one marked, [EOI] last (a system without it leaves its probability at 0); what the answering model
    alone and the verifier say beside it, where a reranker weighed them."""
    more = [n for n in ("model", "verifier") if any(getattr(c, n) is not None for c in step.candidates)]
    lines = [f"| {' | '.join(['Candidate', 'Probability', *map(str.capitalize, more)])} |", "|:--|:--|" + "--:|" * len(more)]
    for c in step.candidates[:MAX_CANDIDATES]:
        chosen = step.choice is not None and c.text == step.choice.text
        name = escape(short(c.text, NAME_CHARS))
        signals = [getattr(c, n) for n in more]
        lines.append(_row(f"**{name}**" if chosen else name, c.probability, "blue" if chosen else "gray", signals))
    if step.eoi_probability or step.choice is None:
        lines.append(_row(f"{escape(t.EOI)} no further answer", step.eoi_probability, "orange", [None] * len(more)))
    return "\n".join(lines)


def candidates_note(step: t.Step) -> str:
    """Why the columns differ, in a line; "" where there is one only."""
    if all(c.model is None for c in step.candidates):
        return ""
    verifier = (
        ", and Verifier how sure another model is that the passage supports it"
        if any(c.verifier is not None for c in step.candidates)
        else ""
    )
    return f"Probability is what the reranker makes of all signals. Model is what the answering model alone says{verifier}."


def _row(name: str, probability: float, colour: str, signals: Sequence[float | None]) -> str:
    blocks = bar(probability)
    more = "".join(f" {'' if p is None else percent(p)} |" for p in signals)
    return f"| {name} | {f':{colour}[{blocks}] ' if blocks else ''}{percent(probability)} |{more}"
