"""Whether a cluster answers at an address of `--ray`; no Ray runs here."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import pytest
from serving import free_port

from core.cli import main
from core.cluster import connect
from core.cluster.connect import connected, worker_count
from core.cluster.same import differences, facts_of, versions
from core.errors import ClusterError, InputError
from core.settings import Settings
from core.types import SystemInfo
from storage.__main__ import main as storage

Listen = Callable[[bytes | None], int]


@pytest.fixture
def listen() -> Iterator[Listen]:
    """listen(reply): a port at which something answers every line with `reply`; with None, it never says a word."""
    over = threading.Event()
    with ExitStack() as stack:

        def start(reply: bytes | None) -> int:
            class Handler(BaseRequestHandler):
                def handle(self) -> None:
                    if reply is None:
                        over.wait()
                    else:
                        self.request.recv(64)
                        self.request.sendall(reply)

            # Ray takes the machine's own address for 127.0.0.1
            server = stack.enter_context(ThreadingTCPServer(("", 0), Handler))
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            stack.callback(server.shutdown)
            return int(server.server_address[1])

        yield start
        over.set()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path))
    return tmp_path


def refusal(address: str) -> str:
    pytest.importorskip("ray")
    with pytest.raises((ClusterError, InputError)) as error, connected(address, Settings()):
        pass
    return str(error.value)


def test_without_an_address_there_is_no_cluster() -> None:
    with connected(None, Settings()) as cluster:
        assert cluster is None


def test_commands_say_what_to_install(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    passages = home / "a.tsv"
    passages.write_text("id\ttext\ttitle\n1\tRome is old.\tRome\n")
    for words in (["index", "--passages", str(passages)], ["evaluate", "--questions", str(passages)]):
        assert main([*words, "--ray", "auto"]) == ClusterError.exit_code
        assert capsys.readouterr().err == "error: Ray is not installed; run: pip install -r requirements-scale.txt\n"


def test_a_closed_port() -> None:
    address = f"127.0.0.1:{free_port()}"
    assert refusal(address).startswith(f"no Ray cluster answers at {address} (Connection refused)")


def test_a_port_that_never_answers(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    assert connect.ANSWER_SECONDS <= 15
    monkeypatch.setattr(connect, "ANSWER_SECONDS", 0.3)
    began = time.monotonic()
    assert "(no answer within 0 s)" in refusal(f"127.0.0.1:{listen(None)}")
    assert time.monotonic() - began < 15


def test_a_port_where_something_else_answers(listen: Listen) -> None:
    for reply in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"hello"):
        assert "(something else than Ray answers)" in refusal(f"127.0.0.1:{listen(reply)}")


def test_auto_follows_the_address_of_the_environment(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    port = listen(b"SSH-2.0\r\n")
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
    assert f":{port} (something else than Ray answers)" in refusal("auto")


@pytest.mark.parametrize("word", ["head", "10.0.0.1", "10.0.0.1:ray", ":6379", "10.0.0.1:99999", "ray://10.0.0.1:10001"])
def test_words_that_are_no_address(word: str) -> None:
    advice = "give HOST:PORT of the head" if "//" in word else "write auto, local, or HOST:PORT, such as 10.0.0.1:6379"
    assert advice in refusal(word)


@pytest.mark.parametrize("word", ["auto", "127.0.0.1:6399"])
def test_ray_itself_looks_for_the_cluster_of_auto(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    """There it uses the token of this machine.  With an address it does not: the error names the setting."""
    ray = pytest.importorskip("ray")
    addresses: list[str] = []

    def init(address: str, **_: Any) -> None:
        addresses.append(address)
        raise ConnectionError("no connection")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(connect, "_silence", lambda *_: "")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6399")
    assert "RAY_AUTH_MODE=token" in refusal(word)
    assert addresses == [word]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("evaluate --questions q.json --ray auto --batch 4", "--batch and --ray cannot be combined"),
        ("train answerer --ray local", "--ray spreads the pseudo answers of post-pretraining"),
    ],
)
def test_options_that_a_cluster_excludes(home: Path, capsys: pytest.CaptureFixture[str], command: str, message: str) -> None:
    assert main(command.split()) == 2
    assert message in capsys.readouterr().err


def test_an_answer_command_names_the_project_first(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong project is said at once, not after a cluster was looked for."""
    assert storage("answer --project none --system fid --ray 127.0.0.1:1".split()) != 0
    assert "Ray" not in capsys.readouterr().err


def node(cpu: float, gpu: float = 0.0, alive: bool = True) -> dict[str, Any]:
    return {"Alive": alive, "Resources": {"CPU": cpu, "GPU": gpu} if cpu else {}}


def test_workers_fill_each_machine_on_its_own() -> None:
    assert worker_count([node(8), node(3), node(4, alive=False), node(0)], 2, 0) == 5
    assert worker_count([node(8, 2), node(3), node(1, 4)], 2, 1) == 2


def test_machines_without_room_are_named() -> None:
    with pytest.raises(ClusterError, match="no machine of the Ray cluster has a CPU for workers"):
        worker_count([node(0), node(8, alive=False)], 1, 0)
    with pytest.raises(ClusterError, match=r"a worker takes 4 CPUs \(AMBISCOPE_THREADS\).* more than 2"):
        worker_count([node(2), node(2)], 4, 0)
    with pytest.raises(ClusterError, match="AMBISCOPE_DEVICE=cpu"):
        worker_count([node(1, 1), node(4)], 2, 1)


def test_differences_are_named_and_long_values_are_not_shown() -> None:
    here = {"torch": "2.13.0", "its options": "x" * 50, "same": "1", "lost": "a"}
    there = {"torch": "2.12.0", "its options": "y" * 50, "same": "1", "more": "b"}
    assert differences(here, there) == [
        "torch: 2.13.0 here, 2.12.0 there",
        "its options: another there than here",
        "lost: a here, none there",
        "more: none here, b there",
    ]
    assert differences(versions(), dict(versions())) == []


def test_a_system_is_known_by_its_weights_corpus_and_options() -> None:
    facts = facts_of(SystemInfo("fid", {"top_k": 3}, "mine", "c0", "default", "w0"))
    assert facts == {"the system": "fid", "its options": '{"top_k": 3}', "the corpus": "mine c0", "its weights": "default w0"}
    assert {"the code in core/", "torch", "transformers"} <= set(versions())
