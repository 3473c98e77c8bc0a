"""`answer`: a system answers a project's questions."""

from __future__ import annotations

import argparse

from core.cluster.connect import add_option, connected
from core.errors import AmbiscopeError
from core.serve.choice import make_engine
from core.settings import Settings, quiet_libraries
from core.types import AnsweringSystem
from storage.analysis.answering import Answering
from storage.commands.base import Add, Progress, Result, add_manager, managed
from storage.store import Store


def run(url: str, args: argparse.Namespace) -> Result:
    """Raises AmbiscopeError when every question failed."""
    quiet_libraries()  # before a model imports them
    settings = Settings.from_env()
    with Store(url) as store:
        manager, project = managed(store, args)
        engine = make_engine(settings)
        options = engine.options(clarify=args.clarify)

        def build(own_passages: bool) -> AnsweringSystem:
            return engine.system(args.system, args.corpus or project.corpus or None, options, own_passages=own_passages)

        with connected(args.ray, settings) as cluster:
            elsewhere = None
            if cluster is not None:
                from core.cluster.jobs import answering

                elsewhere = answering(cluster, args.system, args.corpus or project.corpus or None, options, build)
            run, progress = (
                Answering(store, project, args.system, manager, build, args.limit, elsewhere, args.batch),
                Progress(),
            )
            run.answer_items(said=lambda: progress(f"answering: {run.stage}", run.part))
    if run.failures and not run.answered:
        raise AmbiscopeError(f"every question failed; first failure: '{run.failed[0][0][:80]}': {run.failed[0][1]}")
    body = {
        "project": project.id,
        "system": args.system,
        "answered": run.answered,
        "linked": run.linked,
        "failed": run.failures,
        "failures": [{"question": question, "reason": reason} for question, reason in run.failed],
    }
    words = f"{project.name}: {run.answered} questions answered by {args.system}; {run.linked} predictions linked"
    if run.failures:
        words += f"; {run.failures} could not be answered, the first one '{run.failed[0][0][:80]}': {run.failed[0][1]}"
    return body, words


def add_parser(add: Add) -> None:
    answer = add("answer", run, "let a system answer a project's questions, as on the Manage page; skips those it has answered")
    add_manager(answer)
    answer.add_argument("--system", required=True, metavar="NAME", help="one of the project's systems")
    answer.add_argument("--corpus", default="", metavar="NAME", help="corpus to read (default: the project's)")
    answer.add_argument("--limit", type=int, metavar="N", help="answer at most N questions")
    answer.add_argument("--batch", type=int, default=1, metavar="N", help="answer N questions at a time (default: 1)")
    add_option(answer)
    answer.add_argument(
        "--no-clarify", dest="clarify", action="store_false", help="do not write disambiguated questions; several times faster"
    )
