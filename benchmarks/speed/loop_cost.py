"""What AmbigPrompt's whole answer set costs against one pass: two answers and [EOI], three steps, by the exact and by the fast loop.

    python -m benchmarks.speed.loop_cost --shape bundled [--questions 8]          # the bundled model on real questions of the starter corpus
    python -m benchmarks.speed.loop_cost --shape t5-base --passages 20            # the papers' shape, random weights, passages of 200 tokens

The single pass reads the same passages with the same encoder weights in the same run: with the bundled model the passages alone and the span head
over them; at the papers' shape FiD, which writes two answers and their separator.  Both loops decode greedily, as the paper does.
The three ways take turns, so that a busy machine slows all of them; ratios are medians of single turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.timing import Call, peak_mb, seconds_in_turn, show
from core.models.span.fast_loop import FastSpanLoop, Rereading
from core.settings import ROOT, Settings, quiet_libraries

WAYS = ("single pass", "exact loop", "fast loop")
TOKENS = 200  # of a passage at the papers' shape
PROMPT = (16, 24, 32)  # tokens of the prompt at each step: the question, and with one and two answers
ANSWER, SPLICED = 4, 10  # tokens that are written: of one answer, of two with a separator and the end


def three_steps(model: Any, question: str, passages: Sequence[Any]) -> None:
    """Three steps whatever [EOI] says, so that every question costs its two answers and the end."""
    previous: list[str] = []
    for _ in range(3):
        proposal = model.propose(question, passages, previous)
        if proposal.candidates:
            previous.append(proposal.candidates[0].text)


def bundled_ways(question: str, passages: Sequence[Any], answerer: Any) -> dict[str, Call]:
    from core.models.span.model import collate

    def fast_loop() -> None:
        answerer.first_steps.clear()  # those of its last turn
        three_steps(FastSpanLoop(answerer), question, passages)

    return {
        "single pass": lambda: answerer.scores(collate([answerer.rows(question, [p.passage for p in passages])], None)),
        "exact loop": lambda: three_steps(answerer, question, passages),
        "fast loop": fast_loop,
    }


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


def t5_batch(questions: int, passages: int, tokens: int, prompt: int) -> Any:
    """Random rows: of each question a prompt of so many tokens and its passages.  Without a prompt (0) its row is empty."""
    from core.models.seq2seq.network import FidBatch

    ids = torch.randint(2, 32_000, (questions, passages + 1, tokens), generator=torch.Generator().manual_seed(0))
    ids[:, 0, prompt:] = 0
    ids = ids.flatten(0, 1)
    return FidBatch(ids, ids > 0, passages + 1, prompt, torch.zeros(questions, dtype=torch.long))


def write(network: Any, states: Any, mask: Any, tokens: int) -> None:
    """Decodes so many tokens greedily."""
    token, cache = torch.full((len(states), 1), network.start, device=states.device), None
    for _ in range(tokens):
        out = network.decode(states, mask, token, cache, keep=True)
        token, cache = out.logits[:, -1:].argmax(-1), out.past_key_values


def t5_ways(network: Any, passages: int) -> dict[str, Call]:
    from core.models.seq2seq.network import FidNetwork

    fid = FidNetwork(network.model, replace(network.config, prompting="separate"), network.eoi)

    def single() -> None:
        with torch.inference_mode():
            write(network, *fid.encode(t5_batch(1, passages, TOKENS, 0)), SPLICED)

    def loop(reread: int) -> None:
        with torch.inference_mode():
            for step, prompt in enumerate(PROMPT):
                encoded = network.encode(t5_batch(1, reread if step else passages, TOKENS, prompt))
                write(network, *encoded, ANSWER if step < 2 else 1)

    return dict(zip(WAYS, (single, lambda: loop(passages), lambda: loop(Rereading().count(passages)))))


def make_ways(shape: str, questions: int, passages: int) -> list[dict[str, Call]]:
    """The three ways for each question, spread over the development set; one made-up question at the papers' shape."""
    if shape != "bundled":
        return [t5_ways(t5_network(shape), passages)]
    from core.datasets import load
    from core.engine import Engine
    from core.models.span.answerer import load_answerer

    engine = Engine(replace(Settings.from_env(), device="cpu"))
    answerer, _ = load_answerer(engine.settings.answerer, "cpu")
    texts = [q.question for q in load(ROOT / "data" / "starter" / "questions.json")]
    texts = texts[:: max(1, len(texts) // questions)][:questions]
    retrieved = engine.corpus("starter").search_many(texts, passages)
    return [bundled_ways(q, passages_of_question, answerer) for q, passages_of_question in zip(texts, retrieved)]


def main() -> None:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=["bundled", "t5-base", "t5-tiny"], default="bundled")
    parser.add_argument("--passages", type=int, default=10)
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for ways in make_ways(args.shape, args.questions, args.passages):
        for way, took in seconds_in_turn(ways, args.repeats).items():
            times[way] += took
    ratios = {way: [a / b for a, b in zip(took, times[WAYS[0]], strict=True)] for way, took in times.items()}  # of single turns
    figures = {way: {"seconds": median(took), "time_ratio": median(ratios[way])} for way, took in times.items()}
    show(
        {"shape": args.shape, "passages": args.passages, "threads": torch.get_num_threads(), **figures, "peak_mb": peak_mb()},
        args.out,
    )


if __name__ == "__main__":
    main()
