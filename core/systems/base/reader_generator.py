"""The generator without a language model: the bundled per-passage reader, with the answering model as second opinion.

The roles of Lee et al. 2025 (core.models.language.roles.Generator): relaxing leaves the query as it is; interpreting a passage is one call of the reader
over it (Eq. 8), which may abstain, and a minimal edit of the query that tells this passage from the others; the answering model has looked at all
passages together once before, and the agreement of both with the question (core.models.ranking.passage_signals) says how sure an interpretation is.
A passage below the threshold abstains, with the reason.  An interpretation's answer is always a span of its passage.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core import types as t
from core.disambiguation.edits import AnswerPlace, Edit, propose_edits
from core.models.language.roles import Claim, Run
from core.models.ranking.passage_signals import PassageView, QuestionSignals, Weighing, answerer_views, best_reading
from core.models.ranking.signal_weights import signals_of
from core.models.span.answerer import SpanAnswerer, load_answerer
from core.models.span.reader import PassageReader, Readout, load_reader
from core.settings import Settings
from core.text import equal_for_display, overlapping

AT_A_TIME = 5  # passages per batch: small enough to show progress in the grid
CANDIDATES = 6  # spans per passage from each model
EDITS_ASKED = 2  # edits tested per interpretation
RIVALS_ASKED = 3  # passages of other interpretations used in that test
RIVALS = 12  # other passages that an edit must differ from while their answers are unknown


class ReaderGenerator:
    """Implements `Generator`.  Can be shared between runs: each model serves one caller at a time."""

    name = "bundled reader"

    def __init__(
        self,
        reader: PassageReader,
        answerer: SpanAnswerer,
        weighing: Weighing,
        abstain_below: float,
        verified_above: float,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Probabilities: below `abstain_below` a passage abstains; from `verified_above` on an interpretation needs no other one beside it."""
        self.reader, self.answerer, self.weighing = reader, answerer, weighing
        self.abstain_below, self.verified_above = abstain_below, verified_above
        self.about: Mapping[str, Any] = {
            "generator": self.name,
            "abstain_below": abstain_below,
            "verified_above": verified_above,
            "weighing": weighing.digest,
            **(about or {}),
        }

    def relax(self, query: str, run: Run) -> str:
        """Eq. 6 as the identity: retrieval already covers every meaning of a short question."""
        return query

    # ------------------------------------------------------------ Eq. 8

    def interpret(self, query: str, passages: Sequence[t.Passage], run: Run) -> Iterator[tuple[int, t.Interpretation]]:
        return self.interpret_retrieved(query, [t.RetrievedPassage(p, rank, 0.0) for rank, p in enumerate(passages, 1)], run)

    def interpret_retrieved(
        self, query: str, retrieved: Sequence[t.RetrievedPassage], run: Run
    ) -> Iterator[tuple[int, t.Interpretation]]:
        """`interpret` with the retriever's scores, which are signals too."""
        if not retrieved:
            return
        run.check()
        passages = [f.passage for f in retrieved]
        views, trouble = self._look(query, retrieved, run)
        signals = QuestionSignals(query, views)
        for first in range(0, len(passages), AT_A_TIME):
            run.check()
            some = range(first, min(first + AT_A_TIME, len(passages)))
            if run.left <= 0:
                for i in some:
                    why = "the time limit was reached before this passage was read"
                    run.count(t.ModelCalled("interpret", 1, 0, 0, 0.0, why))
                    yield i, t.Interpretation(passages[i].id, failed=why)
                continue
            for i, readout in zip(some, self._read(query, [passages[i] for i in some], run)):
                if isinstance(readout, str):
                    yield i, t.Interpretation(passages[i].id, failed=readout)
                else:
                    views[i] = replace(views[i], abstain=readout.abstain_probability, reader=readout.candidates)
                    yield i, self._interpretation(signals, i, views, trouble)

    def _look(self, query: str, retrieved: Sequence[t.RetrievedPassage], run: Run) -> tuple[list[PassageView], str]:
        """(the answering model's spans of all passages from one call, the error or "")."""
        started, error = time.perf_counter(), ""
        try:
            views = answerer_views(self.answerer, query, retrieved, CANDIDATES)
        except Exception as e:  # the reader can continue alone
            error = _message(e)
            views = [PassageView(f) for f in retrieved]
        run.count(t.ModelCalled("second answerer_views", len(retrieved), 0, 0, time.perf_counter() - started, error))
        return views, error

    def _read(self, query: str, passages: Sequence[t.Passage], run: Run) -> list[Readout | str]:
        """One readout per passage, computed in one batch; if that fails, each passage is read alone, and a failure gives its error message."""
        started = time.perf_counter()
        readouts: list[Readout | str] = []
        try:
            readouts += self.reader.read(query, passages, CANDIDATES)
        except Exception:
            for passage in passages:
                try:
                    readouts += self.reader.read(query, [passage], CANDIDATES)
                except Exception as e:
                    readouts.append(_message(e))
        took = (time.perf_counter() - started) / max(1, len(passages))
        for one in readouts:
            run.count(t.ModelCalled("interpret", 1, 0, 0, took, one if isinstance(one, str) else ""))
        return readouts

    def _interpretation(
        self, signals: QuestionSignals, at: int, views: Sequence[PassageView], trouble: str
    ) -> t.Interpretation:
        view, query = views[at], signals.question
        passage = view.found.passage
        best, probability = best_reading(self.weighing, view, signals.passage(at, view), query)
        if best is None or best.candidate.evidence is None:
            return t.Interpretation(passage.id, abstained="the reader found no possible answer in this passage")
        answer = best.candidate.text
        if probability < self.abstain_below:
            why = _why_not(answer, view, best.signals["kind"], probability)
            return t.Interpretation(passage.id, probability=probability, abstained=why)
        rivals = [AnswerPlace(v.found.passage, 0) for i, v in enumerate(views[: RIVALS + 1]) if i != at]
        edits = propose_edits(query, answer, AnswerPlace(passage, best.candidate.evidence.start), rivals)
        return t.Interpretation(
            passage.id,
            edits[0].question if edits else query,
            answer,
            probability,
            best.candidate.evidence,
            verified=None if trouble else probability >= self.verified_above,
        )

    # ------------------------------------------------------------ the final interpretations

    def distinguish(
        self, query: str, interpretations: Sequence[t.Interpretation], passages: Sequence[t.Passage], run: Run
    ) -> list[tuple[t.Interpretation, bool]]:
        """The final interpretations with questions that distinguish them, and whether the answering model, asked such a question over the passage
        and those of others, returns the answer.  A single interpretation keeps the query."""
        by_id = {p.id: p for p in passages}
        places = [_place(i, by_id) for i in interpretations]
        if len(interpretations) == 1 and (own := places[0]) is not None:
            near = list({p.id: p for p in (own.passage, *passages[:RIVALS_ASKED])}.values())
            (ok,) = self._asked_back([(0, Edit(query, 0, 0), near)], interpretations, run)
            return [(replace(interpretations[0], question=query), ok)]
        jobs: list[tuple[int, Edit, list[t.Passage]]] = []
        first: dict[int, Edit] = {}
        for n, (i, place) in enumerate(zip(interpretations, places)):
            if place is None:
                continue
            others = [p for m, p in enumerate(places) if m != n and p is not None and _differ(interpretations[m], i)]
            edits = propose_edits(query, i.answer, place, others)
            around = list({p.passage.id: p.passage for p in (place, *others)}.values())[: RIVALS_ASKED + 1]
            jobs += [(n, edit, around) for edit in edits[:EDITS_ASKED]]
            if edits:
                first[n] = edits[0]
        passed: dict[int, Edit] = {}
        for (n, edit, _), ok in zip(jobs, self._asked_back(jobs, interpretations, run)):
            if ok:
                passed.setdefault(n, edit)
        out = []
        for n, i in enumerate(interpretations):
            chosen = passed.get(n) or first.get(n)
            out.append((replace(i, question=chosen.question) if chosen else i, n in passed))
        return out

    def _asked_back(
        self, jobs: Sequence[tuple[int, Edit, list[t.Passage]]], interpretations: Sequence[t.Interpretation], run: Run
    ) -> list[bool]:
        if not jobs or run.left <= 0:
            return [False] * len(jobs)
        run.check()
        started, error = time.perf_counter(), ""
        questions = [(e.question, [t.RetrievedPassage(p, r, 0.0) for r, p in enumerate(ps, 1)], ()) for _, e, ps in jobs]
        out: list[bool] = []
        try:
            for (n, _, _), proposal in zip(jobs, self.answerer.propose_many(questions)):
                top = proposal.candidates[0] if proposal.candidates else None
                sure = top is not None and top.probability > proposal.eoi_probability
                out.append(bool(sure and top and overlapping(top.text, interpretations[n].answer)))
        except Exception as e:  # the edits are kept untested
            error, out = _message(e), [False] * len(jobs)
        read = sum(len(ps) for _, _, ps in jobs)
        run.count(t.ModelCalled("round trip", read, 0, 0, time.perf_counter() - started, error))
        return out

    # ------------------------------------------------------------ Eq. 10 and 20

    def verify(self, claims: Sequence[Claim], run: Run) -> list[bool | None]:
        """A claim holds if the reader gives its answer to its question from one of its passages."""
        out: list[bool | None] = []
        for claim in claims:
            run.check()
            readouts = self._answers_to(claim, run)
            says = [r.best is not None and overlapping(r.best.text, claim.answer) for r in readouts if isinstance(r, Readout)]
            out.append(True if any(says) else None if len(says) < len(readouts) else False)
        return out

    def _answers_to(self, claim: Claim, run: Run) -> list[Readout | str]:
        started = time.perf_counter()
        if run.left <= 0:
            return ["the time limit was reached"]
        try:
            readouts: list[Readout | str] = list(self.reader.read(claim.question, claim.passages, 1))
        except Exception as e:
            readouts = [_message(e)]
        error = next((f for f in readouts if isinstance(f, str)), "")
        run.count(t.ModelCalled("verify", len(claim.passages), 0, 0, time.perf_counter() - started, error))
        return readouts

    def answer(self, question: str, passages: Sequence[t.Passage], run: Run) -> str | None:
        """The likeliest span of the passages on which the reader does not abstain."""
        run.check()
        candidates = [r.best for r in self._read(question, passages, run) if isinstance(r, Readout) and r.best is not None]
        return max(candidates, key=lambda c: c.probability).text if candidates else None


