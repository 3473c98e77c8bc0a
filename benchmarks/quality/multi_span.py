"""The loop against one pass of the same network, everything else equal, on questions whose answers are in one passage (Quoref, MultiSpanQA).

    python -m benchmarks.quality.multi_span --data DATA [--limit N] [--tune 150] [--rehearse] [--out FILE]

The answering model (AMBISCOPE_ANSWERER) runs once through its loop, up to 8 answers, for each question of DATA/multi/dev of these sources, in random
order.  `one pass` takes the spans of the first step alone, without any answer in the prompt; `one pass of the reader` those of the passage read by
AMBISCOPE_READER, which can be the same network.  Each stops by one limit ([EOI]'s bias, or the probability that an answer needs), chosen in the same way:
for the best F1 on --tune questions of DATA/multi/train of these sources, half of them with several answers, which the network may have been trained
on.  No answer shares words with an earlier one.  F1 answer with bootstrap intervals over questions, paired differences from `one pass`, by the number of answers in
the passage.  The test questions are to be asked once, with final weights: --rehearse asks further questions of multi/train instead.  Answers are
kept in --out, and no question is asked twice.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.paper import MULTI_SPAN, groups, table
from core import disk, json_io
from core.metrics.answers import f1
from core.models.span.answerer import Decoding, SpanAnswerer, load_answerer
from core.models.span.reader import PassageReader, load_reader
from core.settings import Settings, quiet_libraries
from core.systems.base.selection import candidates_of, distinct
from core.types import Candidate, Passage, RetrievedPassage

MAX_ANSWERS = 8
CANDIDATES = 32  # of one pass
TRAINED_ON = ("quoref", "multispanqa")  # sources of DATA/multi/train
Scored = list[tuple[str, float]]  # answers in order; each needs a limit of at most its number


@dataclass(frozen=True)
class Way:
    """One way of finding answers."""

    name: str
    find: Callable[[str, Sequence[RetrievedPassage]], Scored]


def looped(answerer: SpanAnswerer, question: str, passages: Sequence[RetrievedPassage]) -> Scored:
    """Each step's answer with its log odds against [EOI]."""
    scored: Scored = []
    while len(scored) < MAX_ANSWERS:
        proposal = answerer.propose(question, passages, [text for text, _ in scored])
        if not proposal.candidates:
            break
        top = proposal.candidates[0]
        odds = math.log(max(top.probability, 1e-12)) - math.log(max(proposal.eoi_probability, 1e-12))
        # the loop has ended before a later, likelier one
        scored.append((top.text, min(odds, scored[-1][1]) if scored else odds))
    return scored


def once(candidates: Sequence[Candidate]) -> Scored:
    return [(c.text, math.log(max(c.probability, 1e-12))) for c in distinct(candidates)[:MAX_ANSWERS]]


def ways(answerer: SpanAnswerer, reader: PassageReader) -> list[Way]:
    def read(question: str, passages: Sequence[RetrievedPassage]) -> Scored:
        readouts = reader.read(question, [p.passage for p in passages], CANDIDATES)
        return once(candidates_of(readouts, "dpr", CANDIDATES))

    return [
        Way("one pass", lambda question, passages: once(answerer.propose(question, passages, []).candidates)),
        Way("loop", lambda question, passages: looped(answerer, question, passages)),
        Way("one pass of the reader", read),
    ]


def answers_of_ways(ways: Sequence[Way], rows: Sequence[dict[str, Any]], out: Path) -> list[dict[str, Scored]]:
    """Each way's answers for each row, read from `out` if they are there already."""
    answers_by_id = {row["id"]: row["found"] for _, row in json_io.read_lines(out)} if out.exists() else {}
    for number, row in enumerate(rows, 1):
        if row["id"] in answers_by_id:
            continue
        passages = [
            RetrievedPassage(Passage(str(j), p.get("title") or "", p["text"]), j + 1, 0.0)
            for j, p in enumerate(row["passages"])
        ]
        answers_by_id[row["id"]] = {way.name: way.find(row["question"], passages) for way in ways}
        disk.append_line(out, json.dumps({"id": row["id"], "found": answers_by_id[row["id"]]}) + "\n", "start again to go on")
        if number % 25 == 0:
            print(f"{number} of {len(rows)} questions", file=sys.stderr, flush=True)
    return [answers_by_id[row["id"]] for row in rows]


