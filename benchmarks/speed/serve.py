"""Many clients of `core serve` at once, against the engine alone.

    python -m benchmarks.speed.serve [--clients 16] [--questions 48] [--rounds 3] [--batch 8] [--system NAME] [--top-k 10] [--no-clarify]

Asks a system over the starter corpus.  In each round the engine answers all questions in turn, in this process; then the service, in a process of its
own, gets them from all clients at once.  Figures: questions lost, questions a second of both and their ratio (medians of the rounds), the same for a
second of CPU time (which other work on the machine hardly changes; Linux), and the seconds that a question waited in the queue and took in all (p50
and p95 of all rounds).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.speed.start import free_port, wait_for
from benchmarks.timing import show
from core.engine import Engine
from core.settings import ROOT, Settings, child_environment, let_threads_sleep, quiet_libraries
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.types import Question


def starter_questions(count: int) -> list[str]:
    """Ambiguous questions of the development set, in its order, again from the start where they are too few."""
    rows = json.loads((ROOT / "data" / "starter" / "questions.json").read_text(encoding="utf-8"))
    several = [r["question"] for r in rows if len(r["annotations"][0].get("qaPairs", ())) >= 2]
    return [several[i % len(several)] for i in range(count)]


@contextmanager
def service(batch: int, workers: int) -> Iterator[tuple[httpx.Client, int]]:
    """A client of a service of its own, whose models are loaded, and the number of its process."""
    port = free_port()
    changes = {"serve_batch": str(batch), "serve_workers": str(workers), "serve_queue": "1000", "serve_deadline": "600"}
    command = [sys.executable, "-m", "core", "serve", "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, env=child_environment(**changes), stdout=subprocess.DEVNULL)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600, trust_env=False, limits=httpx.Limits()) as client:
        try:
            wait_for(process, lambda: client.get("/health").json()["status"] == "ok")
            yield client, process.pid
        finally:
            process.terminate()
            process.wait(60)


def cpu_seconds(pid: int) -> float:
    """The CPU seconds of a process with all its threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(client: httpx.Client, question: str, options: dict[str, Any]) -> tuple[float, float] | None:
    """(seconds in the queue, seconds in all); None if it was lost."""
    start = time.perf_counter()
    try:
        response = client.post("/v1/ask", json={"question": question, "corpus": "starter", **options})
    except httpx.TransportError:
        return None
    return (response.json()["waited"], time.perf_counter() - start) if response.status_code == 200 else None


def percentiles(values: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return {"p50": round(cuts[9], 2), "p95": round(cuts[18], 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--questions", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=Settings.serve_batch)
    parser.add_argument("--workers", type=int, default=Settings.serve_workers)
    parser.add_argument("--system", default="ambiscope")
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--no-clarify", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    let_threads_sleep()
    quiet_libraries()
    options = {"system": args.system, "top_k": args.top_k, "clarify": not args.no_clarify}
    engine_rates, service_rates, replies = list[float](), list[float](), list[tuple[float, float] | None]()
    cpu = list[tuple[float, float]]()
    with tempfile.TemporaryDirectory() as home:
        os.environ["AMBISCOPE_HOME"] = home
        engine = Engine(Settings.from_env())
        engine.warm("starter")
        system = engine.system(args.system, "starter", Options(top_k=args.top_k, clarify=not args.no_clarify))
        questions = starter_questions(args.questions)
        with service(args.batch, args.workers) as (client, pid), ThreadPoolExecutor(args.clients) as clients:
            for text in questions[:2]:
                answer(system, Question(text))
            list(clients.map(lambda q: ask(client, q, options), questions[: args.clients]))
            for _ in range(args.rounds):
                start, cpu_start = time.perf_counter(), time.process_time()
                for text in questions:
                    answer(system, Question(text))
                engine_rates.append(len(questions) / (time.perf_counter() - start))
                engine_cpu = time.process_time() - cpu_start
                start, cpu_start = time.perf_counter(), cpu_seconds(pid)
                replies += clients.map(lambda q: ask(client, q, options), questions)
                service_rates.append(len(questions) / (time.perf_counter() - start))
                cpu.append((engine_cpu, cpu_seconds(pid) - cpu_start))
    answered = [a for a in replies if a is not None]
    figures = {
        "lost": len(replies) - len(answered),
        "engine_questions_a_second": round(statistics.median(engine_rates), 3),
        "service_questions_a_second": round(statistics.median(service_rates), 3),
        "share": round(statistics.median(s / a for s, a in zip(service_rates, engine_rates, strict=True)), 3),
        "cpu_seconds_a_question": [round(statistics.median(c) / len(questions), 2) for c in zip(*cpu, strict=True)],
        "share_by_cpu": round(statistics.median(a / b for a, b in cpu), 3),
        "queue_seconds": percentiles([waited for waited, _ in answered]),
        "seconds": percentiles([seconds for _, seconds in answered]),
        "load": [round(x, 1) for x in os.getloadavg()],
    }
    show(figures, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
