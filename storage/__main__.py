"""`python -m storage`: export, import, add-questions, snapshot, answer, backup, restore, check.

The exit code is 0 only on success; an error is one line on stderr.  With `--json`, stdout holds one JSON object and nothing else.
The database is set by AMBISCOPE_HOME or AMBISCOPE_DATABASE_URL.

Nobody signs in here: a person who runs these commands can read and write the database anyway.  Commands that change a project
act for a manager (--by), whose role is checked and who is named in the activity log.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import NoReturn

from core.cli import check_command, check_text, warn_of_plugins
from core.errors import AmbiscopeError, InputError
from core.settings import Settings
from storage.commands import answer, database, exports, imports
from storage.commands.base import CommandRun
from storage.exchange.exports.formats import FORMATS

COMMANDS = (exports, imports, answer, database)


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m storage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, run: CommandRun, help: str) -> argparse.ArgumentParser:
        command_parser = commands.add_parser(name, help=help, description=help)
        command_parser.set_defaults(run=run)
        command_parser.add_argument("--json", action="store_true", help="print one JSON object")
        return command_parser

    for command in COMMANDS:
        command.add_parser(add)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    try:
        check_command("storage", sys.argv[1:] if argv is None else argv)
        args = _parser().parse_args(argv)
        check_text(args)
        warn_of_plugins(FORMATS)
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
