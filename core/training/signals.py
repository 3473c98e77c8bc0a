"""Fits the signals that `verdict` relies on without a language model (core.models.ranking.passage_signals), on
questions held out from training.

The two models' outputs for each question's 20 passages are kept under AMBISCOPE_HOME/cache, so fitting again takes
seconds.  The weights are fitted on all held-out questions.  The thresholds are chosen by cross-validation over blocks
of neighbouring questions: the best grounded F1 among those with a G-precision of at least PRECISE, because what is
shown should be right.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from core.disambiguation.consolidation import by_answer
from core.errors import InputError
from core.metrics.answers import is_match
from core.metrics.grounding import harmonic
from core.models.ranking.passage_signals import PassageView, QuestionSignals, Reading, Weighing, answerer_views, readings
from core.models.ranking.signal_weights import Signals
from core.settings import Settings
from core.training.data.examples import MultiExample
from core.training.data.held_out_passages import held_out_passages
from core.types import Candidate, Evidence, Passage, RetrievedPassage

TOP_K = 20
SPANS = 6
FOLDS = 6
STRENGTH = 0.3  # inverse strength of the L2 penalty of the passages' regression, over standardised signals
PENALTY = 20.0  # of the squared weights of the readings' logit, over standardised signals; 1 and 5 were no better
PRECISE = 0.85


@dataclass(frozen=True)
class SignalExample:
    """One question and its passages as both models read them."""

    example: MultiExample
    views: list[PassageView]


def see(
    settings: Settings, folders: Sequence[Path], limit: int, log: Callable[[str], None], seed: int = 0
) -> list[SignalExample]:
    """Reads every question's passages with both models, or takes them from the cache of an earlier call with these
    weights.

    `limit`: most questions (0: all).  Raises InputError, FormatError, CheckpointError.
    """
    import torch

    from core.engine import Engine
    from core.models.span.answerer import load_answerer
    from core.models.span.reader import load_reader

    reader, first = load_reader(settings.reader, settings.device)
    answerer, second = load_answerer(settings.answerer, settings.device)
    engine = Engine(settings)
    examples, passages = held_out_passages(engine, folders, TOP_K, limit, seed)
    corpora = sha256("".join(engine.corpus(f.resolve().name).digest for f in folders).encode()).hexdigest()
    path = settings.home / "cache" / f"verdict-{corpora[:12]}-{first[:12]}-{second[:12]}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {row["question"]: row for row in map(json.loads, path.open(encoding="utf-8"))} if path.exists() else {}
    log(f"{len(kept)} questions in {path}")
    todo = [(e, p) for e, p in zip(examples, passages) if e.question not in kept]
    with path.open("a", encoding="utf-8") as stream, torch.inference_mode():
        for number, (example, found) in enumerate(todo, 1):
            views = answerer_views(answerer, example.question, found, SPANS)
            outs = reader.read(example.question, [f.passage for f in found], SPANS)
            views = [replace(v, abstain=o.abstain_probability, reader=o.candidates) for v, o in zip(views, outs)]
            row = {"question": example.question, "passages": [_to_json(v) for v in views]}
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
            stream.flush()
            kept[example.question] = row
            if number % 20 == 0 or number == len(todo):
                log(f"read {number} of {len(todo)}")
    rows = [(e, kept[e.question]) for e in examples if e.question in kept]
    return [SignalExample(e, [_from_json(p, rank) for rank, p in enumerate(row["passages"], 1)]) for e, row in rows]


def _span(c: Candidate, value: float) -> list[Any]:
    return [c.text, c.evidence.start if c.evidence else 0, c.evidence.end if c.evidence else 0, value]


def _to_json(view: PassageView) -> dict[str, Any]:
    p = view.found.passage
    return {
        "id": p.id,
        "title": p.title,
        "text": p.text,
        "cos": view.found.similarity,
        "abstain": view.abstain,
        "reader": [_span(c, c.probability) for c in view.reader],
        "answerer": [_span(c, logp) for c, logp in view.answerer],
    }


def _from_json(row: dict[str, Any], rank: int) -> PassageView:
    def candidate(s: list[Any], probability: float) -> Candidate:
        return Candidate(s[0], probability, Evidence(row["id"], s[1], s[2], s[0]))

    return PassageView(
        RetrievedPassage(Passage(row["id"], row["title"], row["text"]), rank, 0.0, row["cos"]),
        row["abstain"],
        tuple(candidate(s, s[3]) for s in row["reader"][:SPANS]),
        tuple((candidate(s, 0.0), s[3]) for s in row["answerer"][:SPANS]),
    )


# ---------------------------------------------------------------- fitting


@dataclass(frozen=True)
class Row:
    """One passage of one question: its signals, its readings, and whether the annotations call them right."""

    question: int
    passage: str
    signals: dict[str, float]
    readings: list[Reading]
    relevant: bool
    right: list[bool]


def rows_of(seen: Sequence[SignalExample]) -> list[Row]:
    """All passages of all questions as rows."""
    out = []
    for number, one in enumerate(seen):
        asked = QuestionSignals(one.example.question, one.views)
        for rank, view in enumerate(one.views):
            pid = view.found.passage.id
            gold = [g for g, ids in zip(one.example.gold, one.example.extra["supporting_of"]) if pid in ids]
            found = readings(one.example.question, view)
            right = [any(is_match(g, r.candidate.text) for g in gold) for r in found]
            out.append(Row(number, pid, asked.passage(rank, view), found, bool(gold), right))
    return out


def _fit(signals: Sequence[dict[str, float]], labels: Sequence[bool]) -> tuple[dict[str, float], float]:
    """Weights and bias for the raw signals; the regression itself sees them standardised."""
    from sklearn.linear_model import LogisticRegression

    names = list(signals[0])
    x = np.array([[s[n] for n in names] for s in signals])
    mean, spread = x.mean(0), np.maximum(x.std(0), 1e-6)
    model = LogisticRegression(C=STRENGTH, max_iter=5000).fit((x - mean) / spread, labels)
    weights = model.coef_[0] / spread
    bias = float(model.intercept_[0] - (weights * mean).sum())
    return {n: round(float(w), 4) for n, w in zip(names, weights)}, round(bias, 4)


def _fit_readings(rows: Sequence[Row]) -> tuple[dict[str, float], float]:
    """A conditional logit: a passage's right spans against its other spans and against none (McFadden 1974), by L-BFGS."""
    import torch

    rows = [r for r in rows if r.readings]
    names = list(rows[0].readings[0].signals)
    count = max(len(r.readings) for r in rows)
    x = np.zeros((len(rows), count, len(names)))  # (passages, spans, signals)
    there, right = np.zeros((len(rows), count), bool), np.zeros((len(rows), count + 1), bool)
    for i, row in enumerate(rows):
        n = len(row.readings)
        x[i, :n] = [[reading.signals[name] for name in names] for reading in row.readings]
        there[i, :n], right[i, :n], right[i, count] = True, row.right, not any(row.right)
    spread = np.maximum(x[there].std(0), 1e-6)
    inputs, mask, target = torch.from_numpy(x / spread), torch.from_numpy(there), torch.from_numpy(right)
    weight = torch.zeros(len(names), dtype=torch.float64, requires_grad=True)
    nothing = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, nothing], max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> Any:
        optimizer.zero_grad()
        logits = (inputs @ weight).masked_fill(~mask, -1e9)
        shares = torch.log_softmax(torch.cat([logits, nothing.expand(len(rows), 1)], 1), 1)
        value = -torch.logsumexp(shares.masked_fill(~target, -1e9), 1).sum() + PENALTY / 2 * (weight**2).sum()
        value.backward()
        return value

    optimizer.step(loss)
    found = weight.detach().numpy() / spread
    return {n: round(float(w), 4) for n, w in zip(names, found)}, round(float(nothing.detach()[0]), 4)


