"""`python -m core`: ask, index, systems, score, evaluate, compare, retrieval-eval, train and more.

Exit code 0 only on success; errors in one line on stderr; with --json, stdout holds the one object and nothing else.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any

from core import plugins
from core.commands import COMMANDS
from core.errors import AmbiscopeError, InputError, check_removed
from core.registry import Registry, problems
from core.settings import Settings, quiet_libraries
from core.text import text_problem


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="python -m core", description="Ambiscope: find all answers to ambiguous questions.")
    commands = root.add_subparsers(dest="command", required=True)
    for name in COMMANDS:
        importlib.import_module(f"core.commands.{name}").add_parser(commands)
    return root


def check_command(program: str, words: Sequence[str]) -> None:
    """Raises InputError with what replaces it if the command, or the target of `train`, no longer exists."""
    check_removed(*(" ".join([program, *words[:count]]) for count in (1, 2)))


def check_text(args: argparse.Namespace) -> None:
    """Refuses arguments with lone surrogates (bytes of another encoding), which cannot be stored or printed.  Paths may have them.

    Raises InputError naming the argument.
    """
    for name, value in vars(args).items():
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str) and (problem := text_problem(word)):
                raise InputError(
                    f"{name.replace('_', '-')} {ascii(word)[:80]} cannot be read: {problem}; type it again as plain text"
                )


def warn_of_plugins(*registries: Registry[Any]) -> None:
    """Reports on stderr which plugins of core and of further registries don't work.  The command continues without them."""
    if plugins.exist():
        from core.metrics import METRICS
        from core.retrieval.readers import READERS
        from core.systems import SYSTEMS

        for problem in problems(SYSTEMS, METRICS, READERS, *registries):
            print(f"warning: {problem}", file=sys.stderr)


def _unknown(args: argparse.Namespace, words: Sequence[str]) -> str:
    """One line for options that a command does not have."""
    command = f"core {args.command.replace('_', '-')}" + (f" {args.what}" if "what" in args else "")
    options = [word.partition("=")[0] for word in words if word.startswith("-")]
    problem = f"has no option {', '.join(options)}" if options else f"does not take '{words[0]}'"
    return f"{command} {problem}; see python -m {command} --help"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of a command line: 0 only on success."""
    quiet_libraries()
    try:
        check_command("core", sys.argv[1:] if argv is None else argv)
        args, unknown = parser().parse_known_args(argv)
        if unknown:
            raise InputError(_unknown(args, unknown))
        check_text(args)
        warn_of_plugins()
        return int(args.run(args, Settings.from_env()))
    except AmbiscopeError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        return 130
    except MemoryError:
        print("error: not enough memory; use fewer passages or close other programs", file=sys.stderr)
        return 1
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            return 1
        print(f"error: {error.filename or ''} {error.strerror or error}".replace("  ", " "), file=sys.stderr)
        return 1