def _place(interpretation: t.Interpretation, by_id: Mapping[str, t.Passage]) -> AnswerPlace | None:
    evidence = interpretation.evidence
    return AnswerPlace(by_id[evidence.passage_id], evidence.start) if evidence and evidence.passage_id in by_id else None


def _differ(a: t.Interpretation, b: t.Interpretation) -> bool:
    return not equal_for_display(a.answer, b.answer)


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _why_not(answer: str, view: PassageView, kind: float, probability: float) -> str:
    """Why a passage abstains."""
    span = answer if len(answer) <= 60 else f"{answer[:59]}…"
    if kind == 0:
        return f"the best span, '{span}', is not the kind of answer that the question asks for"
    if not view.reader or view.abstain > view.reader[0].probability:
        return f"the reader finds no answer here ({view.abstain:.0%} sure)"
    return f"the best span, '{span}', is not likely enough ({probability:.0%})"


def load_reader_generator(
    settings: Settings, abstain_below: float | None = None, verified_above: float | None = None
) -> ReaderGenerator:
    """Thresholds None: the reader's own.  Raises CheckpointError if the bundled weights are missing or damaged."""
    signals = signals_of(settings.reader)
    thresholds = (
        signals.abstain_below if abstain_below is None else abstain_below,
        signals.verified_above if verified_above is None else verified_above,
    )
    reader, digest = load_reader(settings.reader, settings.device)
    answerer, second = load_answerer(settings.answerer, settings.device)
    about = {"reader": settings.reader, "reader_digest": digest, "answerer": settings.answerer, "answerer_digest": second}
    return ReaderGenerator(reader, answerer, signals.weighing, *thresholds, about)
