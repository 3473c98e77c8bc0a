"""`add-questions`: questions into a project."""

from __future__ import annotations

import argparse
from pathlib import Path

from storage.commands.base import Add, Result, add_manager, managed
from storage.exchange.imports.question_files import questions_to_annotate
from storage.store import Store


def run(url: str, args: argparse.Namespace) -> Result:
    with Store(url) as store:
        manager, project = managed(store, args)
        report = store.intake.add_items(manager, project.id, questions_to_annotate(args.file), gold=args.gold)
    body = {"project": project.id, "added": report.added, "known": report.known, "linked": report.linked}
    words = f"{project.name}: {report.added} questions added, {report.known} already in the project or listed twice"
    return body, f"{words}; {report.linked} predictions linked"


def add_parser(add: Add) -> None:
    more = add(
        "add-questions",
        run,
        "add questions to a project, from JSON (with or without answers) or text with one question per line",
    )
    more.add_argument("file", type=Path, metavar="FILE", help="file to read")
    add_manager(more)
    more.add_argument("--gold", action="store_true", help="add them as gold items, whose answers are the right ones")
