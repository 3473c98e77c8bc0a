"""`python -m storage`: export, import, add-questions, snapshot, answer, loop, backup, restore, check.

The exit code is 0 only on success; an error is one line on stderr.  With `--json`, stdout holds one JSON object and nothing else.
The database is set by AMBISCOPE_HOME or AMBISCOPE_DATABASE_URL.

Nobody signs in here: whoever runs these commands can read and write the database anyway.  Commands that change a project
act for a manager (--by), whose role is checked and who is named in the activity log.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from core.cli import check_text
from core.errors import AmbiscopeError, InputError, StorageError
from core.settings import Settings
from storage.commands.data import Result, add_data_commands, words_of
from storage.commands.evaluations import import_run
from storage.exchange.backup import restore
from storage.store import Store


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")


def _import_evaluation(url: str, args: argparse.Namespace) -> Result:
    folder = args.folder
    if not folder.is_absolute() and not folder.is_dir():
        folder = Settings.from_env().runs_dir / folder
    with Store(url) as store:
        made = import_run(store, folder, args.label)
    words = "stored" if made.new else "already stored"
    return asdict(made), f"{folder}: {words}, {made.system}, {made.n} questions"


def _backup(url: str, args: argparse.Namespace) -> Result:
    with Store(url) as store:
        made = store.maintenance.backup(args.file)
    return made.to_json(), f"{made.file}: {made.bytes} bytes, verified"


def _restore(url: str, args: argparse.Namespace) -> Result:
    kept = restore(url, args.file)
    words = f"restored {args.file}" + (f"; the previous database is kept in {kept}" if kept else "")
    return {"restored": str(args.file), "kept": str(kept) if kept else None}, words


def _check(url: str, _args: argparse.Namespace) -> Result:
    with Store(url) as store:
        health, counts = store.maintenance.health(full=True), store.maintenance.counts()
    if not health.ok:
        raise StorageError(f"{health.where}: {health.integrity}")
    lines = [f"{health.where}: intact, schema {health.revision}, {health.bytes} bytes, {words_of(counts)}"]
    return {**health.to_json(), "counts": counts}, "\n".join(lines + [f"note: {w}" for w in health.warnings])


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m storage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, run: Callable[[str, argparse.Namespace], Result], help: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help, description=help)
        made.set_defaults(run=run)
        made.add_argument("--json", action="store_true", help="print one JSON object")
        return made

    add_data_commands(add)
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
