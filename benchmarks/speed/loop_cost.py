"""What AmbigPrompt's whole answer set costs against one pass: two answers and [EOI], three steps, by the exact and by the fast loop.

    python -m benchmarks.speed.loop_cost --shape bundled [--questions 8]          # the bundled model on real questions of the starter corpus
    python -m benchmarks.speed.loop_cost --shape bundled --f1 [--questions 186]   # F1 of both loops on the same questions
    python -m benchmarks.speed.loop_cost --shape t5-base --passages 20            # the papers' shape, random weights, passages of 200 tokens

The single pass reads the same passages with the same encoder weights in the same run: with the bundled model the passages alone and the span head
over them; at the papers' shape FiD, which writes two answers and their separator.  Both loops decode greedily, as the paper does.
The three ways take turns, so that a busy machine slows all of them; ratios are of medians, in seconds of the clock and of the processor.
Memory is the peak of a process of its own for each way, from its first question on (on Linux), and also without what it held before that.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.speed.start import peak_mb as peak_of
from benchmarks.speed.timing import show
from core.models.span.fast_loop import FastSpanLoop, Rereading
from core.settings import ROOT, Settings, quiet_libraries

WAYS = ("single pass", "exact loop", "fast loop")
PADDED = "single pass, padded rows"
TOKENS = 200  # of a passage at the papers' shape
PROMPT = (16, 24, 32)  # tokens of the prompt at each step: the question, and with one and two answers
ANSWER, SPLICED = 4, 10  # tokens that are written: of one answer, of two with a separator and the end
Way = Callable[[], Any]


class Replayed(FastSpanLoop):
    """Reads again what a run under the reranker read again; the reranker's own work is not the loop's and is left out."""

    def __init__(self, model: Any, choices: Sequence[set[int]]) -> None:
        super().__init__(model)
        self.choices = choices

    def _chosen(self, passages: Sequence[Any], previous: Sequence[str]) -> set[int]:
        return self.choices[min(len(previous), len(self.choices)) - 1]


def three_steps(model: Any, question: str, passages: Sequence[Any]) -> None:
    """Three steps whatever [EOI] says, so that every question costs its two answers and the end."""
    previous: list[str] = []
    for _ in range(3):
        proposal = model.propose(question, passages, previous)
        if proposal.candidates:
            previous.append(proposal.candidates[0].text)


def reread(guided: Any, question: str, passages: Sequence[Any]) -> list[set[int]]:
    """The passages that each later step of a fast loop under the bundled reranker reads."""
    chosen: list[set[int]] = []
    choose = guided.model._chosen

    def kept(*arguments: Any) -> set[int]:
        chosen.append(choose(*arguments))
        return chosen[-1]

    guided.model._chosen = kept
    three_steps(guided, question, passages)
    return chosen


def bundled_ways(question: str, passages: Sequence[Any], answerer: Any, choices: Sequence[set[int]] = ()) -> dict[str, Way]:
    """`choices`: what later steps read; without them the loop chooses by the model's own logits."""
    from core.models.span.model import collate

    def single() -> None:
        rows = answerer.rows(question, [p.passage for p in passages])
        answerer.scores(collate([rows], None))

    def padded() -> None:
        """As batches of rows were before, and as an encoder with relative positions or a GPU computes them."""
        network = answerer.network
        network._packs = lambda batch: False
        try:
            single()
        finally:
            del network._packs

    def fast() -> None:
        three_steps(Replayed(answerer, choices) if choices else FastSpanLoop(answerer), question, passages)

    ways = dict(zip(WAYS, (single, lambda: three_steps(answerer, question, passages), fast)))
    return ways | {PADDED: padded}


