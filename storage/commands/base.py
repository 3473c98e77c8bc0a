"""Shared by several commands: their results, the options of filters and of managers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from core.settings import Settings
from storage.exchange.filters import ANSWERS, STAGES, Filters
from storage.records.projects import Project
from storage.store import Store

CommandResult = tuple[dict[str, Any], str]  # for --json, and in words
CommandRun = Callable[[str, argparse.Namespace], CommandResult]  # (the database's URL, arguments)
Add = Callable[[str, CommandRun, str], argparse.ArgumentParser]  # (name, run, help)


def format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items()) or "nothing"


def _day(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time; write 2026-01-31 or 2026-01-31T12:00:00+00:00") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--answers",
        default="final",
        choices=ANSWERS,
        help="final: the one answer set of each finished item; all: every contribution, with stage, person, version and whether it "
        "counts (default: final)",
    )
    parser.add_argument(
        "--annotator", action="append", default=[], metavar="NAME", help="include only this annotator's work; may be repeated"
    )
    parser.add_argument("--system", default="", metavar="NAME", help="include only judgments of this system's answers")
    parser.add_argument("--stage", action="append", default=[], choices=STAGES, help="include only this stage; may be repeated")
    parser.add_argument(
        "--min-agreement",
        type=float,
        metavar="F1",
        help="include only questions whose annotators agree at least this much (answer F1, 0 to 1)",
    )
    parser.add_argument(
        "--since", type=_day, metavar="TIME", help="include only work last changed at or after this day or time (UTC)"
    )
    parser.add_argument(
        "--until", type=_day, metavar="TIME", help="include only work last changed before this day or time (UTC)"
    )
    parser.add_argument("--project", default="", metavar="NAME", help="include only this project (name or id)")
    parser.add_argument("--pseudonyms", action="store_true", help="replace people's names with numbers")
    parser.add_argument("--weighted", action="store_true", help="in fid and training, weigh people by their competence")


def filters_of(store: Store, args: argparse.Namespace) -> Filters:
    project = store.projects.find_project_named(args.project) if args.project else None
    return Filters(
        annotators=tuple(args.annotator),
        system=args.system,
        stages=tuple(args.stage),
        minimum_agreement=args.min_agreement,
        since=args.since,
        until=args.until,
        project=project.id if project else args.project,
        pseudonyms=args.pseudonyms,
        weighted=args.weighted,
        answers=args.answers,
    )


def add_manager(command: argparse.ArgumentParser) -> None:
    """Adds the options that `managed` reads."""
    command.add_argument("--project", required=True, metavar="NAME", help="name or id of the project")
    command.add_argument(
        "--by", default="", metavar="NAME", help="manager in whose name this is done (default: AMBISCOPE_ANNOTATOR)"
    )


def managed(store: Store, args: argparse.Namespace) -> tuple[str, Project]:
    """(manager, project) from a command for managers.  Raises NotAllowedError, NotFoundError."""
    manager = args.by or Settings.from_env().annotator
    store.people.require(manager, "manager")
    return manager, store.projects.find_project_named(args.project) or store.projects.get_project(args.project)
