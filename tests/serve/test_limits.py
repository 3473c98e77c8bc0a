"""Too many questions, too slow, too large, the wrong key, a client that leaves, and a stop in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
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
from core.serve.guard import Guard
from core.serve.protocol import STREAM_TYPE, messages
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


def hold(service: Running, background: ThreadPoolExecutor) -> Future[httpx.Response]:
    """A question that the service works on until its engine lets go."""
    response = background.submit(service.ask, f"{HOLD} 1")
    until(lambda: service.engine.held)
    return response


@contextmanager
def connection(service: Running, body: bytes, *headers: str) -> Iterator[socket.socket]:
    """A connection over which a question was sent that announces these headers."""
    lines = ["POST /v1/ask HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *headers]
    with socket.create_connection(service.server.servers[0].sockets[0].getsockname()) as sock:
        sock.settimeout(PATIENCE)
        sock.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        yield sock


def test_a_full_queue_refuses_and_says_when_to_come_again(settings: Settings, background: ThreadPoolExecutor) -> None:
    with running(replace(settings, serve_workers=1, serve_queue=1)) as service:
        first = hold(service, background)
        second = background.submit(service.ask, f"{HOLD} 2")
        until(lambda: service.service.questions.waiting == 1)
        assert service.http.get("/health").json()["waiting"] == 1
        third = service.ask()
        assert third.status_code == 429
        assert int(third.headers["retry-after"]) >= 1
        assert "the queue of 1 is full" in third.json()["error"]["message"]
        service.engine.release.set()
        assert [first.result().status_code, second.result().status_code, service.ask().status_code] == [200, 200, 200]
        assert 'ambiscope_refused_total{status="429"} 1.0' in service.http.get("/metrics").text


def test_who_waits_is_told_the_position(settings: Settings, background: ThreadPoolExecutor) -> None:
    """In the stream, and by an engine that asks the service; a question that did not wait is told nothing."""
    events: dict[int, list[dict[str, Any]]] = {n: [] for n in range(3)}

    def ask(service: Running, n: int) -> None:
        body = {"question": f"{HOLD} {n}"}
        with service.http.stream("POST", "/v1/ask", json=body, headers={"accept": STREAM_TYPE}) as response:
            for name, data in messages(response.iter_lines()):
                events[n].append({"name": name, **json.loads(data)})

    def positions(n: int) -> list[int]:
        return [e["position"] for e in events[n] if e["name"] == "QuestionQueued"]

    with running(replace(settings, serve_workers=1)) as service:
        asked = []
        for n in range(3):
            asked.append(background.submit(ask, service, n))
            until(lambda n=n: service.engine.held and service.service.questions.waiting == n)  # type: ignore[misc]
        until(lambda: positions(1) == [1] and positions(2) == [2])
        service.engine.release.set()
        for one in asked:
            one.result()
    assert [positions(0), positions(1)] == [[], [1, 0]]
    assert (positions(2)[0], positions(2)[-1]) == (2, 0)
    assert {rows[-1]["name"] for rows in events.values()} == {"Finished"}


def test_the_deadline_counts_from_the_arrival(settings: Settings, background: ThreadPoolExecutor) -> None:
    with running(replace(settings, serve_workers=1)) as service:
        first = hold(service, background)
        late = service.ask(f"{HOLD} 2", timeout=0.3)
        assert late.status_code == 504
        assert "waiting in the queue" in late.json()["error"]["message"]
        assert service.engine.held == [f"{HOLD} 1"]  # it never began
        service.engine.release.set()
        assert first.result().status_code == 200


def test_work_beyond_the_deadline_is_cancelled(service: Running) -> None:
    late = service.ask(question := f"{HOLD} beyond", timeout=1)
    assert late.status_code == 504
    assert "still being worked on" in late.json()["error"]["message"]
    assert late.headers["retry-after"]
    until(lambda: question in service.engine.cancelled and not service.service.questions.running)
    assert service.ask().status_code == 200


def test_the_deadline_ends_a_stream_with_an_error(settings: Settings) -> None:
    with running(replace(settings, serve_deadline=1)) as service:
        body = {"question": f"{HOLD} 1"}
        with service.http.stream("POST", "/v1/ask", json=body, headers={"accept": STREAM_TYPE}) as response:
            text = "".join(response.iter_text())
    assert ": waiting" in text
    assert '"status": 504' in text
    assert text.rstrip().rpartition("event: ")[2].startswith("error")


@pytest.mark.parametrize("accept", ["application/json", STREAM_TYPE])
def test_a_client_that_leaves_cancels_its_work(service: Running, accept: str) -> None:
    question = f"{HOLD} {accept}"
    body = json.dumps({"question": question}).encode()
    with connection(service, body, f"Accept: {accept}", f"Content-Length: {len(body)}"):
        until(lambda: question in service.engine.held)
    until(lambda: question in service.engine.cancelled and not service.service.questions.running)
    assert 'outcome="left"' in service.http.get("/metrics").text


def test_a_client_that_leaves_while_it_waits_is_never_worked_for(settings: Settings, background: ThreadPoolExecutor) -> None:
    with running(replace(settings, serve_workers=1)) as service:
        first = hold(service, background)
        body = json.dumps({"question": f"{HOLD} 2"}).encode()
        with connection(service, body, f"Content-Length: {len(body)}"):
            until(lambda: service.service.questions.waiting == 1)
        until(lambda: service.service.questions.waiting == 0)
        service.engine.release.set()
        assert first.result().status_code == 200
        assert service.engine.held == [f"{HOLD} 1"]


@pytest.mark.parametrize(
    ("header", "reads"),
    [((b"transfer-encoding", b"chunked"), 17), ((b"content-length", b"100000000"), 0)],
    ids=["chunks", "size"],
)
def test_100_mb_of_question_are_not_read(settings: Settings, header: tuple[bytes, bytes], reads: int) -> None:
    """Refused as soon as the size is known: after its header, or after the first kilobytes too many."""
    count, sent = 0, list[Any]()

    async def receive() -> Any:
        nonlocal count
        count += 1
        return {"type": "http.request", "body": bytes(65536), "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    request = {"type": "http", "path": "/v1/ask", "headers": [(b"host", b"localhost"), header]}
    asyncio.run(Guard(pytest.fail, settings, lambda status: None)(request, receive, send))
    assert (sent[0]["status"], b"more than 1024 kB" in sent[1]["body"], count) == (413, True, reads)


@pytest.fixture(scope="module")
def locked(settings: Settings) -> Iterator[Running]:
    with running(replace(settings, serve_key="right-key")) as service:
        service.http.headers.pop("authorization")
        yield service


@pytest.mark.parametrize("key", [None, "Bearer wrong", "Bearer", "Basic right", "Bearer right-ke", "right-key"])
def test_a_wrong_key(locked: Running, key: str | None) -> None:
    headers = {} if key is None else {"authorization": key}
    for path in ("/v1/systems", "/metrics", "/openapi.json", "/v1/nothing"):
        response = locked.http.get(path, headers=headers)
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
        assert "right" not in response.text
    assert locked.http.get("/health").status_code == 200


def test_the_right_key(locked: Running) -> None:
    assert locked.http.get("/v1/systems", headers={"authorization": "bearer right-key"}).status_code == 200


def test_keys_are_compared_in_constant_time(locked: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, Any]] = []
    monkeypatch.setattr("core.serve.guard.hmac.compare_digest", lambda a, b: seen.append((a, b)) or True)
    assert locked.http.get("/v1/systems", headers={"authorization": "Bearer other"}).status_code == 200
    assert seen == [(b"other", b"right-key")]


def test_without_a_key_only_local_names_are_answered(service: Running) -> None:
    """A page of another host that points its name at this machine (DNS rebinding) gets nothing."""
    hosts = ("evil.example:8700", "localhost:8700", "127.0.0.1", "[::1]:8700")
    statuses = [service.http.get("/health", headers={"host": host}).status_code for host in hosts]
    assert statuses == [403, 200, 200, 200]


def test_cors_is_off_unless_it_is_set(service: Running, settings: Settings) -> None:
    headers = {"origin": "https://page.example", "access-control-request-method": "POST"}
    allowed = "access-control-allow-origin"
    assert allowed not in service.http.options("/v1/ask", headers=headers).headers
    with running(replace(settings, serve_origins="https://page.example, https://b.example", serve_key="k")) as open_one:
        del open_one.http.headers["authorization"]
        assert open_one.http.options("/v1/ask", headers=headers).headers[allowed] == "https://page.example"
        assert open_one.http.get("/v1/systems", headers=headers).headers[allowed]
        assert allowed not in open_one.http.get("/health", headers={"origin": "https://evil.example"}).headers


@pytest.mark.slow
def test_the_command_serves_until_it_is_told_to_stop(settings: Settings) -> None:
    port = free_port()
    values = {"HOME": settings.home, "SYSTEM": "scripted", "CORPUS": "small", "ENCODER": "hashing", "SERVE_KEY": "a-key"}
    environment = os.environ | {f"AMBISCOPE_{name}": str(value) for name, value in values.items()}
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
    with running(settings) as service:
        response = hold(service, background)
        service.server.should_exit = True
        until(lambda: not service.server.servers or not service.server.servers[0].is_serving())
        with pytest.raises(httpx.TransportError):
            httpx.get(service.address + "/health", trust_env=False, timeout=PATIENCE)
        service.engine.release.set()
        assert response.result().status_code == 200


def test_a_stop_gives_up_what_takes_too_long(settings: Settings, background: ThreadPoolExecutor) -> None:
    with running(replace(settings, serve_grace=1)) as service:
        response = hold(service, background)
        service.server.should_exit = True
        assert response.result().status_code == 503
        assert "stopped before the answer was ready" in response.result().json()["error"]["message"]
        until(lambda: service.engine.cancelled)


def test_a_port_in_use_is_one_line(settings: Settings) -> None:
    sock = listen("127.0.0.1", 0)
    port = sock.getsockname()[1]
    with sock, pytest.raises(InputError, match=rf"cannot listen on 127.0.0.1:{port} .*; stop what listens there") as error:
        run(settings, "127.0.0.1", port)
    assert error.value.exit_code == 2
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("host", "key", "message"),
    [
        *((host, "", "without a key: set AMBISCOPE_SERVE_KEY") for host in ("0.0.0.0", "192.0.2.1", "::")),
        ("127.0.0.1", "two words", "AMBISCOPE_SERVE_KEY contains a space"),
    ],
)
def test_a_service_without_a_fitting_key_does_not_start(settings: Settings, host: str, key: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(replace(settings, serve_key=key), host, 8700)


def test_the_key_stays_out_of_what_is_shown(tmp_path: Path) -> None:
    assert "secret" not in repr(Settings(home=tmp_path, serve_key="secret", engine_key="secret"))
