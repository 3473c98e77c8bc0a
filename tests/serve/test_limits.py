"""Too many questions, too slow, too large, the wrong key, a client that leaves, and a stop in the middle."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from answering_service import HOLD, Running, running, small_settings
from page_helpers import QUESTION
from serving import PATIENCE, free_port, until

from core.errors import InputError
from core.serve.choice import make_engine
from core.serve.protocol import STREAM, messages
from core.serve.server import listen, run
from core.settings import ROOT, Settings
from core.systems.base.system import answer
from core.types import Question


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return small_settings(tmp_path_factory.mktemp("limits"))


@pytest.fixture
def background() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def test_a_full_queue_refuses_and_says_when_to_come_again(settings: Settings, background: ThreadPoolExecutor) -> None:
    with running(replace(settings, serve_workers=1, serve_queue=1)) as made:
        first = background.submit(made.ask, f"{HOLD} 1")
        until(lambda: made.engine.held)
        second = background.submit(made.ask, f"{HOLD} 2")
        until(lambda: made.service.questions.waiting == 1)
        assert made.http.get("/health").json()["waiting"] == 1
        third = made.ask()
        assert third.status_code == 429
        assert int(third.headers["retry-after"]) >= 1
        assert "the queue of 1 is full" in third.json()["error"]["message"]
        made.engine.release.set()
        assert [first.result().status_code, second.result().status_code] == [200, 200]
        assert made.ask().status_code == 200
        assert 'ambiscope_refused_total{status="429"} 1.0' in made.http.get("/metrics").text


def test_who_waits_is_told_the_position(settings: Settings, background: ThreadPoolExecutor) -> None:
    """In the stream, and by an engine that asks the service; a question that did not wait is told nothing."""
    events: dict[int, list[dict[str, Any]]] = {n: [] for n in range(3)}

    def ask(made: Running, n: int) -> None:
        body = {"question": f"{HOLD} {n}"}
        with made.http.stream("POST", "/v1/ask", json=body, headers={"accept": STREAM}) as response:
            for name, data in messages(response.iter_lines()):
                events[n].append({"name": name, **json.loads(data)})

    def positions(n: int) -> list[int]:
        return [e["position"] for e in events[n] if e["name"] == "QuestionQueued"]

    with running(replace(settings, serve_workers=1)) as made:
        asked = []
        for n in range(3):
            asked.append(background.submit(ask, made, n))
            until(lambda n=n: made.engine.held and made.service.questions.waiting == n)  # type: ignore[misc]
        until(lambda: positions(1) == [1] and positions(2) == [2])
        made.engine.release.set()
        for one in asked:
            one.result()
    assert [positions(0), positions(1)] == [[], [1, 0]]
    assert positions(2)[0] == 2
    assert positions(2)[-1] == 0
    assert all(found[-1]["name"] == "Finished" for found in events.values())


def test_the_deadline_counts_from_the_arrival(settings: Settings, background: ThreadPoolExecutor) -> None:
    with running(replace(settings, serve_workers=1)) as made:
        worked = background.submit(made.ask, f"{HOLD} 1", timeout=1.5)
        until(lambda: made.engine.held)
        waited = made.ask(f"{HOLD} 2", timeout=0.3)
        assert waited.status_code == 504
        assert "waiting in the queue" in waited.json()["error"]["message"]
        assert worked.result().status_code == 504
        assert "still being worked on" in worked.result().json()["error"]["message"]
        assert worked.result().headers["retry-after"]
        until(lambda: not made.service.questions.running)  # the work was cancelled, too
        assert made.engine.held == [f"{HOLD} 1"]  # the second one never began
        made.engine.release.set()
        assert made.ask().status_code == 200


def test_the_deadline_ends_a_stream_with_an_error(settings: Settings) -> None:
    with running(replace(settings, serve_deadline=1)) as made:
        body = {"question": f"{HOLD} 1"}
        with made.http.stream("POST", "/v1/ask", json=body, headers={"accept": STREAM}) as response:
            text = "".join(response.iter_text())
        assert ": waiting" in text
        assert '"status": 504' in text
        assert text.rstrip().rpartition("event: ")[2].startswith("error")


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_cancels_its_work(settings: Settings, stream: bool) -> None:
    with running(settings) as made:
        body = b'{"question": "%s 1"}' % HOLD.encode()
        accept = STREAM if stream else "application/json"
        request = f"POST /v1/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\nContent-Type: application/json\r\n"
        with socket.create_connection(made.server.servers[0].sockets[0].getsockname()) as sock:
            sock.sendall(f"{request}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            until(lambda: made.engine.held)
        until(lambda: made.engine.cancelled)
        until(lambda: not made.service.questions.running)
        assert 'outcome="left"' in made.http.get("/metrics").text


def test_a_client_that_leaves_while_it_waits_is_never_worked_for(settings: Settings, background: ThreadPoolExecutor) -> None:
    with running(replace(settings, serve_workers=1)) as made:
        first = background.submit(made.ask, f"{HOLD} 1")
        until(lambda: made.engine.held)
        with pytest.raises(httpx.ReadTimeout):
            made.http.post("/v1/ask", json={"question": f"{HOLD} 2"}, timeout=0.3)
        until(lambda: made.service.questions.waiting == 0)
        made.engine.release.set()
        assert first.result().status_code == 200
        assert made.engine.held == [f"{HOLD} 1"]


@pytest.mark.parametrize("chunked", [False, True])
def test_100_mb_of_question_are_not_read(settings: Settings, chunked: bool) -> None:
    """Refused as soon as the size is known: after its header, or after the first kilobytes too many."""
    with running(settings) as made:
        host = "POST /v1/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        sent = 0
        with socket.create_connection(made.server.servers[0].sockets[0].getsockname()) as sock:
            sock.settimeout(PATIENCE)
            sock.sendall(f"{host}{'Transfer-Encoding: chunked' if chunked else 'Content-Length: 100000000'}\r\n\r\n".encode())
            answer = b""
            sock.setblocking(False)
            for _ in range(2000):
                try:
                    answer = sock.recv(65536)
                    break
                except BlockingIOError:
                    pass
                part = b"a" * 65_000
                try:
                    sent += sock.send(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
                except BlockingIOError:
                    time.sleep(0.002)
                except OSError:
                    break
            sock.setblocking(True)
            with suppress(OSError):
                while part := sock.recv(65536):
                    answer += part
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"more than 1024 kB" in answer
        assert sent < 20_000_000
        assert made.ask().status_code == 200


def test_a_request_without_end_is_given_up(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.serve.guard.BODY_SECONDS", 0.3)
    with running(settings) as made, socket.create_connection(made.server.servers[0].sockets[0].getsockname()) as sock:
        sock.settimeout(PATIENCE)
        sock.sendall(b"POST /v1/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
        assert sock.recv(65536).startswith(b"HTTP/1.1 408")


# ------------------------------------------------------------ the key


@pytest.fixture(scope="module")
def locked(settings: Settings) -> Iterator[Running]:
    with running(replace(settings, serve_key="right-key")) as made:
        made.http.headers.pop("authorization")
        yield made


@pytest.mark.parametrize("given", [None, "Bearer wrong", "Bearer", "Basic right", "Bearer right-ke", "right-key"])
def test_a_wrong_key(locked: Running, given: str | None) -> None:
    headers = {"authorization": given.encode()} if given is not None else {}
    for path in ("/v1/systems", "/metrics", "/openapi.json", "/v1/nothing"):
        found = locked.http.get(path, headers=headers)
        assert found.status_code == 401
        assert found.headers["www-authenticate"] == "Bearer"
        assert "right" not in found.text
    assert locked.http.get("/health").status_code == 200


def test_the_right_key(locked: Running) -> None:
    assert locked.http.get("/v1/systems", headers={"authorization": "bearer right-key"}).status_code == 200


def test_keys_are_compared_in_constant_time(locked: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, Any]] = []
    monkeypatch.setattr("core.serve.guard.hmac.compare_digest", lambda a, b: seen.append((a, b)) or True)
    assert locked.http.get("/v1/systems", headers={"authorization": "Bearer other"}).status_code == 200
    assert seen == [(b"other", b"right-key")]


def test_without_a_key_only_local_names_are_answered(settings: Settings) -> None:
    """A page of another host that points its name at this machine (DNS rebinding) gets nothing."""
    with running(settings) as made:
        assert made.http.get("/health", headers={"host": "evil.example:8700"}).status_code == 403
        for name in ("localhost:8700", "127.0.0.1", "[::1]:8700"):
            assert made.http.get("/health", headers={"host": name}).status_code == 200


def test_cors_is_off_unless_it_is_set(settings: Settings) -> None:
    headers = {"origin": "https://page.example", "access-control-request-method": "POST"}
    with running(settings) as made:
        assert "access-control-allow-origin" not in made.http.options("/v1/ask", headers=headers).headers
    with running(replace(settings, serve_origins="https://page.example, https://b.example", serve_key="k")) as made:
        del made.http.headers["authorization"]
        found = made.http.options("/v1/ask", headers=headers)
        assert found.headers["access-control-allow-origin"] == "https://page.example"
        assert made.http.get("/v1/systems", headers=headers).headers["access-control-allow-origin"]
        other = made.http.get("/health", headers={"origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers


# ------------------------------------------------------------ start and stop


@pytest.mark.slow
def test_the_command_serves_until_it_is_told_to_stop(settings: Settings) -> None:
    port = free_port()
    values = {"HOME": settings.home, "SYSTEM": "scripted", "CORPUS": "small", "ENCODER": "hashing", "SERVE_KEY": "a-key"}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AMBISCOPE_")}
    environment |= {f"AMBISCOPE_{k}": str(v) for k, v in values.items()}
    command = [sys.executable, "-m", "core", "serve", "--port", str(port)]

    def status() -> str:
        assert process.poll() is None
        with suppress(httpx.ConnectError):
            return str(httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False, timeout=PATIENCE).json()["status"])
        return ""

    with subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: status() == "ok")
            asking = replace(settings, engine_url=f"http://127.0.0.1:{port}", engine_key="a-key", engine_timeout=60)
            assert answer(make_engine(asking).system(), Question(QUESTION)).answers
            process.terminate()
            assert process.wait(PATIENCE) == 0  # a stop that was asked for is a success
        finally:
            process.kill()


def test_a_stop_finishes_what_runs(settings: Settings, background: ThreadPoolExecutor) -> None:
    with running(settings) as made:
        asked = background.submit(made.ask, f"{HOLD} 1")
        until(lambda: made.engine.held)
        made.server.should_exit = True
        until(lambda: not made.server.servers or not made.server.servers[0].is_serving())
        with pytest.raises(httpx.TransportError):
            httpx.get(made.address + "/health", trust_env=False, timeout=PATIENCE)
        made.engine.release.set()
        assert asked.result().status_code == 200


def test_a_stop_gives_up_what_takes_too_long(settings: Settings, background: ThreadPoolExecutor) -> None:
    with running(replace(settings, serve_grace=1)) as made:
        asked = background.submit(made.ask, f"{HOLD} 1")
        until(lambda: made.engine.held)
        made.server.should_exit = True
        assert asked.result().status_code == 503
        assert "stopped before the answer was ready" in asked.result().json()["error"]["message"]
        until(lambda: made.engine.cancelled)


def test_a_port_in_use_is_one_line(settings: Settings) -> None:
    sock = listen("127.0.0.1", 0)
    port = sock.getsockname()[1]
    with sock, pytest.raises(InputError, match=rf"cannot listen on 127.0.0.1:{port} .*; stop what listens there") as raised:
        run(settings, "127.0.0.1", port)
    assert raised.value.exit_code == 2
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
def test_other_machines_need_a_key(settings: Settings, host: str) -> None:
    with pytest.raises(InputError, match="without a key: set AMBISCOPE_SERVE_KEY"):
        run(settings, host, 8700)


def test_a_key_that_no_header_holds(settings: Settings) -> None:
    with pytest.raises(InputError, match="AMBISCOPE_SERVE_KEY contains a space"):
        run(replace(settings, serve_key="two words"), "127.0.0.1", 8700)


def test_questions_asked_at_the_same_moment_are_all_answered(settings: Settings) -> None:
    with running(replace(settings, serve_workers=2, serve_queue=40)) as made, ThreadPoolExecutor(16) as clients:
        barrier = threading.Barrier(16)

        def ask(_: int) -> int:
            barrier.wait()
            return made.ask(QUESTION).status_code

        assert list(clients.map(ask, range(16))) == [200] * 16


def test_the_key_stays_out_of_what_is_shown(tmp_path: Path) -> None:
    assert "secret" not in repr(Settings(home=tmp_path, serve_key="secret", engine_key="secret"))
