"""R@k and MRecall@k of a corpus's retrievers on a question file, as a report.

Source: Karpukhin et al. 2020 (R@k) and Min et al. 2021, section 2 (MRecall@k); the metrics are core.metrics.retrieval's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from core import types as t
from core.errors import InputError
from core.evaluation.report import (
    Report,
    build_provenance,
    counts_of,
    digest_of,
    intervals_of,
    peak_memory_mb,
    percentile,
    row_head,
)
from core.metrics.base import Example
from core.metrics.retrieval import mrecall, recall
from core.metrics.score.scoring import table
from core.metrics.significance.bootstrap import BOOTSTRAP_SAMPLES
from core.retrieval.library import Corpus

RETRIEVERS = ("dense", "bm25", "hybrid")
DEFAULT_KS = (1, 5, 10, 20, 50, 100)
_BATCH_QUESTIONS = 64  # questions per batch


def evaluate_retrieval(
    corpus: Corpus,
    questions: Sequence[t.ReferenceQuestion],
    retriever: str,
    *,
    ks: Sequence[int] = DEFAULT_KS,
    limit: int | None = None,
    seed: int = 0,
    facts: dict[str, Any] | None = None,
) -> Report:
    """Searches once per question with the largest k, and measures every k.  Questions without an answer are left out.

    Seconds are those of a batch, divided evenly.  `facts`: plain values for the provenance.  Raises InputError for wrong ks, a wrong limit, an unknown retriever
    or no question with an answer.
    """
    if not ks or min(ks) < 1:
        raise InputError(f"the numbers of passages are {', '.join(map(str, ks)) or 'none'}; each must be at least 1")
    if limit is not None and limit < 1:
        raise InputError(f"the limit is {limit}; it must be at least 1")
    answerable = [q for q in questions if any(a.pairs for a in q.annotations)][:limit]
    if not answerable:
        raise InputError("no question has an answer to look for; give a file with references")
    cuts = sorted(set(ks))
    rows = []
    for start in range(0, len(answerable), _BATCH_QUESTIONS):
        batch = answerable[start : start + _BATCH_QUESTIONS]
        began = time.perf_counter()
        results = corpus.search_many([q.question for q in batch], cuts[-1], retriever)
        seconds = (time.perf_counter() - began) / len(batch)
        rows += [_row(q, tuple(p.passage.text for p in ps), cuts, seconds) for q, ps in zip(batch, results, strict=True)]
    names = list(rows[0]["metrics"])
    info = t.SystemInfo(
        f"retrieval {retriever}",
        {"retriever": retriever, "index_kind": corpus.manifest.kind, "encoder": corpus.encoder, "ks": cuts},
        corpus.name,
        corpus.digest,
    )
    return Report(
        n=len(rows),
        failed=0,
        rows=rows,
        scores=table([r["metrics"] for r in rows], [r["ambiguous"] for r in rows], names),
        intervals=intervals_of(rows, names, seed, BOOTSTRAP_SAMPLES),
        by_source={},
        by_ambiguity={},
        timings={
            "seconds_median": percentile([r["seconds"] for r in rows], 0.5),
            "seconds_p95": percentile([r["seconds"] for r in rows], 0.95),
            "peak_memory_mb": peak_memory_mb(),
        },
        provenance=build_provenance(info, seed, BOOTSTRAP_SAMPLES, digest_of(answerable), facts),
        counts=counts_of(rows, names),
    )


def _row(question: t.ReferenceQuestion, texts: tuple[str, ...], ks: Sequence[int], seconds: float) -> dict[str, Any]:
    examples = {k: Example(question.question, question.annotations, (), passages=texts, k=k) for k in ks}
    measures = {"R": recall, "MRecall": mrecall}
    metrics = {f"{label}@{k}": measure(e) for label, measure in measures.items() for k, e in examples.items()}
    return row_head(question) | {
        "error": None,
        "answers": [],
        "passages": len(texts),
        "metrics": metrics,
        "weights": {},
        "seconds": seconds,
    }
