"""`python -m core ask QUESTION`: answers one question, on the terminal or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from textwrap import indent
from typing import Any

from core.commands.evaluate import add_system_options, system_options
from core.settings import Settings
from core.text import probability_text
from core.types import Event, Prediction, QuestionQueued


def add_parser(commands: Any) -> None:
    ask = commands.add_parser("ask", help="answer one question")
    ask.add_argument("question", help="the question, in quotes")
    ask.add_argument("--corpus", help="corpus to read (default: starter)")
    add_system_options(ask)
    ask.add_argument(
        "--pin", action="append", default=[], metavar="ANSWER", help="keep this answer and look for others; may be repeated"
    )
    ask.add_argument("--ban", action="append", default=[], metavar="ANSWER", help="exclude this answer; may be repeated")
    ask.add_argument("--json", action="store_true", help="print the prediction as one JSON object")
    ask.set_defaults(run=run)


def _print(prediction: Prediction) -> None:
    from core.disambiguation.outcome import result_of
    from core.evaluation.cost import call_problems
    from core.evaluation.how_to import section

    if not prediction.answers:
        print(f"No answer: {prediction.ended or 'the run did not finish'}.")
    by_id = {p.passage.id: p for p in prediction.passages}
    for number, answer in enumerate(prediction.answers, 1):
        print(f"{number}. {answer.text}  ({probability_text(answer.probability, prediction.system.is_calibrated)})")
        clarification = prediction.clarification_of(answer.text)
        if clarification and (clarification.question or clarification.label):
            print(f"   {clarification.question or clarification.label}")
        for text, _ in section(prediction, answer):
            print(indent(text, "   "))
        for passage_id in dict.fromkeys(e.passage_id for e in answer.evidence):
            retrieved = by_id.get(passage_id)
            print(f"   [{retrieved.rank if retrieved else '-'}] {retrieved.passage.title if retrieved else passage_id}")
    result = result_of(prediction)
    for conflict in result.conflicts:
        claims = (f"{c.answer} [{', '.join([c.title or c.passage_id, *c.dates])}]" for c in conflict.claims)
        print(f"These documents disagree: {'; '.join(claims)}")
    if clarifying := result.clarification:
        print(f"{clarifying.question} {'; '.join(option.label for option in clarifying.options)}")
    for text, reason in prediction.rejected.items():
        print(f"-  {text}: refused, {reason}")
    for problem in call_problems(prediction.events):
        print(f"warning: {problem}")
    ending = f"; {prediction.ended}" if prediction.ended and prediction.answers else ""
    print(f"{len(prediction.passages)} passages, {len(prediction.steps)} steps, {prediction.seconds:.1f} s{ending}")


def _show_queue(event: Event) -> None:
    """Prints the position in a service's queue."""
    from core.systems.base.system import queue_note

    if isinstance(event, QuestionQueued) and event.position:
        print(f"{queue_note(event)}; Ctrl+C cancels it", file=sys.stderr, flush=True)


def run(args: argparse.Namespace, settings: Settings) -> int:
    from core.serve.choice import make_engine
    from core.types import Question

    prediction = make_engine(settings).ask(
        Question(args.question, pinned=tuple(args.pin), banned=tuple(args.ban)),
        watch=_show_queue,
        **system_options(args),
    )
    if args.json:
        from core.evaluation.prediction_json import prediction_json

        print(json.dumps(prediction_json(prediction), ensure_ascii=False))
    else:
        _print(prediction)
    return 0
