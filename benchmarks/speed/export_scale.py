"""Export at scale: python -m benchmarks.speed.export_scale --items 50000 [--out FILE]

Makes a database with so many judged questions (a prediction of ten passages each, two to four answers, each judged by one to three people,
an annotation of every third question by two), and writes each format of it in a process of its own.  Measured are the seconds (and the CPU's) of the
export, from opening the store to the noted file, and the process's peak memory (VmHWM), interpreter and libraries included.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from core.settings import ROOT
from storage.exchange.exports.formats import FORMATS
from storage.schema import tables
from storage.store import Store

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
PEOPLE = ("Ada", "Bob", "Cid")
VERDICTS = ("correct", "correct", "wrong", "unsupported", "duplicate")
CHUNK = 1000
LIMIT_SECONDS, LIMIT_MB = 60.0, 500.0
_WORDS = (
    "the a of film song river city played wrote first last king queen north south house book year team game red blue".split()
)


def text(rng: random.Random, count: int) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(count))


def make(url: str, items: int, seed: int = 0) -> None:
    """Rows as the store writes them, inserted in bulk."""
    rng = random.Random(seed)
    # passages of 100 words are drawn from a corpus, as a retriever's are
    corpus = [{"id": f"p{i}", "title": text(rng, 3), "text": text(rng, 100)} for i in range(5000)]
    with Store(url) as store:
        for name in PEOPLE:
            store.people.annotator(name)
        for start in range(0, items, CHUNK):
            rows: dict[Any, list[dict[str, Any]]] = {
                t: []
                for t in (
                    tables.Question,
                    tables.Prediction,
                    tables.PredictedAnswer,
                    tables.Judgment,
                    tables.Annotation,
                    tables.QaPair,
                )
            }
            for n in range(start + 1, min(start + CHUNK, items) + 1):
                _item(rng, n, corpus, rows)
            with store.database.writing() as session:
                for table, values in rows.items():
                    if values:
                        session.execute(insert(table), values)


def _item(rng: random.Random, n: int, corpus: list[dict[str, str]], rows: dict[Any, list[dict[str, Any]]]) -> None:
    question, when = f"Who {text(rng, 6)} {n}?", MOMENT + timedelta(seconds=n)
    passages = [{"passage": p, "rank": r, "score": 1 / r, "similarity": 0.5} for r, p in enumerate(rng.sample(corpus, 10), 1)]
    answers = [f"{text(rng, 2)} {n} {k}" for k in range(rng.randint(2, 4))]
    trace = {
        "question": {"text": question, "id": f"q{n}", "pinned": [], "banned": [], "passages": None},
        "system": {"name": "ambigprompt", "settings": {"top_k": 10}, "corpus": "made", "corpus_digest": "c"},
        "answers": [{"text": a, "probability": 0.5, "evidence": [], "step": 1, "pinned": False} for a in answers],
        "clarifications": [],
        "steps": [{"number": k, "previous": answers[:k], "prompt": question, "seconds": 0.1} for k in range(len(answers))],
        "passages": passages,
        "seconds": 1.0,
        "events": [{"event": "PassagesRetrieved", "passages": passages, "seconds": 0.1, "query": question}],
    }
    rows[tables.Question].append(
        {"id": n, "public_id": f"q{n}", "source_id": f"q{n}", "text": question, "folded": question.casefold(), "created": when}
    )
    rows[tables.Prediction].append(
        {
            "id": n,
            "public_id": f"{n:032x}",
            "key": None,
            "question_id": n,
            "system": "ambigprompt",
            "settings": {"top_k": 10},
            "corpus": "made",
            "corpus_digest": "c",
            "checkpoint": "default",
            "checkpoint_digest": "d",
            "seconds": 1.0,
            "trace": trace,
            "created": when,
        }
    )
    for position, answer in enumerate(answers):
        spot = {"passage_id": passages[position]["passage"]["id"], "start": 0, "end": 3, "text": "the"}  # type: ignore[index]
        rows[tables.PredictedAnswer].append(
            {
                "id": n * 10 + position,
                "prediction_id": n,
                "position": position,
                "text": answer,
                "probability": 0.5,
                "evidence": [spot],
                "clarified": f"{question[:-1]} {position}?",
                "passed": True,
            }
        )
        for who in range(1, 1 + rng.randint(1, 3)):
            rows[tables.Judgment].append(
                {
                    "predicted_answer_id": n * 10 + position,
                    "annotator_id": who,
                    "verdict": rng.choice(VERDICTS),
                    "note": "" if rng.random() < 0.9 else text(rng, 8),
                    "state": "submitted",
                    "version": 1,
                    "created": when,
                    "updated": when,
                }
            )
    for who in (1, 2) if n % 3 == 0 else ():
        annotation = n * 10 + who
        rows[tables.Annotation].append(
            {
                "id": annotation,
                "question_id": n,
                "annotator_id": who,
                "stage": "generation",
                "type": "multiple",
                "state": "submitted",
                "version": 1,
                "created": when,
                "updated": when,
            }
        )
        rows[tables.QaPair].extend(
            {
                "annotation_id": annotation,
                "position": position,
                "question": f"{question[:-1]} in {1900 + position}?",
                "answers": [answers[position], f"alias {n} {position}"],
                "passage_ids": [passages[position]["passage"]["id"]],  # type: ignore[index]
            }
            for position in range(2)
        )


def export(url: str, format: str, out: Path) -> dict[str, Any]:
    """Seconds and peak megabytes of one export in this process."""
    start = time.perf_counter()
    with Store(url) as store:
        made = store.exports.export(format, out)  # type: ignore[arg-type]
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    peak = used.ru_maxrss * 1024 / 1e6  # kB on Linux
    cpu = round(used.ru_utime + used.ru_stime, 1)  # on a busy machine the seconds say less than this
    return {
        "format": format,
        "seconds": round(seconds, 1),
        "cpu_seconds": cpu,
        "peak_mb": round(peak),
        "file_mb": round(made.bytes / 1e6, 1),
    } | {"counts": dict(made.counts)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--format", action="append", choices=tuple(FORMATS), help="these only (default: all)")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    parser.add_argument("--folder", type=Path, help="keep the database here, and use it again")
    parser.add_argument("--one", nargs=3, metavar=("URL", "FORMAT", "FILE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(export(args.one[0], args.one[1], Path(args.one[2]))))
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = args.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"scale-{args.items}.db"
        url = f"sqlite:///{file.absolute()}"
        if not file.exists():
            start = time.perf_counter()
            make(url, args.items)
            print(
                f"{args.items} judged questions, {file.stat().st_size / 1e6:.0f} MB, made in {time.perf_counter() - start:.0f} s"
            )
        rows = []
        for format in args.format or FORMATS:
            out = folder / f"out{FORMATS[format].suffix}"
            command = [sys.executable, "-m", "benchmarks.speed.export_scale", "--one", url, format, str(out)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            row = json.loads(done.stdout)
            row["kept"] = row["seconds"] <= LIMIT_SECONDS and row["peak_mb"] <= LIMIT_MB
            rows.append(row)
            print(
                f"{format:13} {row['seconds']:6.1f} s ({row['cpu_seconds']:5.1f} s of CPU) {row['peak_mb']:5} MB peak {row['file_mb']:7.1f} MB {'' if row['kept'] else 'OVER'}"
            )
            out.unlink()
    if args.out:
        args.out.write_text(json.dumps({"items": args.items, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["kept"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
