"""Every figure of a grounded system on one question file: grounded metrics, calls (VerDICt's Table 1), seconds, and what was shown without support.

    python -m benchmarks.quality.verdict [--system verdict] [--limit N] [--corpus starter] [--judge references] [--set clustering=conservative] [--out FILE]

Without a language model configured `verdict` runs on the bundled readers.  The judge is the references by default: the question file's own
annotations of which passage supports which answer, so no model judges itself.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from core import types as t
from core.commands.evaluate import read_pairs
from core.datasets import load
from core.engine import Engine
from core.evaluation.judge import load_judge
from core.evaluation.report import build_report
from core.evaluation.run import run_one
from core.settings import ROOT, Settings, quiet_libraries
from core.systems import passages_to_read
from core.systems.base.options import Options

GROUNDED = ("interpretations", "Sufficient%", "ungrounded precision", "ungrounded recall", "G-precision", "G-recall", "G-F1")


class Recorded:
    """A system whose last run's events stay at hand."""

    def __init__(self, system: t.AnsweringSystem) -> None:
        self.system, self.info = system, system.info
        self.events: list[t.Event] = []

    def run(self, question: t.Question) -> Any:
        self.events = []
        for event in self.system.run(question):
            self.events.append(event)
            yield event


def promises(events: list[t.Event], k: int) -> dict[str, bool]:
    """What every single run must keep."""
    passages = {p.passage.id: p.passage for e in events if isinstance(e, t.PassagesRetrieved) for p in e.passages}
    final = [i for e in events if isinstance(e, t.InterpretationsChosen) for i in e.interpretations]
    return {
        "one retrieval": sum(isinstance(e, t.PassagesRetrieved) for e in events) == 1,
        "at most k interpreting calls": sum(isinstance(e, t.ModelCalled) and e.role == "interpret" for e in events) <= k,
        "every interpretation's passage contains its answer": all(
            i.passage_id in passages and i.answer in passages[i.passage_id].text for i in final
        ),
    }


def main() -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", default="verdict")
    parser.add_argument("--questions", type=Path, default=ROOT / "data" / "starter" / "questions.json")
    parser.add_argument("--corpus", default="starter")
    parser.add_argument("--judge", default="references")
    parser.add_argument("--top-k", type=int, default=0, help="default: the system's own")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--every", type=int, default=1, help="every N-th question, for a quick look over all kinds")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the system")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    settings = Settings.from_env()
    k = args.top_k or passages_to_read(args.system, settings.top_k)
    questions = load(args.questions)[:: args.every][: args.limit]
    judge = load_judge(args.judge, settings)
    system = Recorded(Engine(settings).system(args.system, args.corpus, Options(top_k=k, extra=read_pairs(args.set))))
    list(system.run(t.Question(questions[0].question)))  # loads what is loaded at the first question
    rows, kept, stages = [], Counter[str](), Counter[str]()
    for number, question in enumerate(questions, 1):
        row = run_one(system, question, judge)
        rows.append(row)
        if row["error"] is None:
            kept.update(name for name, ok in promises(system.events, k).items() if ok)
            stages.update({e.role: e.seconds for e in system.events if isinstance(e, t.ModelCalled)})
        print(f"{number} of {len(questions)}", end="\r", file=sys.stderr)
    report = build_report(rows, system.info, seed=0, bootstrap=1000, questions_digest="", judge=dict(judge.about))
    fine = [r for r in report.rows if r["error"] is None]
    said = [i for r in fine for i in r["interpretations"] or ()]
    errors = Counter((bool(i["relevant"]), bool(i["answerable"]), bool(i["right"])) for i in said)
    out = {
        "system": args.system,
        "n": report.n,
        "failed": report.failed,
        "judge": report.provenance["judge"],
        "scores": {name: report.scores[name] for name in GROUNDED if name in report.scores},
        "intervals": {name: report.intervals[name] for name in GROUNDED if name in report.intervals},
        "F1 answer": report.scores["F1 answer"],
        "G-precision over all interpretations": sum(bool(i["supported"]) for i in said) / len(said) if said else None,
        "questions without an interpretation": sum(not r["interpretations"] for r in fine),
        "error analysis (relevant, answerable, right)": {
            ", ".join(f"{'' if yes else 'not '}{what}" for yes, what in zip(key, ("relevant", "answerable", "right"))): n
            for key, n in errors.most_common()
        },
        "kept": {name: f"{kept[name]} of {len(fine)}" for name in promises([], k)},
        "calls a question": {name: statistics.mean(r["cost"]["calls_by_role"].get(name, 0) for r in fine) for name in stages},
        "seconds": {name: report.timings[name] for name in ("seconds_median", "seconds_p95")},
        "threads": torch.get_num_threads(),
        "settings": report.provenance["settings"],
        "commit": report.provenance["commit"],
    }
    text = json.dumps(out, indent=1, ensure_ascii=False)
    print(text)
    if args.out:
        args.out.write_text(text, encoding="utf-8")
    return 0 if report.failed < report.n else 1


if __name__ == "__main__":
    sys.exit(main())
