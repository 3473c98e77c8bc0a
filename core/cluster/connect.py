"""A Ray cluster for `--ray auto|ADDRESS|local`: finds it, checks it, and leaves it running. Source: Ray
(https://docs.ray.io)."""

from __future__ import annotations

import argparse
import logging
import math
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.errors import ClusterError, InputError
from core.settings import Settings, prepare_ray

ANSWER_SECONDS = 15.0  # in which a cluster has to answer
LOCAL_STORE = 256 * 2**20  # bytes of shared memory for results on their way, with `--ray local`
# Ray's head speaks gRPC, that is HTTP/2: a client's greeting, and the byte of the answering frame that says SETTINGS (RFC 9113, 3.4 and 4.1)
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
_TYPE, _SETTINGS = 3, 4
_INSTALL = "Ray is not installed; run: pip install -r requirements-scale.txt"
_TOKEN = "if it requires a token, set RAY_AUTH_MODE=token (docs/scale.md)"
_START = "start one with `ray start --head` (docs/scale.md)"


def _print_to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Cluster:
    """A connected cluster.  `settings` are a worker's; its torch has one thread for each of its CPUs."""

    ray: Any  # the module
    settings: Settings
    workers: int  # that fit into it
    cpus: int  # of a worker
    gpus: int  # of a worker, 0 or 1
    say: Callable[[str], None] = _print_to_stderr  # reports progress


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="use the workers of a Ray cluster: HOST:PORT, auto for the cluster of this machine, local for this machine alone",
    )


def worker_count(nodes: Sequence[Mapping[str, Any]], cpus: int, gpus: int) -> int:
    """The number of workers with these CPUs and GPUs that fit on Ray's nodes.  Raises ClusterError if none fits."""
    alive = [node.get("Resources", {}) for node in nodes if node.get("Alive")]
    max_cpus = int(max((r.get("CPU", 0) for r in alive), default=0))
    if not max_cpus:
        raise ClusterError("no machine of the Ray cluster has a CPU for workers; start one with `ray start --num-cpus N`")
    if max_cpus < cpus:
        raise ClusterError(
            f"a worker takes {cpus} CPUs (AMBISCOPE_THREADS), and no machine of the Ray cluster has more than {max_cpus}; set fewer threads"
        )
    count = sum(int(min(r.get("CPU", 0) // cpus, r.get("GPU", 0) // gpus if gpus else math.inf)) for r in alive)
    if not count:
        raise ClusterError("no machine of the Ray cluster has both a GPU and the CPUs of a worker; set AMBISCOPE_DEVICE=cpu")
    return count


@contextmanager
def connected(address: str | None, settings: Settings) -> Iterator[Cluster | None]:
    """The cluster at `address` (`auto`, `local`, HOST:PORT); None without one.  What Ray prints goes to stderr.

    Raises ClusterError: Ray is missing, nothing answers in time, another version answers, or no worker fits.  Raises InputError for a
    word that is no address.
    """
    if address is None:
        yield None
        return
    prepare_ray(address == "local")
    try:
        import ray
    except ImportError as error:
        raise ClusterError(_INSTALL) from error
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))
        if address == "local":
            # Ray leaves its logs in its folder; the paths of its sockets must be short
            base = "/tmp" if Path("/tmp").is_dir() else None
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-", dir=base, ignore_cleanup_errors=True))
            options: dict[str, Any] = {
                "address": "local",
                "num_cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
                "include_dashboard": False,
                "object_store_memory": LOCAL_STORE,
                "_temp_dir": folder,
            }
        else:
            _require_answer(address)
            # `auto` as it is: only where Ray looks for the cluster itself does it use the token of this machine
            options = {"address": address}
        stack.callback(ray.shutdown)
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
        except Exception as error:  # Ray raises a dozen kinds: another version, a machine that has not joined, no memory
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ClusterError(f"the Ray cluster ({address}) cannot be used: {reason}; {_TOKEN}") from error
        cpus = settings.threads or 1
        gpus = int(settings.device != "cpu" and ray.cluster_resources().get("GPU", 0) >= 1)
        workers = worker_count(ray.nodes(), cpus, gpus)
        device = "cuda" if settings.device.startswith("cuda") else settings.device  # Ray shows a worker its own GPU only
        yield Cluster(ray, replace(settings, threads=cpus, device=device, database_url=""), workers, cpus, gpus)


def _require_answer(address: str) -> None:
    """Raises ClusterError if no cluster answers, InputError for a word that is no address."""
    if "://" in address:
        raise InputError(
            f"--ray {address}: Ray's client is not used; give HOST:PORT of the head, on a machine that joined its cluster"
        )
    if address == "auto":
        from ray._private.services import canonicalize_bootstrap_address_or_die  # what `ray status` uses

        try:
            address = canonicalize_bootstrap_address_or_die("auto")
        except (ConnectionError, ValueError) as error:
            raise ClusterError(f"no Ray cluster runs on this machine; {_START}, or give --ray HOST:PORT") from error
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(f"--ray {address}: write auto, local, or HOST:PORT, such as 10.0.0.1:6379")
    if reason := _silence(host.strip("[]"), int(port)):
        raise ClusterError(f"no Ray cluster answers at {address} ({reason}); check the address, or {_START}")


def _silence(host: str, port: int) -> str:
    """The reason why nothing that could be Ray answers there, or "" if something does.  Ray itself waits for minutes, or ends
    the process."""
    try:
        with socket.create_connection((host, port), timeout=ANSWER_SECONDS) as connection:
            connection.sendall(_GREETING)
            frame = b""
            with suppress(ConnectionError):
                frame = connection.makefile("rb").read(9)
    except TimeoutError:
        return f"no answer within {ANSWER_SECONDS:.0f} s"
    except OSError as error:
        return error.strerror or str(error)
    return "" if len(frame) == 9 and frame[_TYPE] == _SETTINGS else "something else than Ray answers"
