"""`python -m core ask QUESTION`: answers one question, on the terminal or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from textwrap import indent
from typing import Any

from core.commands.evaluate import read_pairs
from core.settings import Settings
from core.types import Event, Prediction, QuestionQueued


def add_parser(commands: Any) -> None:
    ask = commands.add_parser("ask", help="answer one question")
    ask.add_argument("question", help="the question, in quotes")
    ask.add_argument("--system", help="system that answers (default: AMBISCOPE_SYSTEM)")
    ask.add_argument("--corpus", help="corpus to read (default: starter)")
    ask.add_argument("--top-k", type=int, metavar="N", help="number of passages to read (default: 10)")
    ask.add_argument("--max-answers", type=int, metavar="N", help="maximum number of answers (default: 8)")
    ask.add_argument(
        "--stop-above", type=float, metavar="P", help="stop when P([EOI]) exceeds P (default: when [EOI] beats every answer)"
    )
    ask.add_argument("--no-clarify", action="store_true", help="do not write disambiguated questions; several times faster")
    ask.add_argument(
        "--no-coverage-check", action="store_true", help="keep answers whose document lacks what the question names"
    )
    ask.add_argument(
        "--pin", action="append", default=[], metavar="ANSWER", help="keep this answer and look for others; may be repeated"
    )
    ask.add_argument("--ban", action="append", default=[], metavar="ANSWER", help="exclude this answer; may be repeated")
    ask.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set an option of the system, such as loop=fast; may be repeated",
    )
    ask.add_argument("--json", action="store_true", help="print the prediction as one JSON object")
    ask.set_defaults(run=run)


def _print(prediction: Prediction) -> None:
    from core.disambiguation.outcome import result_of
    from core.evaluation.cost import call_problems
    from core.how_to import section

    if not prediction.answers:
        print(f"No answer: {prediction.ended or 'the run did not finish'}.")
    by_id = {p.passage.id: p for p in prediction.passages}
    for number, a in enumerate(prediction.answers, 1):
        print(f"{number}. {a.text}  ({a.probability:.0%})")
        clarification = prediction.clarification_of(a.text)
        if clarification and (clarification.question or clarification.label):
            print(f"   {clarification.question or clarification.label}")
        for text, _ in section(prediction, a):
            print(indent(text, "   "))
        for passage_id in dict.fromkeys(e.passage_id for e in a.evidence):
            found = by_id.get(passage_id)
            print(f"   [{found.rank if found else '-'}] {found.passage.title if found else passage_id}")
    result = result_of(prediction)
    for conflict in result.conflicts:
        claims = (f"{c.answer} [{', '.join([c.title or c.passage_id, *c.dates])}]" for c in conflict.claims)
        print(f"These documents disagree: {'; '.join(claims)}")
    if asked_back := result.clarification:
        print(f"{asked_back.question} {'; '.join(option.label for option in asked_back.options)}")
    for text, why in prediction.rejected.items():
        print(f"-  {text}: refused, {why}")
    for problem in call_problems(prediction.events):
        print(f"warning: {problem}")
    ended = f"; {prediction.ended}" if prediction.ended and prediction.answers else ""
    print(f"{len(prediction.passages)} passages, {len(prediction.steps)} steps, {prediction.seconds:.1f} s{ended}")


def _tell(event: Event) -> None:
    """What a service says of its queue goes to the terminal."""
    from core.systems.base.system import queue_note

    if isinstance(event, QuestionQueued) and event.position:
        print(f"{queue_note(event)}; Ctrl+C cancels it", file=sys.stderr, flush=True)


def run(args: argparse.Namespace, settings: Settings) -> int:
    from core.serve.choice import make_engine
    from core.types import Question

    prediction = make_engine(settings).ask(
        Question(args.question, pinned=tuple(args.pin), banned=tuple(args.ban)),
        args.system,
        args.corpus,
        watch=_tell,
        top_k=args.top_k,
        max_answers=args.max_answers,
        stop_above=args.stop_above,
        clarify=not args.no_clarify,
        check_coverage=not args.no_coverage_check,
        extra=read_pairs(args.set),
    )
    if args.json:
        from core.evaluation.prediction_json import prediction_json

        print(json.dumps(prediction_json(prediction), ensure_ascii=False))
    else:
        _print(prediction)
    return 0
