"""The generator without a language model: the bundled per-passage reader, with the answering model as second opinion.

The roles of Lee et al. 2025 (core.models.language.roles.Generator): relaxing leaves the query as it is; interpreting a passage is one call of the reader
over it (Eq. 8), which may abstain, and a minimal edit of the query that tells this passage from the others.  An interpretation's answer is always a
span of its passage.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core import types as t
from core.disambiguation.evidence import AnswerPlace
from core.disambiguation.scoring import MIN_PROBABILITY, ranked
from core.models.language.roles import Claim, Run
from core.models.span.answerer import SpanAnswerer, load_answerer
from core.models.span.reader import PassageReader, Readout, load_reader
from core.settings import Settings
from core.text import equal_for_display, overlapping

AT_A_TIME = 5  # passages per batch: small enough to show progress in the grid
EDITS_ASKED = 2  # edits tested per interpretation
RIVALS_ASKED = 3  # passages of other interpretations used in that test
RIVALS = 12  # other passages that an edit must differ from while their answers are unknown


class ReaderGenerator:
    """Implements `Generator`.  Can be shared between runs: each model serves one caller at a time."""

    name = "bundled reader"  # core.systems.BUNDLED_READER

    def __init__(self, reader: PassageReader, answerer: SpanAnswerer, about: Mapping[str, Any] | None = None) -> None:
        """`answerer`: tests whether a rewritten question has its answer."""
        self.reader, self.answerer = reader, answerer
        self.about: Mapping[str, Any] = {"generator": self.name, **(about or {})}

    def relax(self, query: str, run: Run) -> str:
        """Eq. 6 as the identity: retrieval already covers every meaning of a short question."""
        return query

    def interpret(self, query: str, passages: Sequence[t.Passage], run: Run) -> Iterator[tuple[int, t.Interpretation]]:
        for first in range(0, len(passages), AT_A_TIME):
            run.check()
            batch = range(first, min(first + AT_A_TIME, len(passages)))
            if run.seconds_left <= 0:
                for i in batch:
                    problem = "the time limit was reached before this passage was read"
                    run.count(t.ModelCalled("interpret", 1, 0, 0, 0.0, problem))
                    yield i, t.Interpretation(passages[i].id, failed=problem)
                continue
            for i, readout in zip(batch, self._read(query, [passages[i] for i in batch], run)):
                if isinstance(readout, str):
                    yield i, t.Interpretation(passages[i].id, failed=readout)
                else:
                    yield i, _interpretation(query, readout, passages)

    def _read(self, query: str, passages: Sequence[t.Passage], run: Run) -> list[Readout | str]:
        """One readout per passage, computed in one batch; if that fails, each passage is read alone, and a failure gives its error message."""
        start = time.perf_counter()
        readouts = self._attempt(query, passages)
        if any(isinstance(readout, str) for readout in readouts):
            readouts = [readout for passage in passages for readout in self._attempt(query, [passage])]
        seconds = (time.perf_counter() - start) / max(1, len(passages))
        for readout in readouts:
            run.count(t.ModelCalled("interpret", 1, 0, 0, seconds, readout if isinstance(readout, str) else ""))
        return readouts

    def _attempt(self, question: str, passages: Sequence[t.Passage], candidates: int = 5) -> list[Readout | str]:
        """One readout per passage, read in one batch; a single error message if that fails."""
        try:
            return list(self.reader.read(question, passages, candidates))
        except Exception as e:
            return [_message(e)]

    def distinguish(
        self, query: str, interpretations: Sequence[t.Interpretation], passages: Sequence[t.Passage], run: Run
    ) -> list[tuple[t.Interpretation, bool]]:
        """The final interpretations with questions that distinguish them, and whether the answering model, asked such a question over the passage
        and those of others, returns the answer.  A single interpretation keeps the query."""
        by_id = {p.id: p for p in passages}
        places = [_place(i, by_id) for i in interpretations]
        if len(interpretations) == 1 and places[0] is not None:
            nearby = list({p.id: p for p in (places[0].passage, *passages[:RIVALS_ASKED])}.values())
            (passes,) = self._asked_back([(0, query, nearby)], interpretations, run)
            return [(replace(interpretations[0], question=query), passes)]
        jobs: list[tuple[int, str, list[t.Passage]]] = []
        first: dict[int, str] = {}
        for n, (i, place) in enumerate(zip(interpretations, places)):
            if place is None:
                continue
            others = [p for o, p in zip(interpretations, places) if p is not None and not equal_for_display(o.answer, i.answer)]
            edits = [e.question for e in ranked(query, i.answer, place, others)]
            nearby = list({p.passage.id: p.passage for p in (place, *others)}.values())[: RIVALS_ASKED + 1]
            jobs += [(n, edit, nearby) for edit in edits[:EDITS_ASKED]]
            if good := ranked(query, i.answer, place, others, MIN_PROBABILITY):
                first[n] = good[0].question
        passed: dict[int, str] = {}
        for (n, edit, _), passes in zip(jobs, self._asked_back(jobs, interpretations, run)):
            if passes:
                passed.setdefault(n, edit)
        out = []
        for n, i in enumerate(interpretations):
            worded = passed.get(n) or first.get(n)
            out.append((replace(i, question=worded) if worded else i, n in passed))
        return out

    def _asked_back(
        self, jobs: Sequence[tuple[int, str, list[t.Passage]]], interpretations: Sequence[t.Interpretation], run: Run
    ) -> list[bool]:
        if not jobs or run.seconds_left <= 0:
            return [False] * len(jobs)
        run.check()
        start, error = time.perf_counter(), ""
        requests = [(question, [t.RetrievedPassage(p, r, 0.0) for r, p in enumerate(ps, 1)], ()) for _, question, ps in jobs]
        out: list[bool] = []
        try:
            for (n, _, _), proposal in zip(jobs, self.answerer.propose_many(requests)):
                top = proposal.candidates[0] if proposal.candidates else None
                is_sure = top is not None and top.probability > proposal.eoi_probability
                out.append(bool(is_sure and top and overlapping(top.text, interpretations[n].answer)))
        except Exception as e:  # the edits are kept untested
            error, out = _message(e), [False] * len(jobs)
        passages_read = sum(len(ps) for _, _, ps in jobs)
        run.count(t.ModelCalled("round trip", passages_read, 0, 0, time.perf_counter() - start, error))
        return out

    def verify(self, claims: Sequence[Claim], run: Run) -> list[bool | None]:
        """A claim holds if the reader gives its answer to its question from one of its passages."""
        out: list[bool | None] = []
        for claim in claims:
            run.check()
            readouts = self._answers_to(claim, run)
            agreements = [
                r.best is not None and overlapping(r.best.text, claim.answer) for r in readouts if isinstance(r, Readout)
            ]
            out.append(True if any(agreements) else None if len(agreements) < len(readouts) else False)
        return out

    def _answers_to(self, claim: Claim, run: Run) -> list[Readout | str]:
        start = time.perf_counter()
        if run.seconds_left <= 0:
            return ["the time limit was reached"]
        readouts = self._attempt(claim.question, claim.passages, 1)
        error = next((f for f in readouts if isinstance(f, str)), "")
        run.count(t.ModelCalled("verify", len(claim.passages), 0, 0, time.perf_counter() - start, error))
        return readouts

    def answer(self, question: str, passages: Sequence[t.Passage], run: Run) -> str | None:
        """The likeliest span of the passages on which the reader does not abstain."""
        run.check()
        answers = [r.best for r in self._read(question, passages, run) if isinstance(r, Readout) and r.best is not None]
        return max(answers, key=lambda c: c.probability).text if answers else None


def _place(interpretation: t.Interpretation, by_id: Mapping[str, t.Passage]) -> AnswerPlace | None:
    evidence = interpretation.evidence
    return AnswerPlace(by_id[evidence.passage_id], evidence.start) if evidence and evidence.passage_id in by_id else None


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _interpretation(query: str, readout: Readout, passages: Sequence[t.Passage]) -> t.Interpretation:
    passage = readout.passage
    best = readout.best
    if best is None or best.evidence is None:
        return t.Interpretation(passage.id, abstained=f"no answer here ({readout.abstain_probability:.0%} confident)")
    rivals = [AnswerPlace(other, 0) for other in passages[: RIVALS + 1] if other is not passage]
    edits = ranked(query, best.text, AnswerPlace(passage, best.evidence.start), rivals, MIN_PROBABILITY)
    question = edits[0].question if edits else query
    return t.Interpretation(passage.id, question, best.text, best.probability, best.evidence)


def load_reader_generator(settings: Settings) -> ReaderGenerator:
    """Raises CheckpointError if the bundled weights are missing or damaged."""
    reader, digest = load_reader(settings.reader, settings.device)
    answerer, answerer_digest = load_answerer(settings.answerer, settings.device)
    about = {
        "reader": settings.reader,
        "reader_digest": digest,
        "answerer": settings.answerer,
        "answerer_digest": answerer_digest,
    }
    return ReaderGenerator(reader, answerer, about)
