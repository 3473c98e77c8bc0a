"""`python -m storage`: export, import, add-questions, snapshot, answer, loop, backup, restore, check.

The exit code is 0 only on success; an error is one line on stderr.  With `--json`, stdout holds one JSON object and nothing else.
The database is set by AMBISCOPE_HOME or AMBISCOPE_DATABASE_URL.

Nobody signs in here: whoever runs these commands can read and write the database anyway.  Commands that change a project
act for a manager (--by), whose role is checked and who is named in the activity log.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from core.cli import check_text
from core.cluster.connect import add_option, connected
from core.errors import AmbiscopeError, CancelledError, InputError, StorageError
from core.serve.choice import make_engine  # loads a model's libraries when it builds a system, not before
from core.settings import Settings, quiet_libraries
from core.types import AnsweringSystem
from storage.analysis.answering import Answering
from storage.analysis.loop import HUNDREDS, PRACTICE, LoopOptions, run_loop
from storage.exchange.backup import restore
from storage.exchange.exports.formats import FORMATS
from storage.exchange.exports.snapshots import SNAPSHOT_FORMATS
from storage.exchange.filters import STAGES, Filters
from storage.exchange.imports.importing import FORMATS as READ
from storage.exchange.imports.question_files import questions_to_annotate
from storage.records.projects import Project
from storage.results.run_folders import import_run
from storage.schema.engine import parse_url, sqlite_path
from storage.store import Store

Result = tuple[dict[str, Any], str]  # for --json, and in words
Add = Callable[[str, Callable[[str, argparse.Namespace], Result], str], argparse.ArgumentParser]


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counts.items()) or "nothing"


def _day(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time; write 2026-01-31 or 2026-01-31T12:00:00+00:00") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _add_filters(parser: argparse.ArgumentParser) -> None:
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


def _filters(store: Store, args: argparse.Namespace) -> Filters:
    project = args.project
    named = store.projects.find_project_named(project) if project else None
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
        made = store.exports.export(args.format, args.out, filters=_filters(store, args))
    return made.to_json(), f"{args.out}: {_counted(dict(made.counts))} ({made.bytes} bytes, manifest beside it)"


def _import(url: str, args: argparse.Namespace) -> Result:
    with Store(url) as store:
        report = store.imports.import_file(args.file, format=args.format, annotator=args.annotator)
    known = f"; already there: {_counted(dict(report.known))}" if report.known else ""
    return report.to_json(), f"{args.file}: stored {_counted(dict(report.stored))}{known}"


def _for_managers(command: argparse.ArgumentParser) -> None:
    """What `_managed` reads."""
    command.add_argument("--project", required=True, metavar="NAME", help="name or id of the project")
    command.add_argument(
        "--by", default="", metavar="NAME", help="manager in whose name this is done (default: AMBISCOPE_ANNOTATOR)"
    )


def _managed(store: Store, args: argparse.Namespace) -> tuple[str, Project]:
    """(who asks, the project) of a command for managers.  Raises NotAllowedError, NotFoundError."""
    by = args.by or Settings.from_env().annotator
    store.people.require(by, "manager")
    return by, store.projects.find_project_named(args.project) or store.projects.get_project(args.project)


def _add_questions(url: str, args: argparse.Namespace) -> Result:
    with Store(url) as store:
        by, project = _managed(store, args)
        report = store.intake.add_items(by, project.id, questions_to_annotate(args.file), gold=args.gold)
    body = {"project": project.id, "added": report.added, "known": report.known, "linked": report.linked}
    words = f"{project.name}: {report.added} questions added, {report.known} already in the project or listed twice"
    return body, f"{words}; {report.linked} predictions linked"


def _snapshot(url: str, args: argparse.Namespace) -> Result:
    folder = Settings.from_env().home / "snapshots"
    formats = tuple(args.format) or SNAPSHOT_FORMATS
    with Store(url) as store:
        made = store.exports.take_snapshot(folder, filters=_filters(store, args), formats=formats, note=args.note)
    counts = made.counts.get("training") or next(iter(made.counts.values()))
    where = folder / f"{made.number:04d}"
    return made.to_json() | {"folder": str(where)}, f"snapshot {made.number} in {where}: {_counted(dict(counts))}"


def _snapshots(url: str, args: argparse.Namespace) -> Result:
    with Store(url) as store:
        found = store.exports.snapshots(limit=500)
        if args.check is not None:
            files = store.exports.snapshot_files(args.check, Settings.from_env().home / "snapshots")
            body: dict[str, Any] = {"number": args.check, "files": {k: str(v) for k, v in files.items()}}
            return body, f"snapshot {args.check} is unchanged: {len(files)} files checked"
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
        engine = make_engine(settings)
        options = engine.options(clarify=args.clarify)

        def build(own_passages: bool) -> AnsweringSystem:
            return engine.system(args.system, args.corpus or project.corpus or None, options, own_passages=own_passages)

        with connected(args.ray, settings) as cluster:
            elsewhere = None
            if cluster is not None:
                from core.cluster.jobs import answering

                elsewhere = answering(cluster, args.system, args.corpus or project.corpus or None, options, build)
            run, told = Answering(store, project, args.system, by, build, args.limit, elsewhere, args.batch), _Said()
            run.answer_items(said=lambda: told(f"answering: {run.stage}", run.part))
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
            train_from=args.train_from,
            lr=args.lr,
            head_lr=args.head_lr,
            rank=args.rank,
            replay=None if args.no_replay else args.replay,
            limit=args.limit,
            clarify=args.clarify,
            seed=args.seed,
        )
        if args.snapshot is not None and not options.filters.empty:
            raise InputError("filters do not apply to an existing snapshot; leave them out, or let the loop take a snapshot")
        before = signal.signal(signal.SIGTERM, _ended)  # so that the process that trains ends too
        try:
            made = run_loop(store, settings, options, progress=_Said())
        finally:
            signal.signal(signal.SIGTERM, before)
    left = (
        f"{made.left_out} questions were left out because the model was trained on them"
        if made.left_out
        else "no question was left out"
    )
    return made.to_json(), f"{made.words()}\n{left}; checkpoint {made.checkpoint}; evaluations {made.before}, {made.after}"


def _ended(_number: int, _frame: object) -> None:
    raise CancelledError("the loop was stopped; run the same command again to resume it")


class _Said:
    """One line on stderr for each part, and at every tenth of it."""

    def __init__(self) -> None:
        self.last: tuple[str, int] = ("", -1)

    def __call__(self, what: str, share: float | None) -> None:
        tenth = (what.partition(":")[0], -1 if share is None else int(10 * share))
        if tenth != self.last:
            self.last = tenth
            print(what, file=sys.stderr, flush=True)


def _import_evaluation(url: str, args: argparse.Namespace) -> Result:
    folder = args.folder
    if not folder.is_absolute() and not folder.is_dir():
        folder = Settings.from_env().runs_dir / folder
    with Store(url) as store:
        made = import_run(store.evaluations, folder, args.label)
    words = "stored" if made.new else "already stored"
    return asdict(made), f"{folder}: {words}, {made.system}, {made.n} questions"


def _refuse_missing(url: str) -> None:
    """Raises InputError where a store would make a new, empty database."""
    path = sqlite_path(parse_url(url))
    if path is not None and not path.exists():
        raise InputError(f"{path}: there is no database; look at AMBISCOPE_HOME, or put a backup back with `restore`")


def _backup(url: str, args: argparse.Namespace) -> Result:
    _refuse_missing(url)
    with Store(url) as store:
        made = store.maintenance.backup(args.file)
    return made.to_json(), f"{made.file}: {made.bytes} bytes, verified"


def _restore(url: str, args: argparse.Namespace) -> Result:
    kept = restore(url, args.file)
    words = f"restored {args.file}" + (f"; the previous database is kept in {kept}" if kept else "")
    return {"restored": str(args.file), "kept": str(kept) if kept else None}, words


def _check(url: str, _args: argparse.Namespace) -> Result:
    _refuse_missing(url)
    with Store(url) as store:
        health, counts = store.maintenance.health(full=True), store.maintenance.counts()
    if not health.ok:
        raise StorageError(f"{health.where}: {health.integrity}")
    lines = [f"{health.where}: intact, schema {health.revision}, {health.bytes} bytes, {_counted(counts)}"]
    return {**health.to_json(), "counts": counts}, "\n".join(lines + [f"note: {w}" for w in health.warnings])


def _add_data_commands(add: Add) -> None:
    out = add("export", _export, "export training files, tables, or everything (jsonl), with a manifest")
    out.add_argument("--format", required=True, choices=tuple(FORMATS), help="format of the file")
    out.add_argument("--out", required=True, type=Path, metavar="FILE", help="file to write; with datasets, a new folder")
    _add_filters(out)
    read = add(
        "import", _import, "import a jsonl export, an AmbigNQ file, predictions or questions; stores all of it or nothing"
    )
    read.add_argument("file", type=Path, metavar="FILE", help="file to read")
    read.add_argument("--format", default="auto", choices=("auto", *READ), help="format of the file (default: auto)")
    read.add_argument(
        "--annotator",
        default="ambignq",
        metavar="NAME",
        help="name for AmbigNQ's annotators; the n-th becomes 'NAME n' (default: ambignq)",
    )
    more = add(
        "add-questions",
        _add_questions,
        "add questions to a project, from JSON (with or without answers) or text with one question per line",
    )
    more.add_argument("file", type=Path, metavar="FILE", help="file to read")
    _for_managers(more)
    more.add_argument("--gold", action="store_true", help="add them as qualification items, whose answers are the right ones")
    files = [name for name, format in FORMATS.items() if not format.folder]
    aside = [name for name in files if name not in SNAPSHOT_FORMATS]
    snap = add(
        "snapshot",
        _snapshot,
        f"take a numbered export that never changes: {', '.join(SNAPSHOT_FORMATS)}; {' and '.join(aside)} only if --format names them",
    )
    snap.add_argument(
        "--format",
        action="append",
        default=[],
        choices=files,
        help=f"export only this format; may be repeated (default: {', '.join(SNAPSHOT_FORMATS)})",
    )
    snap.add_argument("--note", default="", help="purpose of the snapshot")
    _add_filters(snap)
    listed = add("snapshots", _snapshots, "list snapshots, or check the files of one")
    listed.add_argument("--check", type=int, metavar="N", help="check the files of snapshot N against their digests")
    answer = add(
        "answer", _answer, "let a system answer a project's questions, as on the Manage page; skips those it has answered"
    )
    _for_managers(answer)
    answer.add_argument("--system", required=True, metavar="NAME", help="one of the project's systems")
    answer.add_argument("--corpus", default="", metavar="NAME", help="corpus to read (default: the project's)")
    answer.add_argument("--limit", type=int, metavar="N", help="answer at most N questions")
    answer.add_argument("--batch", type=int, default=1, metavar="N", help="answer N questions at a time (default: 1)")
    add_option(answer)
    answer.add_argument(
        "--no-clarify", dest="clarify", action="store_false", help="do not write disambiguated questions; several times faster"
    )
    about = "fit the default system to the judgments of a snapshot, train it further where there are hundreds, and evaluate it before and after on other questions"
    loop = add("loop", _loop, about)
    loop.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="DIR",
        help="folder for this loop; the same command resumes an interrupted one",
    )
    loop.add_argument("--snapshot", type=int, metavar="N", help="use snapshot N (default: take a new one)")
    loop.add_argument("--minutes", type=float, help="train the answering model further, for so many minutes at most")
    loop.add_argument("--steps", type=int, help="the same, for so many steps at most")
    loop.add_argument(
        "--train-from",
        type=int,
        default=HUNDREDS,
        metavar="N",
        help="train it only where the snapshot has N questions to train on (default: %(default)s); fewer fit rerankers alone",
    )
    loop.add_argument(
        "--questions", type=Path, metavar="FILE", help="question file for the evaluations (default: data/starter)"
    )
    loop.add_argument("--corpus", default="", help="corpus to read (default: AMBISCOPE_CORPUS)")
    loop.add_argument("--limit", type=int, metavar="N", help="use only N questions")
    loop.add_argument(
        "--init", default="default", help="checkpoint to start from: a bundled name or a folder (default: default)"
    )
    loop.add_argument(
        "--rank",
        type=int,
        default=16,
        help="of the low-rank differences of the encoder that are trained; 0: all weights (default: %(default)s)",
    )
    loop.add_argument(
        "--lr",
        type=float,
        default=2e-4,
        help="learning rate of the encoder; with --rank 0 a tenth of it (default: %(default)s)",
    )
    loop.add_argument("--head-lr", type=float, default=5e-5, help="learning rate of all other weights (default: %(default)s)")
    loop.add_argument(
        "--replay",
        type=Path,
        default=PRACTICE,
        metavar="FOLDER",
        help="other data to train on, beside the snapshot (default: data/practice)",
    )
    loop.add_argument("--no-replay", action="store_true", help="train on the snapshot alone")
    loop.add_argument("--clarify", action="store_true", help="also write disambiguated questions; several times slower")
    loop.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    _add_filters(loop)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m storage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, run: Callable[[str, argparse.Namespace], Result], help: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help, description=help)
        made.set_defaults(run=run)
        made.add_argument("--json", action="store_true", help="print one JSON object")
        return made

    _add_data_commands(add)
    run = add("import-evaluation", _import_evaluation, "store a finished run of `python -m core evaluate --out`")
    run.add_argument("folder", type=Path, metavar="FOLDER", help="a run folder, or its name under AMBISCOPE_HOME/runs")
    run.add_argument("--label", default="", help="name of the run on the Evaluate page")
    save = add("backup", _backup, "make a verified copy of the database, even while it is in use")
    save.add_argument(
        "file",
        type=Path,
        nargs="?",
        metavar="FILE",
        help="the backup file (default: a file in the folder backups beside the database)",
    )
    back = add("restore", _restore, "restore a backup; the present database is kept beside it")
    back.add_argument("file", type=Path, metavar="FILE", help="the backup file")
    add("check", _check, "check the whole database for damage")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    try:
        args = _parser().parse_args(argv)
        check_text(args)
        body, words = args.run(Settings.from_env().url, args)
    except AmbiscopeError as e:
        print(f"error: {' '.join(str(e).split())}", file=sys.stderr)
        return e.exit_code
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        return 130
    print(json.dumps(body, ensure_ascii=False) if args.json else words)
    return 0


if __name__ == "__main__":
    sys.exit(main())
