"""Speed and memory of the default system, as ratios within one run where machines differ.

    python -m benchmarks.speed.default [--questions 40] [--out FILE]

Measures, with warm models: seconds to the first answer and to a whole answer set (with and without clarification); the cost of one step against one
plain encoding of the same passages by the same encoder; cost against the number of passages (5 to 100) and of answers (1 to 8); the encoder's
throughput when building a corpus against encoding the same token batches alone; peak memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.timing import Call, median_seconds, peak_mb, show
from core.engine import Engine
from core.models.encoders.sentence_encoder import token_batches
from core.models.span.answerer import SpanAnswerer, load_answerer
from core.models.span.model import collate
from core.settings import ROOT, Settings, quiet_libraries
from core.systems.base.options import Options
from core.types import Question, RetrievedPassage, StepFinished


def whole_runs(engine: Engine, questions: list[str], clarify: bool) -> list[dict[str, float]]:
    system = engine.system("ambiscope", "starter", Options(clarify=clarify))
    rows = []
    for text in questions:
        start = time.perf_counter()
        first, answers, answered = 0.0, 0, 0.0
        steps: list[float] = []
        for event in system.run(Question(text)):
            if isinstance(event, StepFinished):
                previous, answered = answered, time.perf_counter() - start
                steps.append(answered - previous)
                if event.answer is not None:
                    answers += 1
                    first = first or answered
        seconds = {"first": first, "set": answered, "all": time.perf_counter() - start}
        rows.append({**seconds, "answers": answers, "later": statistics.median(steps[1:] or [0.0])})
    return rows


def plain_encoding(answerer: SpanAnswerer, question: str, passages: list[RetrievedPassage]) -> Call:
    """The same network over the same passage rows, each by itself: what one-pass reading costs."""
    batch = collate([answerer.rows(question, [p.passage for p in passages])], None)
    return lambda: answerer.scores(batch)


def main() -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    settings = replace(Settings.from_env(), device="cpu")
    start = time.perf_counter()
    answerer, _ = load_answerer(settings.answerer, "cpu")
    loading = time.perf_counter() - start
    engine = Engine(settings)
    engine.warm("starter")
    corpus = engine.corpus("starter")
    rows = json.loads((ROOT / "data" / "starter" / "questions.json").read_text())
    several = [r for r in rows if len(r["annotations"][0].get("qaPairs", ())) == 3]
    questions = [r["question"] for r in (several + [r for r in rows if r not in several])[: args.questions]]
    whole_runs(engine, questions[:2], True)

    figures: dict[str, Any] = {"threads": torch.get_num_threads(), "loading_seconds": loading}
    for clarify in (False, True):
        runs = whole_runs(engine, questions, clarify)
        sets_of_three = [r for r in runs if r["answers"] == 3]
        key = "with_clarification" if clarify else "answers_only"
        figures[key] = {
            "first_answer_median": statistics.median(r["first"] for r in runs if r["first"]),
            "three_answer_set_median": statistics.median(r["set"] for r in sets_of_three) if sets_of_three else None,
            "whole_run_median": statistics.median(r["all"] for r in runs),
            "three_answer_whole_median": statistics.median(r["all"] for r in sets_of_three) if sets_of_three else None,
            "later_step_median": statistics.median([r["later"] for r in runs if r["later"]] or [0.0]),
            "n": len(runs),
            "n_three": len(sets_of_three),
        }
    question = questions[0]
    ten = corpus.search(question, 10)
    plain = median_seconds(plain_encoding(answerer, question, ten))
    step = median_seconds(lambda: answerer.propose(question, ten, ("one", "another answer")))
    figures["step_against_plain_encoding"] = step / plain
    figures["step_seconds"], figures["plain_seconds"] = step, plain
    figures["later_step_against_plain_encoding"] = figures["answers_only"]["later_step_median"] / plain
    figures["by_passages"] = {}
    for count in (5, 10, 20, 50, 100):
        passages = corpus.search(question, count)
        plain_seconds = median_seconds(plain_encoding(answerer, question, passages), 3)
        step_seconds = median_seconds(lambda passages=passages: answerer.propose(question, passages, ("one",)), 3)
        figures["by_passages"][count] = {"plain": plain_seconds, "step": step_seconds, "ratio": step_seconds / plain_seconds}
    figures["by_answers"] = {}
    for n in range(1, 9):
        previous = [f"Some Name {i}" for i in range(n)]
        figures["by_answers"][n] = median_seconds(lambda previous=previous: answerer.propose(question, ten, previous), 3)
    figures["peak_memory_mb"] = peak_mb()

    encoder: Any = engine.library.encoder()
    texts = [f"{p.title}. {p.text}" for p in corpus.passages(0, 512)]
    model_seconds, run = 0.0, encoder._place.run

    def timed(*args: Any) -> Any:
        nonlocal model_seconds
        start_run = time.perf_counter()
        output = run(*args)
        model_seconds += time.perf_counter() - start_run
        return output

    encoder._place.run = timed
    start = time.perf_counter()
    encoder.encode(texts, "passage")
    encoding_seconds = time.perf_counter() - start
    lengths = [len(ids) for ids in encoder.tokens(texts)]
    real_share = sum(lengths) / sum(lengths[batch[0]] * len(batch) for batch in token_batches(lengths, encoder._budget))
    figures["encoding"] = {
        "passages_per_second": len(texts) / encoding_seconds,
        "share_of_the_encoders_own_throughput": model_seconds / encoding_seconds * real_share,
    }
    show(figures, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
