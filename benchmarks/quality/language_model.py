"""What disambiguation costs under a language model: calls, input lengths and seconds a question (VerDICt, Table 1 and Figure 5).

    python -m core lm-server &                                       # or any endpoint in AMBISCOPE_LM_URL
    AMBISCOPE_LM_URL=http://127.0.0.1:8123/v1 python -m benchmarks.quality.language_model [--limit 5] [--top-k 20] [--out FILE]

Runs each system on the same questions in turn, question by question, so that all see the same load of the machine.  A question on which a system failed
is counted as failed and left out of the means.  Nothing is judged here: how right the interpretations are, `python -m core evaluate` says.

A model of 135 million parameters imagines one meaning and repeats it, so that `dtv` has next to nothing to search and verify.  With
`--imagined references` it is given the disambiguated questions of the references instead (what a strong model would imagine; the call that writes
them still takes place and counts): then its cost is that of Table 1.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.datasets import load
from core.engine import Engine
from core.errors import AmbiscopeError
from core.evaluation.cost import Cost, cost_of, mean_cost
from core.models.language.loading import require_language_model
from core.settings import ROOT, Settings, quiet_libraries
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.systems.dtv import DiversifyThenVerify
from core.types import AnsweringSystem, Question, ReferenceQuestion

SYSTEMS = ("verdict", "dtv", "dtv-unverified", "rac")


class Imagining:
    """A generator whose readings of a query are given; all else, and the cost of imagining, is the language model's."""

    def __init__(self, real: Any, readings: Sequence[str]) -> None:
        self.real, self.readings = real, list(readings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def pseudo_interpretations(self, query: str, n: int, run: Any) -> list[str]:
        self.real.pseudo_interpretations(query, n, run)
        return self.readings[:n]


def readings(question: ReferenceQuestion) -> list[str]:
    """The disambiguated questions of the annotation that has most."""
    return max(([p.question for p in a.pairs] for a in question.annotations), key=len)


def one(system: AnsweringSystem, text: str) -> tuple[dict[str, Any], Cost | None]:
    """The row of one question, with its cost; a failure is its message and has none."""
    started = time.perf_counter()
    try:
        prediction = answer(system, Question(text))
    except AmbiscopeError as error:
        seconds = time.perf_counter() - started
        print(f"{system.info.name:16} failed after {seconds:.1f} s: {error}", flush=True)
        return {"question": text, "failed": str(error), "seconds": seconds}, None
    cost = cost_of(prediction)
    found = [f"{i.question} -> {i.answer}" for i in prediction.interpretations]
    print(
        f"{system.info.name:16} {cost.seconds:6.1f} s  {cost.retriever_calls:.0f} searches, {cost.model_calls:.0f} calls of "
        f"{cost.passages_per_call or 0:.1f} passages, {cost.prompt_tokens:.0f} + {cost.completion_tokens:.0f} tokens, "
        f"{cost.failed_calls:.0f} failed; {len(found)} interpretations",
        flush=True,
    )
    return {"question": text, **asdict(cost), "interpretations": found}, cost


def summary(system: AnsweringSystem, rows: list[tuple[dict[str, Any], Cost | None]]) -> dict[str, Any]:
    costs = [cost for _, cost in rows if cost is not None]
    mean = mean_cost(costs)
    return {
        "about": dict(system.info.settings),
        "failed": len(rows) - len(costs),
        "mean": asdict(mean) if mean else None,
        "median_seconds": statistics.median(c.seconds for c in costs) if costs else None,
        "rows": [row for row, _ in rows],
    }


def main() -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=Path, default=ROOT / "data" / "starter" / "questions.json")
    parser.add_argument("--limit", type=int, default=5)
    parser.add_argument("--top-k", type=int, default=20)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument(
        "--imagined", choices=["model", "references"], default="model", help="who writes dtv's readings of a query"
    )
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    settings = Settings.from_env()
    try:
        require_language_model(settings)
        engine = Engine(settings)
        engine.warm("starter")
        questions = [q for q in load(args.questions) if q.ambiguous][: args.limit]
        systems = {n: engine.system(n, "starter", Options(top_k=args.top_k)) for n in args.systems.split(",")}
    except AmbiscopeError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    rows: dict[str, list[tuple[dict[str, Any], Cost | None]]] = {name: [] for name in systems}
    for question in questions:
        for name, system in systems.items():
            if args.imagined == "references" and isinstance(system, DiversifyThenVerify):
                system.generator = Imagining(getattr(system.generator, "real", system.generator), readings(question))
            rows[name].append(one(system, question.question))
    out = {name: summary(system, rows[name]) for name, system in systems.items()}
    for name, found in out.items():
        shown = f"{found['median_seconds']:.1f}" if found["median_seconds"] is not None else "-"
        print(f"{name:16} median {shown} s a question; {found['failed']} of {len(questions)} failed")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
