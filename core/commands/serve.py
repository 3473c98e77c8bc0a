"""`python -m core serve`: the engine as a service over HTTP."""

from __future__ import annotations

import argparse
from typing import Any

from core.settings import Settings, let_threads_sleep


def add_parser(commands: Any) -> None:
    serve = commands.add_parser("serve", help="answer questions over HTTP")
    serve.add_argument("--host", help="address to listen on (default: AMBISCOPE_SERVE_HOST, 127.0.0.1)")
    serve.add_argument("--port", type=int, help="port (default: AMBISCOPE_SERVE_PORT, 8700)")
    serve.set_defaults(run=run)


def run(args: argparse.Namespace, settings: Settings) -> int:
    let_threads_sleep()
    from core.serve.server import run as serve

    return serve(settings, args.host or settings.serve_host, settings.serve_port if args.port is None else args.port)
