"""The commands about data going out, coming in, and around: export, import, add-questions, snapshot, snapshots, answer, loop."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.cli import quiet_libraries
from core.engine import Engine  # loads a model's libraries when it builds a system, not before
from core.errors import AmbiscopeError, CancelledError, InputError
from core.settings import Settings
from core.systems.shared.base import Options
from core.types import AnsweringSystem
from storage.analysis.answering import Answering
from storage.analysis.loop import PRACTICE, LoopOptions, run_loop
from storage.exchange.exports.formats import FORMATS
from storage.exchange.exports.snapshots import SNAPSHOT_FORMATS
from storage.exchange.imports.importing import FORMATS as READ
from storage.exchange.imports.question_files import questions_to_annotate
from storage.exchange.votes import STAGES, Filters
from storage.records.projects import Project
from storage.store import Store

Result = tuple[dict[str, Any], str]  # for --json, and in words
Add = Callable[[str, Callable[[str, argparse.Namespace], Result], str], argparse.ArgumentParser]


def words_of(counts: dict[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items()) or "nothing"


def _day(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no time; write 2026-01-31 or 2026-01-31T12:00:00+00:00") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--annotator", action="append", default=[], metavar="NAME", help="only this annotator's words; may be repeated"
    )
    parser.add_argument("--system", default="", metavar="NAME", help="only judgments of this system's answers")
    parser.add_argument(
        "--stage", action="append", default=[], choices=STAGES, help="only words of this stage; may be repeated"
    )
    parser.add_argument(
        "--min-agreement", type=float, metavar="F1", help="only questions whose annotators agree this far (answer F1, 0 to 1)"
    )
    parser.add_argument("--since", type=_day, metavar="TIME", help="only words last changed at or after this day or time (UTC)")
    parser.add_argument("--until", type=_day, metavar="TIME", help="only words last changed before it")
    parser.add_argument("--project", default="", metavar="NAME", help="only this project's questions (its name or id)")
    parser.add_argument("--pseudonyms", action="store_true", help="numbers in the place of people's names")


def _filters(store: Store, args: argparse.Namespace) -> Filters:
    project = args.project
    named = store.find_project_named(project) if project else None
    return Filters(
        annotators=tuple(args.annotator),
        system=args.system,
        stages=tuple(args.stage),
        minimum_agreement=args.min_agreement,
        since=args.since,
        until=args.until,
        project=named.id if named else project,
        pseudonyms=args.pseudonyms,
    )


def _export(url: str, args: argparse.Namespace) -> Result:
    with Store(url) as store:
        made = store.export(args.format, args.out, filters=_filters(store, args))
    return made.to_json(), f"{args.out}: {words_of(dict(made.counts))} ({made.bytes} bytes, manifest beside it)"


def _import(url: str, args: argparse.Namespace) -> Result:
    with Store(url) as store:
        report = store.import_file(args.file, format=args.format, annotator=args.annotator)
    known = f"; already there: {words_of(dict(report.known))}" if report.known else ""
    return report.to_json(), f"{args.file}: stored {words_of(dict(report.stored))}{known}"


def _for_managers(command: argparse.ArgumentParser) -> None:
    """What `_managed` reads."""
    command.add_argument("--project", required=True, metavar="NAME", help="the project's name or id")
    command.add_argument("--by", default="", metavar="NAME", help="the manager who asks for it (default: AMBISCOPE_ANNOTATOR)")


def _managed(store: Store, args: argparse.Namespace) -> tuple[str, Project]:
    """(who asks, the project) of a command for managers.  Raises NotAllowedError, NotFoundError."""
    by = args.by or Settings.from_env().annotator
    store.require(by, "manager")
    return by, store.find_project_named(args.project) or store.get_project(args.project)


def _add_questions(url: str, args: argparse.Namespace) -> Result:
    with Store(url) as store:
        by, project = _managed(store, args)
        report = store.add_items(by, project.id, questions_to_annotate(args.file), gold=args.gold)
    body = {"project": project.id, "added": report.added, "known": report.known, "linked": report.linked}
    words = f"{project.name}: {report.added} questions added, {report.known} were there already"
    return body, f"{words}; {report.linked} predictions linked"


def _snapshot(url: str, args: argparse.Namespace) -> Result:
    folder = Settings.from_env().home / "snapshots"
    formats = tuple(args.format) or SNAPSHOT_FORMATS
    with Store(url) as store:
        made = store.take_snapshot(folder, filters=_filters(store, args), formats=formats, note=args.note)
    counts = made.counts.get("training") or next(iter(made.counts.values()))
    where = folder / f"{made.number:04d}"
    return made.to_json() | {"folder": str(where)}, f"snapshot {made.number} in {where}: {words_of(dict(counts))}"


def _snapshots(url: str, args: argparse.Namespace) -> Result:
    with Store(url) as store:
        found = store.snapshots(limit=500)
        if args.check is not None:
            files = store.snapshot_files(args.check, Settings.from_env().home / "snapshots")
            body: dict[str, Any] = {"number": args.check, "files": {k: str(v) for k, v in files.items()}}
            return body, f"snapshot {args.check} is what it was: {len(files)} files"
    rows = [
        f"{s.number}: {s.created:%Y-%m-%d %H:%M} UTC, {s.bytes} bytes, sha256 {s.sha256[:16]}{', ' + s.note if s.note else ''}"
        for s in found
    ]
    return {"snapshots": [s.to_json() for s in found]}, "\n".join(rows) or "there is no snapshot yet"


def _answer(url: str, args: argparse.Namespace) -> Result:
    """Raises AmbiscopeError when every question failed."""
    quiet_libraries()  # before a model imports them
    settings = Settings.from_env()
    with Store(url) as store:
        by, project = _managed(store, args)
        options = Options(max_answers=settings.max_answers, clarify=args.clarify)
        engine = Engine(settings)

        def build(own_passages: bool) -> AnsweringSystem:
            return engine.system(args.system, args.corpus or project.corpus or None, options, own_passages=own_passages)

        run, told = Answering(store, project, args.system, by, build, args.limit), _Said()
        run.answer_items(said=lambda: told(f"answering: {run.stage}", run.part))
    if run.failures and not run.answered:
        raise AmbiscopeError(f"every question failed; the first one, '{run.failed[0][0][:80]}': {run.failed[0][1]}")
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


def _loop(url: str, args: argparse.Namespace) -> Result:
    settings = Settings.from_env()
    with Store(url) as store:
        options = LoopOptions(
            out=args.out,
            snapshot=args.snapshot,
            filters=_filters(store, args),
            questions=args.questions,
            corpus=args.corpus,
            init=args.init,
            steps=args.steps,
            minutes=args.minutes,
            lr=args.lr,
            head_lr=args.head_lr,
            replay=None if args.no_replay else args.replay,
            limit=args.limit,
            clarify=args.clarify,
            seed=args.seed,
        )
        if args.snapshot is not None and not options.filters.empty:
            raise InputError("a snapshot that was taken is what it is: leave the filters out, or let the loop take one")
        signal.signal(signal.SIGTERM, _ended)  # so that the process that trains ends too
        made = run_loop(store, settings, options, progress=_Said())
    left = (
        f"{made.left_out} questions were left out because they were trained on" if made.left_out else "no question was left out"
    )
    return made.to_json(), f"{made.words()}\n{left}; checkpoint {made.checkpoint}; evaluations {made.before}, {made.after}"


def _ended(_number: int, _frame: object) -> None:
    raise CancelledError("the loop was ended; the same command goes on with it")


class _Said:
    """One line on stderr for each part, and at every tenth of it."""

    def __init__(self) -> None:
        self.last: tuple[str, int] = ("", -1)

    def __call__(self, what: str, share: float | None) -> None:
        tenth = (what.partition(":")[0], -1 if share is None else int(10 * share))
        if tenth != self.last:
            self.last = tenth
            print(what, file=sys.stderr, flush=True)


def add_data_commands(add: Add) -> None:
    out = add("export", _export, "write a training file, a table, or everything (jsonl), with a manifest beside it")
    out.add_argument("--format", required=True, choices=tuple(FORMATS))
    out.add_argument("--out", required=True, type=Path, metavar="FILE")
    _add_filters(out)
    read = add("import", _import, "store a jsonl export, an AmbigNQ file, predictions or questions, all or nothing")
    read.add_argument("file", type=Path, metavar="FILE")
    read.add_argument("--format", default="auto", choices=("auto", *READ))
    read.add_argument("--annotator", default="ambignq", metavar="NAME", help="AmbigNQ's n-th annotations go to 'NAME n'")
    more = add(
        "add-questions",
        _add_questions,
        "add questions to a project: JSON with or without answers, or text with one question a line",
    )
    more.add_argument("file", type=Path, metavar="FILE")
    _for_managers(more)
    more.add_argument("--gold", action="store_true", help="they are qualification items: their answers are the right ones")
    aside = [name for name in FORMATS if name not in SNAPSHOT_FORMATS]
    snap = add(
        "snapshot",
        _snapshot,
        f"a numbered export that never changes: {', '.join(SNAPSHOT_FORMATS)}; {' and '.join(aside)} where --format names them",
    )
    snap.add_argument(
        "--format",
        action="append",
        default=[],
        choices=tuple(FORMATS),
        help=f"this format only; may be repeated (default: {', '.join(SNAPSHOT_FORMATS)})",
    )
    snap.add_argument("--note", default="", help="what it is for")
    _add_filters(snap)
    listed = add("snapshots", _snapshots, "list the snapshots, or check the files of one")
    listed.add_argument("--check", type=int, metavar="N", help="compare the files of snapshot N with its digests")
    answer = add(
        "answer", _answer, "have a system answer a project's questions that it has not answered yet, as the manage page does"
    )
    _for_managers(answer)
    answer.add_argument("--system", required=True, metavar="NAME", help="one of the project's systems")
    answer.add_argument("--corpus", default="", metavar="NAME", help="where passages come from (default: the project's)")
    answer.add_argument("--limit", type=int, metavar="N", help="answer N questions at most")
    answer.add_argument(
        "--no-clarify", dest="clarify", action="store_false", help="no disambiguated questions, several times faster"
    )
    loop = add("loop", _loop, "train the default model further from a snapshot; measure it before and after on other questions")
    loop.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="a folder for this loop; a killed one goes on there"
    )
    loop.add_argument("--snapshot", type=int, metavar="N", help="this one (default: one is taken)")
    loop.add_argument("--minutes", type=float, help="train so long")
    loop.add_argument("--steps", type=int, help="or so many steps")
    loop.add_argument("--questions", type=Path, metavar="FILE", help="what is asked before and after (default: data/starter)")
    loop.add_argument("--corpus", default="", help="where passages come from (default: AMBISCOPE_CORPUS)")
    loop.add_argument("--limit", type=int, metavar="N", help="ask N questions only")
    loop.add_argument("--init", default="default", help="the checkpoint to start from: bundled name or folder")
    loop.add_argument("--lr", type=float, default=2e-5, help="of the encoder")
    loop.add_argument("--head-lr", type=float, default=5e-5)
    loop.add_argument(
        "--replay", type=Path, default=PRACTICE, metavar="FOLDER", help="trained on beside the snapshot (data/practice)"
    )
    loop.add_argument("--no-replay", action="store_true", help="the snapshot alone")
    loop.add_argument("--clarify", action="store_true", help="with disambiguated questions, several times slower")
    loop.add_argument("--seed", type=int, default=0)
    _add_filters(loop)