def fit(rows: Sequence[Row]) -> Weighing:
    """Fits the passages' regression on all rows, and the readings' logit on relevant ones only.

    The logit says which span is right, not whether there is one.
    """
    passage = _fit([r.signals for r in rows], [r.relevant for r in rows])
    return Weighing(*passage, *_fit_readings([r for r in rows if r.relevant]))


@dataclass(frozen=True)
class Proposed:
    """One interpretation that the signals would propose.  `question`: its index."""

    question: int
    passage: str
    answer: str
    probability: float


def propose(weighing: Weighing, rows: Sequence[Row]) -> list[Proposed]:
    """The likeliest reading of each row that has one, with its probability."""
    out = []
    for row in rows:
        if row.readings:
            right = weighing.right(row.readings)
            best = int(np.argmax(right))
            p = right[best] * weighing.relevance(row.signals)
            out.append(Proposed(row.question, row.passage, row.readings[best].candidate.text, p))
    return out


def held_out(rows: Sequence[Row], questions: int) -> list[Proposed]:
    """Proposals for each block of neighbouring questions, by weights fitted on the other blocks."""
    fold = [q * FOLDS // questions for q in range(questions)]
    out: list[Proposed] = []
    for f in range(FOLDS):
        weighing = fit([r for r in rows if fold[r.question] != f])
        out += propose(weighing, [r for r in rows if fold[r.question] == f])
    return out


def figures(found: Sequence[Proposed], seen: Sequence[SignalExample], abstain: float, verified: float) -> dict[str, float]:
    """Grounded precision, recall and F1, after merging, judged by the annotations.

    Unclustered interpretations count if their probability is at least `verified`, others if it is at least `abstain`.
    """
    precisions, recalls, counts = [], [], []
    by_question: dict[int, list[Proposed]] = {}
    for p in found:
        if p.probability >= abstain:
            by_question.setdefault(p.question, []).append(p)
    for number, one in enumerate(seen):
        some = by_question.get(number, [])
        labels = by_answer(np.zeros(len(some), np.int64), [p.answer for p in some]).tolist()
        groups: dict[int, list[Proposed]] = {}
        for i, (label, p) in enumerate(zip(labels, some)):
            if label >= 0 or p.probability >= verified:
                groups.setdefault(label if label >= 0 else -1 - i, []).append(p)
        shown = [max(g, key=lambda p: p.probability) for g in groups.values()]
        pairs = list(zip(one.example.gold, one.example.extra["supporting_of"]))
        hits = [[is_match(g, p.answer) and p.passage in ids for g, ids in pairs] for p in shown]
        if shown:
            precisions.append(sum(map(any, hits)) / len(shown))
        recalls.append(sum(any(h[k] for h in hits) for k in range(len(pairs))) / len(pairs))
        counts.append(len(shown))
    precision = sum(precisions) / len(precisions) if precisions else 0.0
    recall = sum(recalls) / len(recalls)
    f1 = harmonic(precision, recall) or 0.0
    f05 = 1.25 * precision * recall / (0.25 * precision + recall) if recall else 0.0
    return {"abstain_below": abstain, "verified_above": verified, "g_precision": round(precision, 4), "g_recall": round(recall, 4), "g_f1": round(f1, 4), "g_f05": round(f05, 4), "interpretations": round(sum(counts) / len(counts), 2), "silent": round(counts.count(0) / len(counts), 4)}  # fmt: skip


def thresholds(found: Sequence[Proposed], seen: Sequence[SignalExample]) -> tuple[dict[str, float], list[dict[str, float]]]:
    """(the best thresholds with their figures, the figures of all pairs of thresholds).

    Best: the highest grounded F1 among pairs with a G-precision of at least PRECISE; among all pairs if none has it.
    """
    grid = [round(float(x), 2) for x in np.arange(0.1, 0.82, 0.04)]
    table = [figures(found, seen, a, v) for a, v in itertools.product(grid, grid) if v >= a]
    precise = [row for row in table if row["g_precision"] >= PRECISE] or table
    return max(precise, key=lambda row: row["g_f1"]), table


def fit_signals(seen: Sequence[SignalExample], fitted_on: str = "") -> tuple[Signals, list[dict[str, float]]]:
    """(weights fitted on all questions, with cross-validated thresholds and figures; the figures of every pair of
    thresholds).

    Raises InputError for fewer than 2 x FOLDS questions, and if every passage, or none, holds an answer.
    """
    if len(seen) < 2 * FOLDS:
        raise InputError(f"{len(seen)} annotated questions are too few to fit signals; give at least {2 * FOLDS}")
    rows = rows_of(seen)
    if len({row.relevant for row in rows}) < 2:
        raise InputError(
            "every retrieved passage holds an answer, or none does: there is nothing to fit; give other annotated questions"
        )
    best, table = thresholds(held_out(rows, len(seen)), seen)
    abstain, verified = best["abstain_below"], best["verified_above"]
    measured = {name: value for name, value in best.items() if name not in ("abstain_below", "verified_above")}
    return Signals(fit(rows), abstain, verified, fitted_on, measured), table
