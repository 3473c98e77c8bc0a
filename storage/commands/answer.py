"""`answer`: a system answers a project's questions."""

from __future__ import annotations

import argparse

from core.cluster.connect import add_option, connected
from core.commands.index import shown_progress
from core.errors import AmbiscopeError
from core.serve.choice import make_engine
from core.settings import Settings, quiet_libraries
from core.types import AnsweringSystem
from storage.analysis.answering import Answering
from storage.commands.base import Add, CommandResult, add_manager, managed
from storage.store import Store


def run(url: str, args: argparse.Namespace) -> CommandResult:
    """Runs the command.  Raises AmbiscopeError when every question failed."""
    quiet_libraries()  # before a model imports them
    settings = Settings.from_env()
    with Store(url) as store:
        manager, project = managed(store, args)
        engine = make_engine(settings)
        options, corpus = engine.options(clarify=args.clarify), args.corpus or project.corpus or None

        def build(own_passages: bool) -> AnsweringSystem:
            return engine.system(args.system, corpus, options, own_passages=own_passages)

        with connected(args.ray, settings) as cluster, shown_progress() as progress:
            elsewhere = None
            if cluster is not None:
                from core.cluster.jobs import answering

                elsewhere = answering(cluster, args.system, corpus, options, build)
            job = Answering(store, project, args.system, manager, build, args.limit, elsewhere, args.batch)
            job.answer_items(on_item=lambda: progress(job.answered + job.failures, job.total or 0, "answering"))
    failure = f"'{job.failed[0][0][:80]}': {job.failed[0][1]}" if job.failures else ""
    if failure and not job.answered:
        raise AmbiscopeError(f"every question failed; first failure: {failure}")
    body = {
        "project": project.id,
        "system": args.system,
        "answered": job.answered,
        "linked": job.linked,
        "failed": job.failures,
        "failures": [{"question": question, "reason": reason} for question, reason in job.failed],
    }
    words = f"{project.name}: {job.answered} questions answered by {args.system}; {job.linked} predictions linked"
    if failure:
        words += f"; {job.failures} could not be answered, the first one {failure}"
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
