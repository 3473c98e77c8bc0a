"""`python -m core`: ask, index, systems, score, evaluate, train.

Exit code 0 only on success; errors in one line on stderr; with --json, stdout holds the one object and nothing else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from core.errors import AmbiscopeError
from core.settings import Settings


def parser() -> argparse.ArgumentParser:
    from core.training import cli as training

    root = argparse.ArgumentParser(prog="python -m core", description="Ambiscope: answers to ambiguous questions")
    commands = root.add_subparsers(dest="command", required=True)
    training.add_parser(commands)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    try:
        return int(args.run(args, Settings.from_env()))
    except AmbiscopeError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 1