def t5_network(size: str) -> Any:
    from transformers import T5Config, T5ForConditionalGeneration

    from core.models.seq2seq.network import FidConfig, FidNetwork

    shapes = {
        "t5-base": {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
        "t5-tiny": {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4},  # to try the script out
    }
    torch.manual_seed(0)
    config = T5Config(vocab_size=32128, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, **shapes[size])
    return FidNetwork(T5ForConditionalGeneration(config).eval(), FidConfig(max_tokens=TOKENS), eoi=32_000)


def t5_ways(network: Any, passages: int) -> dict[str, Way]:
    from core.models.seq2seq.network import FidBatch, FidNetwork

    fid = FidNetwork(network.model, replace(network.config, prompting="separate"), network.eoi)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(2, 32_000, (passages, TOKENS), generator=generator)

    def batch(rows: int, prompt: int) -> FidBatch:
        first = torch.zeros(1, TOKENS, dtype=torch.long)
        first[0, :prompt] = 7
        all_ids = torch.cat([first, ids[:rows]])
        mask = all_ids > 0
        return FidBatch(all_ids, mask, rows + 1, prompt, torch.tensor([0]))

    def write(states: Any, mask: Any, tokens: int) -> None:
        token, cache = torch.full((1, 1), network.start), None
        for _ in range(tokens):
            out = network.decode(states, mask, token, cache, keep=True)
            token, cache = out.logits[:, -1:].argmax(-1), out.past_key_values

    def single() -> None:
        with torch.inference_mode():
            write(*fid.encode(batch(passages, 0)), SPLICED)  # no prompt: its row has no token

    def loop(later: int) -> None:
        with torch.inference_mode():
            for step, prompt in enumerate(PROMPT):
                states, mask = network.encode(batch(passages if step == 0 else later, prompt))
                write(states, mask, ANSWER if step < 2 else 1)

    return dict(zip(WAYS, (single, lambda: loop(passages), lambda: loop(Rereading().count(passages)))))


def make_ways(args: argparse.Namespace) -> list[dict[str, Way]]:
    """The three ways for each question; one made-up question at the papers' shape."""
    if args.shape != "bundled":
        return [t5_ways(t5_network(args.shape), args.passages)]
    from core.models.span.answerer import load_answerer

    settings = replace(Settings.from_env(), device="cpu")
    answerer, _ = load_answerer(settings.answerer, "cpu")
    questions = starter(settings, args.questions, args.passages)
    if args.only:  # its memory is measured: without the reranker's models
        return [bundled_ways(q, found, answerer) for q, found, _ in questions]
    from core.engine import Engine
    from core.systems.base.options import Options

    system: Any = Engine(settings).system("ambiscope", "starter", Options(clarify=False, extra={"loop": "fast"}))
    return [bundled_ways(q, found, answerer, reread(system.loop(), q, found)) for q, found, _ in questions]


def starter(settings: Settings, limit: int, passages: int) -> list[tuple[str, list[Any], Any]]:
    """(question, passages, reference) of the starter set, spread over it; timing and comparing two loops is no tuning."""
    from core.datasets import load
    from core.engine import Engine

    questions = load(ROOT / "data" / "starter" / "questions.json")
    questions = questions[:: max(1, len(questions) // limit)][:limit]
    found = Engine(settings).corpus("starter").search_many([q.question for q in questions], passages)
    return list(zip([q.question for q in questions], found, questions))


def timed(args: argparse.Namespace) -> dict[str, Any]:
    questions = make_ways(args)
    clock: dict[str, list[float]] = {w: [] for w in questions[0]}
    processor: dict[str, list[float]] = {w: [] for w in questions[0]}
    if args.shape == "bundled":
        for call in questions[0].values():
            call()  # warm; at the papers' shape a pass takes seconds, and its first one is as good as the next
    for _ in range(args.repeats):
        for ways in questions:
            for name, call in ways.items():
                began, worked = time.perf_counter(), time.process_time()
                call()
                clock[name].append(time.perf_counter() - began)
                processor[name].append(time.process_time() - worked)
    out: dict[str, Any] = {"threads": torch.get_num_threads(), "n": len(clock[WAYS[0]])}
    for name in clock:
        out[name] = {
            "seconds": statistics.median(clock[name]),
            "processor_seconds": statistics.median(processor[name]),
            # of one turn at a time: what slows the machine slows its three ways alike
            "time_ratio": statistics.median(a / b for a, b in zip(clock[name], clock[WAYS[0]])),
            "processor_ratio": statistics.median(a / b for a, b in zip(processor[name], processor[WAYS[0]])),
        }
    return out


RESET = Path("/proc/self/clear_refs")  # of Linux


def peak_mb() -> float:
    """Peak resident memory of this process, since `reset_peak` where that works."""
    if RESET.exists():
        return peak_of(os.getpid())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def reset_peak() -> bool:
    """Linux: the peak begins anew at what is held now, so that loading the model does not hide what the questions need."""
    try:
        RESET.write_text("5")
    except OSError:
        return False
    return True


def memory(args: argparse.Namespace) -> dict[str, Any]:
    """Peak of a process for each way: whole, and what its questions added to the loaded model."""
    out: dict[str, Any] = {}
    for name in WAYS:
        command = [
            sys.executable, "-m", "benchmarks.speed.loop_cost", "--shape", args.shape, "--passages", str(args.passages),
            "--questions", str(min(args.questions, 3)), "--only", name,
        ]  # fmt: skip
        done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
        out[name] = json.loads(done.stdout.splitlines()[-1])
    for name in WAYS:
        out[name]["memory_ratio"] = out[name]["peak_mb"] / out[WAYS[0]]["peak_mb"]
    return out


def f1(args: argparse.Namespace) -> dict[str, Any]:
    """F1 answer of both loops, as the system `ambiscope` runs them, on the same questions."""
    from core.datasets import load
    from core.engine import Engine
    from core.evaluation.run import evaluate
    from core.systems.base.options import Options

    engine = Engine(Settings.from_env())
    questions = load(args.file)
    questions = questions[:: max(1, len(questions) // args.questions)][: args.questions]
    own = all(q.passages is not None for q in questions)
    out: dict[str, Any] = {"questions": len(questions), "file": args.file.name}
    for loop in ("exact", "fast"):
        system = engine.system(
            "ambiscope", args.corpus, Options(args.passages, clarify=False, extra={"loop": loop}), own_passages=own
        )
        report = evaluate(system, questions, seed=0)
        out[loop] = {
            "F1 answer": report.scores["F1 answer"],
            "interval": report.intervals.get("F1 answer"),
            "answers": report.scores["answers"],
            "timings": report.timings,
        }
    return out


def main() -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=["bundled", "t5-base", "t5-tiny"], default="bundled")
    parser.add_argument("--passages", type=int, default=10)
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--f1", action="store_true", help="compare the answers instead of the time")
    parser.add_argument("--file", type=Path, default=ROOT / "data" / "starter" / "questions.json", help="with --f1")
    parser.add_argument("--corpus", default="starter", help="with --f1")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--only", choices=WAYS, help=argparse.SUPPRESS)  # the child process whose peak is measured
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.only:
        ways = make_ways(args)
        reset = reset_peak()
        before = peak_mb()
        for each in ways:
            each[args.only]()
        print(json.dumps({"peak_mb": peak_mb(), "added_mb": peak_mb() - before, "without_loading": reset}))
        return 0
    out: dict[str, Any] = {"shape": args.shape, "passages": args.passages}
    out |= f1(args) if args.f1 else {"time": timed(args)} | ({} if args.no_memory else {"memory": memory(args)})
    show(out, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