def above_limit(scored: Scored, limit: float) -> list[str]:
    return [text for text, score in scored if score >= limit]


def best_limit(scored_rows: Sequence[Scored], rows: Sequence[dict[str, Any]]) -> float:
    """The limit of the best mean F1: of equal ones, the middle one."""
    scores = sorted({score for scored in scored_rows for _, score in scored})
    limits = [scores[i * (len(scores) - 1) // 60] for i in range(61)] if len(scores) > 61 else scores
    totals = [sum(f1(row["answers"], above_limit(scored, limit)) for scored, row in zip(scored_rows, rows)) for limit in limits]
    best = [i for i, value in enumerate(totals) if value == max(totals)]
    return limits[best[len(best) // 2]]


def questions(file: Path, sources: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of these sources that have answers, in random order."""
    rows = [row for _, row in json_io.read_lines(file) if row["source"] in sources and row["answers"]]
    random.Random(0).shuffle(rows)
    return rows


def balanced(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Alternates questions with one answer and with several, in equal numbers, because nine tenths of Quoref's have one and the
    test questions don't."""
    several = [row for row in rows if len(row["answers"]) > 1]
    single = [row for row in rows if len(row["answers"]) == 1]
    return [row for pair in zip(several, single) for row in pair]


def report(rows: Sequence[dict[str, Any]], answers: Sequence[Sequence[str]]) -> dict[str, Any]:
    """A report in the form of `core evaluate`, with as much as a table needs."""
    values = [f1(row["answers"], texts) for texts, row in zip(answers, rows)]
    return {
        "rows": [
            {"id": row["id"], "ambiguous": len(row["answers"]) > 1, "metrics": {"F1 answer": value}}
            for row, value in zip(rows, values)
        ]
    }


def lines(args: argparse.Namespace) -> Iterator[str]:
    settings = Settings.from_env()
    answerer, digest = load_answerer(settings.answerer, settings.device, Decoding(eoi_bias=0.0, candidates=CANDIDATES))
    reader, reader_digest = load_reader(settings.reader, settings.device)
    train = balanced(questions(args.data / "multi" / "train.jsonl.gz", TRAINED_ON))
    tuning, other_rows = train[: args.tune], train[args.tune :]
    rows = (other_rows if args.rehearse else questions(args.data / "multi" / "dev.jsonl.gz", MULTI_SPAN))[: args.limit or None]
    out = args.out or settings.runs_dir / "multi_span" / f"{digest}-{reader_digest}.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    all_ways = ways(answerer, reader)
    tuning_answers, answers = answers_of_ways(all_ways, tuning, out), answers_of_ways(all_ways, rows, out)
    limits = {way.name: best_limit([row[way.name] for row in tuning_answers], tuning) for way in all_ways}
    kind = "training questions: a rehearsal" if args.rehearse else "test questions"
    limits_text = ", ".join(f"{name} {limit:.2f}" for name, limit in limits.items())
    yield f"{len(rows)} {kind}; answering model {digest}, reader {reader_digest}; limits {limits_text}"
    reports = {name: [report(rows, [above_limit(row[name], limit) for row in answers])] for name, limit in limits.items()}
    yield f"\n{table(reports)}"
    yield from groups(reports, rows)


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=0, help="test questions (default: all 345)")
    parser.add_argument("--tune", type=int, default=150, help="questions that the limits are chosen on (default: %(default)s)")
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--out", type=Path, default=None, help="default: a file of these weights below var/runs/multi_span")
    for line in lines(parser.parse_args(argv)):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
