"""`import`, `add-questions` and `import-evaluation`."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from core.errors import InputError
from core.settings import Settings
from storage.commands.base import Add, CommandResult, add_manager, format_counts, managed
from storage.exchange.imports.importing import FORMATS
from storage.exchange.imports.question_files import questions_to_annotate
from storage.results.run_folders import import_run
from storage.store import Store


def import_file(url: str, args: argparse.Namespace) -> CommandResult:
    with Store(url) as store:
        report = store.imports.import_file(args.file, format=args.format, annotator=args.annotator)
    existing = f"; already there: {format_counts(report.known)}" if report.known else ""
    return report.to_json(), f"{args.file}: stored {format_counts(report.stored)}{existing}"


def add_questions(url: str, args: argparse.Namespace) -> CommandResult:
    with Store(url) as store:
        manager, project = managed(store, args)
        questions = questions_to_annotate(args.file)
        try:
            report = store.intake.add_items(manager, project.id, questions, gold=args.gold)
        except InputError as error:  # of a question, by its number
            raise InputError(f"{args.file}: {error}") from None
    body = {"project": project.id, "added": report.added, "known": report.known, "linked": report.linked}
    words = f"{project.name}: {report.added} questions added, {report.known} already in the project or listed twice"
    words += f"; {report.linked} predictions linked"
    if report.unmatched:
        names = ", ".join(f"'{text[:60]}'" for text in report.unmatched[:3])
        words += f"\n{args.file}: no system gave a right answer to {len(report.unmatched)} of its gold questions ({names}): check the answers"
    return body | {"unmatched": list(report.unmatched)}, words


def import_evaluation(url: str, args: argparse.Namespace) -> CommandResult:
    folder = args.folder
    if not folder.is_absolute() and not folder.is_dir():
        folder = Settings.from_env().runs_dir / folder
    with Store(url) as store:
        imported = import_run(store.evaluations, folder, args.label)
    words = "stored" if imported.new else "already stored"
    return asdict(imported), f"{folder}: {words}, {imported.system}, {imported.n} questions"


def add_parser(add: Add) -> None:
    summary = "import a jsonl export, an AmbigNQ file, predictions or questions; stores all of it or nothing"
    rows = add("import", import_file, summary)
    rows.add_argument("file", type=Path, metavar="FILE", help="file to read")
    rows.add_argument("--format", default="auto", choices=("auto", *FORMATS), help="format of the file (default: auto)")
    rows.add_argument(
        "--annotator",
        default="ambignq",
        metavar="NAME",
        help="name for AmbigNQ's annotators; the n-th becomes 'NAME n' (default: ambignq)",
    )
    summary = (
        "add questions to a project, from JSON (with or without answers), a table (.csv) or text with one question per line"
    )
    questions = add("add-questions", add_questions, summary)
    questions.add_argument("file", type=Path, metavar="FILE", help="file to read")
    add_manager(questions)
    questions.add_argument("--gold", action="store_true", help="add them as gold items, whose answers are the right ones")
    run = add("import-evaluation", import_evaluation, "store a finished run of `python -m core evaluate --out`")
    run.add_argument("folder", type=Path, metavar="FOLDER", help="a run folder, or its name under AMBISCOPE_HOME/runs")
    run.add_argument("--label", default="", help="name of the run on the Evaluate page")
