"""R@k and MRecall@k of a corpus's retrievers on a question file, as a report.

Source: Karpukhin et al. 2020 (R@k) and Min et al. 2021, section 2 (MRecall@k); the metrics are core.metrics.retrieval's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, get_args

from core import types as t
from core.errors import InputError
from core.evaluation.report import Report, build_provenance, counts_of, peak_memory_mb, percentile, row_head
from core.metrics.base import mean
from core.metrics.retrieval import mrecall_at_k, recall_at_k
from core.metrics.significance.bootstrap import BOOTSTRAP_SAMPLES, interval
from core.retrieval.library import Corpus
from core.types import Scope

RETRIEVERS = ("dense", "bm25", "hybrid")
DEFAULT_KS = (1, 5, 10, 20, 50, 100)
_BATCH = 64  # questions per batch
SCOPES = get_args(Scope)


def evaluate_retrieval(
    corpus: Corpus,
    questions: Sequence[t.ReferenceQuestion],
    retriever: str,
    *,
    ks: Sequence[int] = DEFAULT_KS,
    limit: int | None = None,
    seed: int = 0,
    about: dict[str, Any] | None = None,
) -> Report:
    """Searches once per question with the largest k and measures every k.  Questions without an answer are left out.

    Seconds are those of a batch, divided evenly.  Raises InputError for wrong ks, a wrong limit, an unknown retriever
    or no question with an answer.
    """
    if not ks or min(ks) < 1:
        raise InputError(f"the numbers of passages are {', '.join(map(str, ks)) or 'none'}; each must be at least 1")
    if limit is not None and limit < 1:
        raise InputError(f"the limit is {limit}; it must be at least 1")
    wanted = [q for q in questions if any(a.pairs for a in q.annotations)][:limit]
    if not wanted:
        raise InputError("no question has an answer to look for; give a file with references")
    cuts = sorted(set(ks))
    rows = []
    for start in range(0, len(wanted), _BATCH):
        part = wanted[start : start + _BATCH]
        began = time.perf_counter()
        found = corpus.search_many([q.question for q in part], cuts[-1], retriever)
        seconds = (time.perf_counter() - began) / len(part)
        rows += [_row(q, [p.passage.text for p in ps], cuts, seconds) for q, ps in zip(part, found, strict=True)]
    names = list(rows[0]["metrics"])
    scores, intervals = {}, {}
    for name in names:
        values = {s: [r["metrics"][name] for r in rows if s == "all" or r["ambiguous"]] for s in SCOPES}
        scores[name] = {s: mean(values[s]) for s in SCOPES}
        ends = {s: interval(values[s], seed=seed) for s in SCOPES}
        intervals[name] = {s: list(e) if e else None for s, e in ends.items()}
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
        scores=scores,
        intervals=intervals,
        by_source={},
        by_ambiguity={},
        timings={
            "seconds_median": percentile([r["seconds"] for r in rows], 0.5),
            "seconds_p95": percentile([r["seconds"] for r in rows], 0.95),
            "peak_memory_mb": peak_memory_mb(),
        },
        provenance=build_provenance(info, seed, BOOTSTRAP_SAMPLES, wanted, about),
        counts=counts_of(rows, names),
    )


def _row(question: t.ReferenceQuestion, texts: list[str], ks: Sequence[int], seconds: float) -> dict[str, Any]:
    sets = [tuple(p.answers for p in a.pairs) for a in question.annotations if a.type != "none" and a.pairs]
    metrics: dict[str, float] = {}
    for label, measure in (("R", recall_at_k), ("MRecall", mrecall_at_k)):
        metrics |= {f"{label}@{k}": max(measure(texts, answers, k) for answers in sets) for k in ks}
    return row_head(question) | {
        "error": None,
        "answers": [],
        "passages": len(texts),
        "metrics": metrics,
        "weights": {},
        "seconds": seconds,
    }
