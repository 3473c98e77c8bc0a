"""An engine that asks a service: the same as one of this process; and one clear message for each way in which a service can fail."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from answering_service import HOLD, HeldEngine, Running, running, small_settings
from page_helpers import ANSWERS, QUESTION
from serving import until

from core import cli, errors
from core.engine import Engine
from core.errors import AmbiscopeError, InputError, NotFoundError, ServiceError
from core.evaluation.plan import EvaluationPlan, run_plan
from core.serve import connection
from core.serve.choice import make_engine
from core.serve.protocol import API, STREAM, error_from_json, error_to_json
from core.serve.remote import RemoteCorpus, RemoteEngine
from core.settings import ROOT, Settings
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.types import Finished, Passage, Question


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(small_settings(tmp_path_factory.mktemp("remote"), serve_key="a-key")) as made:
        yield made


@pytest.fixture
def front(service: Running, tmp_path: Path) -> Settings:
    """Settings of a machine without any corpus."""
    return Settings(
        home=tmp_path / "front",
        system="scripted",
        corpus="small",
        engine_url=service.address,
        engine_key="a-key",
        engine_timeout=60,
    )


def test_the_same_events_as_an_engine_of_this_process(service: Running, front: Settings) -> None:
    here = HeldEngine(service.service.settings).system("scripted", "small", Options(top_k=3))
    there = make_engine(front).system("scripted", "small", Options(top_k=3))
    assert isinstance(make_engine(front), RemoteEngine)
    assert there.info == here.info
    for question in (Question(QUESTION), Question(QUESTION, pinned=("X",), banned=(ANSWERS[1],))):
        own, received = answer(here, question), answer(there, question)
        assert received.answers == own.answers
        assert received.clarifications == own.clarifications
        assert received.passages == own.passages
        assert [type(e) for e in received.events] == [type(e) for e in own.events]
    assert not front.corpora_dir.exists()  # nothing was built here


def test_own_passages_travel(front: Settings) -> None:
    own = Question("Who played Anita?", passages=(Passage("mine", "Musical", "Chita Rivera played Anita."),))
    system = make_engine(front).system("scripted", own_passages=True)
    assert answer(system, own).answers[0].text == "Chita Rivera"


def test_corpora_passages_and_vectors(service: Running, front: Settings) -> None:
    here, there = Engine(service.service.settings), RemoteEngine(front)
    assert there.library.names() == here.library.names()
    assert there.library.list() == here.library.list()
    mine, theirs = here.corpus("small"), there.corpus("small")
    assert (theirs.name, len(theirs)) == (mine.name, len(mine))
    assert theirs.passages(1, 2) == mine.passages(1, 2)
    assert theirs.store.get("p4") == mine.store.get("p4")
    assert theirs.search("dark rock", 3, "bm25") == mine.search("dark rock", 3, "bm25")
    assert there.embed(["dark rock"]).tolist() == here.embed(["dark rock"]).tolist()
    assert list(there.statuses()) == list(here.statuses())


def test_errors_keep_their_class_and_words(service: Running, front: Settings) -> None:
    here, there = Engine(service.service.settings), RemoteEngine(front)
    calls: list[Callable[[Engine | RemoteEngine], object]] = [
        lambda e: e.system("no-such"),
        lambda e: e.system("scripted", "small", Options(top_k=9)),
        lambda e: e.system("scripted", "small", Options(extra={"colour": 1})),
        lambda e: e.corpus("small").store.get("p9"),
        lambda e: e.corpus("small").search("rock", 3, "magic"),
        lambda e: list(e.system("scripted", "small").run(Question(""))),
    ]
    for call in calls:
        said = []
        for engine in (here, there):
            with pytest.raises(InputError) as raised:
                call(engine)
            said.append((type(raised.value), str(raised.value)))
        assert said[0] == said[1]
    with pytest.raises(NotFoundError, match="no corpus is named 'gone'"):
        there.corpus("gone")


@pytest.mark.parametrize("name", [n for n, k in vars(errors).items() if isinstance(k, type) and issubclass(k, AmbiscopeError)])
def test_every_error_travels(name: str) -> None:
    made = getattr(errors, name)("what is wrong")
    back = error_from_json(error_to_json(made))
    assert str(back) == "what is wrong"
    assert type(back) is (ServiceError if name == "FormatError" else type(made))


@pytest.mark.parametrize("body", [{}, [], {"error": "x"}, {"error": {"kind": "Path"}}, {"error": {"message": 3}}])
def test_what_tells_of_no_error(body: object) -> None:
    assert error_from_json(body) is None
    assert type(error_from_json({"error": {"kind": "Path", "message": "x"}})) is ServiceError


def test_whoever_leaves_with_the_last_event_was_answered(service: Running, front: Settings) -> None:
    def answered() -> float:
        found = re.search(r'outcome="answered",system="scripted"\} (\S+)', service.http.get("/metrics").text)
        return float(found[1]) if found else 0.0

    before, system = answered(), RemoteEngine(front).system("scripted", "small")
    for _ in range(5):
        assert isinstance(list(system.run(Question(QUESTION)))[-1], Finished)
    until(lambda: answered() == before + 5)


def test_a_run_that_is_stopped_ends_as_here_and_ends_there_too(service: Running, front: Settings) -> None:
    stop = threading.Event()
    system = RemoteEngine(front).system("scripted", "small", cancelled=stop.is_set)
    service.engine.release.clear()
    threading.Timer(0.3, stop.set).start()
    question = f"{HOLD} and stop"
    last = list(system.run(Question(question)))[-1]
    assert isinstance(last, Finished)
    assert last.why == "stopped by a person"
    until(lambda: question in service.engine.cancelled)


def test_a_run_that_nobody_reads_any_more_ends_there_too(service: Running, front: Settings) -> None:
    service.engine.release.clear()
    question = f"{HOLD} and leave"
    events = RemoteEngine(front).system("scripted", "small").run(Question(question))
    next(events)
    events.close()  # type: ignore[attr-defined]
    until(lambda: question in service.engine.cancelled)


def test_the_command_line_asks_the_service(
    service: Running, front: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("home", "system", "corpus", "engine_url", "engine_key"):
        monkeypatch.setenv(f"AMBISCOPE_{name.upper()}", str(getattr(front, name)))
    assert cli.main(["ask", QUESTION, "--json"]) == 0
    assert [a["text"] for a in json.loads(capsys.readouterr().out)["answers"]] == list(ANSWERS)
    assert cli.main(["systems"]) == 0
    assert "ambiscope" in capsys.readouterr().out
    monkeypatch.setenv("AMBISCOPE_ENGINE_KEY", "another")
    assert cli.main(["ask", QUESTION]) == 9
    said = capsys.readouterr().err
    assert "refuses the key" in said
    assert said.count("\n") == 1


def test_an_evaluation_asks_the_service(front: Settings, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps({"id": "1", "question": QUESTION, "answers": [[a] for a in ANSWERS]}) + "\n")
    report = run_plan(EvaluationPlan(str(path), judge="none"), RemoteEngine(front))
    assert report.to_json()["scores"]["F1 answer"]["all"] == 1.0


# ------------------------------------------------------------ a service that fails

JSON = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nAmbiscope-Api: {API}\r\n"
EVENTS = f"HTTP/1.1 200 OK\r\nContent-Type: {STREAM}\r\nAmbiscope-Api: {API}\r\nConnection: close\r\n\r\n"


def whole(head: str, body: str) -> bytes:
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


@contextmanager
def scripted(*parts: bytes | float) -> Iterator[str]:
    """A server that answers every request with these bytes, and waits for so many seconds between them."""
    done = threading.Event()

    def serve(sock: socket.socket) -> None:
        with sock, ThreadPoolExecutor(4) as clients:
            while not done.is_set():
                try:
                    clients.submit(answer_one, sock.accept()[0])
                except OSError:
                    return

    def answer_one(client: socket.socket) -> None:
        with client:
            try:
                client.recv(65536)
                for part in parts:
                    if isinstance(part, bytes):
                        client.sendall(part)
                    elif done.wait(part):
                        return
                client.shutdown(socket.SHUT_WR)
                client.settimeout(0.2)
                while client.recv(65536):  # closing before all of a request was read would reset the connection
                    pass
            except OSError:
                return

    sock = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, args=(sock,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        done.set()
        with suppress(OSError):  # the thread may have seen `done`, and closed it
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()


BOMB = gzip.compress(b" " * 10_000_000)
HTML = "<html><body>Welcome to the hotel network</body></html>"
FAULTS: dict[str, tuple[tuple[bytes | float, ...], str]] = {
    "html": (
        (whole("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", HTML),),
        r"answers with text/html \(HTTP 200\) and is no service of Ambiscope; correct AMBISCOPE_ENGINE_URL",
    ),
    "a redirect": (
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",),
        r"\(HTTP 302\) and is no service of Ambiscope",
    ),
    "another version": (
        (whole(JSON.replace(f"Api: {API}", f"Api: {API + 1}"), "{}"),),
        rf"speaks form {API + 1}, and this Ambiscope \(.*\) form {API}: install the same version",
    ),
    "another version, HTML in the header": (
        (whole(JSON.replace(f"Api: {API}", "Api: <b>" + "x" * 500), "{}"),),
        r"speaks form <b>x{17}, and",
    ),
    "slow": ((20.0,), r"did not answer within 1 seconds; see whether it runs"),
    "a byte at a time": (
        (f"{JSON}Content-Length: 1000\r\n\r\n".encode(), *(x for _ in range(100) for x in (b"1", 0.2))),
        r"a response that does not end",
    ),
    "cut off": ((f"{JSON}Content-Length: 100\r\n\r\n".encode(), b"{"), r"the connection to the service at .* broke"),
    "no JSON": ((whole(JSON, "{"),), r"sent something that is no JSON"),
    "deep": ((whole(JSON, '{"info":' + "[" * 100_000),), r"no JSON \(nested deeper than 64\)"),
    "many values": ((whole(JSON, "[" + "0," * 600_000 + "0]"),), r"more than 500000 values"),
    "a number beyond 64 bits": ((whole(JSON, '{"info": ' + "9" * 5000 + "}"),), r"64 bits"),
    "bytes of another encoding": ((f"{JSON}Content-Length: 2\r\n\r\n".encode() + b"\xff\xfe",), r"not UTF-8"),
    "packed": (
        (f"{JSON}Content-Encoding: gzip\r\nContent-Length: {len(BOMB)}\r\n\r\n".encode() + BOMB,),
        r"a body packed as gzip",
    ),
    "an error of many lines": (
        (whole(JSON.replace("200 OK", "500 X"), json.dumps({"error": {"kind": "X", "message": "a\nb\x1b[2J\u202ec"}})),),
        r"^a b \[2J c$",
    ),
    "nothing": ((b"",), r"the connection to the service at .* broke"),
    "an error of its own": (
        (whole(JSON.replace("200 OK", "429 Busy"), json.dumps({"error": {"kind": "RefusedError", "message": "ask later"}})),),
        r"^ask later$",
    ),
    "an error without words": ((whole(JSON.replace("200 OK", "500 X"), "{}"),), r"sent HTTP 500"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failing_service_is_one_clear_message(fault: str, tmp_path: Path) -> None:
    parts, said = FAULTS[fault]
    with scripted(*parts) as address:
        engine = RemoteEngine(Settings(home=tmp_path, engine_url=address, engine_key="secret", engine_timeout=1))
        started = time.monotonic()
        with pytest.raises(ServiceError, match=said) as raised:
            engine.system("scripted")
        assert time.monotonic() - started < 8
        assert "secret" not in str(raised.value)
        assert "\n" not in str(raised.value)


def stamped(**body: object) -> dict[str, object]:
    return {"api": API, "version": "1", **body}


HOLLOW: tuple[object, ...] = (
    {},
    [],
    None,
    3,
    "x",
    {"passages": [{}]},
    stamped(),
    *({**stamped(), k: 3} for k in ("info", "names")),
)
CALLS: dict[str, tuple[Callable[[RemoteEngine], object], tuple[object, ...]]] = {
    "systems": (
        RemoteEngine.statuses,
        (stamped(systems=3), stamped(systems=[[]]), stamped(systems=[{"name": "x"}]), stamped(systems=[None])),
    ),
    "system": (
        lambda e: e.system("scripted"),
        (stamped(info=[]), stamped(info={"name": 3}), stamped(info={"name": "x", "settings": []})),
    ),
    "corpora": (
        lambda e: (e.library.names(), e.library.list()),
        (stamped(names=3, corpora=[]), stamped(names=[{}], corpora=[]), stamped(names=[], corpora=[{"name": "x"}])),
    ),
    "length": (
        lambda e: len(RemoteCorpus("small", e._service)),
        (stamped(total=-1, digest="", passages=[]), stamped(total="3", digest="", passages=[])),
    ),
    "passages": (
        lambda e: RemoteCorpus("small", e._service).passages(),
        (
            stamped(total=1, digest="", passages={}),
            stamped(total=1, digest="", passages=[{"id": "x", "title": None, "text": ""}]),
        ),
    ),
    "passage": (lambda e: RemoteCorpus("small", e._service).get("p"), (stamped(passage={"id": 1, "title": "", "text": ""}),)),
    "search": (
        lambda e: RemoteCorpus("small", e._service).search("x", 2),
        (stamped(passages=[{"passage": {"event": []}, "rank": 1, "score": 1}]),),
    ),
    "embed": (
        lambda e: e.embed(["a", "b"]),
        (stamped(vectors=[]), stamped(vectors=[[1], [1, 2]]), stamped(vectors=["ab", "cd"]), stamped(vectors=[[True], [1]])),
    ),
    "warm": (RemoteEngine.warm, (stamped(status=1, problem="", waiting=0, running=0),)),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_reply_that_does_not_fit_is_one_clear_message(call: str, tmp_path: Path) -> None:
    ask, replies = CALLS[call]
    for body in (*HOLLOW, *replies):
        with scripted(whole(JSON + "Connection: close\r\n", json.dumps(body))) as address:
            with pytest.raises(ServiceError, match="install the same version") as raised:
                ask(RemoteEngine(Settings(home=tmp_path, engine_url=address, engine_timeout=5)))
            assert len(str(raised.value)) < 500


def test_texts_beyond_what_one_request_may_hold(service: Running, front: Settings) -> None:
    texts = ["dark rock", "lava"] * 600
    assert RemoteEngine(front).embed(texts).shape == HeldEngine(service.service.settings).embed(texts).shape


def test_cookies_are_refused(tmp_path: Path) -> None:
    reply = JSON + "Set-Cookie: a=b\r\nConnection: close\r\n"
    with scripted(whole(reply, json.dumps(stamped(status="ok", problem="", waiting=0, running=0)))) as address:
        engine = RemoteEngine(Settings(home=tmp_path, engine_url=address, engine_timeout=5))
        engine.warm()
        assert not list(engine._service._http.cookies.jar)


def test_a_service_that_is_down(tmp_path: Path) -> None:
    with scripted() as address:
        pass
    engine = RemoteEngine(Settings(home=tmp_path, engine_url=address))
    with pytest.raises(ServiceError, match=r"cannot be reached .* start it with `python -m core serve`"):
        engine.library.names()


STREAMS: dict[str, tuple[tuple[bytes | float, ...], str]] = {
    "ends within an answer": (
        (b": waiting\n\n", b'event: QuestionRelaxed\ndata: {"event": "QuestionRelaxed", "question": "x"}\n\n'),
        r"ended within an answer|broke",
    ),
    "falls silent": ((b": waiting\n\n", 20.0), r"did not answer within 1 seconds"),
    "an event of another version": (
        (b'event: Dreamt\ndata: {"event": "Dreamt"}\n\n',),
        r"sent an event that cannot be read \(unknown event 'Dreamt'\)",
    ),
    "an event that lacks a field": (
        (b'event: Finished\ndata: {"event": "Finished"}\n\n',),
        r"cannot be read \(.*lacks seconds",
    ),
    "no JSON": ((b"event: Finished\ndata: {\n\n",), r"no JSON"),
    "an error": ((b'event: error\ndata: {"error": {"kind": "RefusedError", "message": "too late"}}\n\n',), r"^too late$"),
    "an event of a hostile name": ((b'event: Finished\ndata: {"event": []}\n\n',), r"unknown event list"),
    "an event that is no object": ((b"event: system\ndata: 3\n\n",), r"expected an object"),
    "a map of what was never proposed": (
        (
            b'event: x\ndata: {"event": "InterpretationsClustered", "placed": '
            b'[{"index": 7, "x": 0, "y": 0, "cluster": 0, "medoid": true}]}\n\n',
        ),
        r"interpretation 7 of 0",
    ),
    "an error without words": ((b"event: error\ndata: 3\n\n",), r"an error without a message"),
}


@pytest.mark.parametrize("fault", STREAMS)
def test_a_failing_stream_is_one_clear_message(fault: str, service: Running, front: Settings) -> None:
    parts, said = STREAMS[fault]
    system = RemoteEngine(front).system("scripted", "small")
    with scripted(EVENTS.encode(), *parts) as address:
        broken = RemoteEngine(replace(front, engine_url=address, engine_timeout=1))
        system._service = broken._service
        started = time.monotonic()
        with pytest.raises(ServiceError, match=said):
            list(system.run(Question(QUESTION)))
        assert time.monotonic() - started < 8


ENDLESS: dict[str, bytes] = {
    "a line": b"x" * 65536,
    "events": b'data: {"event": "QuestionRelaxed", "question": "x"}\n\n' * 1000,
}


@pytest.mark.parametrize("what", ENDLESS)
def test_an_answer_without_end_is_read_to_a_bound(what: str, front: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_BYTES", 2**20)
    system = RemoteEngine(front).system("scripted", "small")
    with scripted(EVENTS.encode(), *[ENDLESS[what]] * 200) as address:
        engine = RemoteEngine(replace(front, engine_url=address, engine_timeout=5))
        system._service = engine._service
        with pytest.raises(ServiceError, match="a response that does not end"):
            list(system.run(Question(QUESTION)))
    with scripted(f"{JSON}\r\n".encode(), *[b" " * 65536] * 200) as address:
        engine = RemoteEngine(replace(front, engine_url=address, engine_timeout=5))
        with pytest.raises(ServiceError, match="a response that does not end"):
            engine.library.names()


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("localhost:8700", "", "AMBISCOPE_ENGINE_URL must begin with http:// or https://"),
        ("file:///etc/passwd", "", "must begin with http"),
        ("http://me:word@127.0.0.1:8700", "", "remove them and set AMBISCOPE_ENGINE_KEY"),
        ("http://engine.example.org", "a-key", "the key would be sent unencrypted to engine.example.org; use https"),
        ("http://127.0.0.1:8700", "two\nlines", "AMBISCOPE_ENGINE_KEY contains a space, a line break"),
    ],
)
def test_an_address_that_is_not_asked(url: str, key: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as raised:
        RemoteEngine(Settings(home=tmp_path, engine_url=url, engine_key=key))
    assert "me:word" not in str(raised.value)


def test_what_needs_the_models_machine_says_so(front: Settings) -> None:
    engine = RemoteEngine(front)
    for change in (lambda: engine.library.delete("small"), lambda: engine.library.create("new", [])):
        with pytest.raises(InputError, match=r"asks the service at http://127.0.0.1:\d+. Build and delete corpora"):
            change()


ASKED = """
import sys
from core import cli
from core.serve.choice import make_engine
from core.settings import ROOT, Settings
from core.systems.base.system import answer
from core.types import Question
cli.parser()
assert not {"fastapi", "httpx"} & set(sys.modules), "the command line loads what only a service needs"
engine = make_engine(Settings.from_env())
assert answer(engine.system(), Question("Who played Maria in West Side Story?")).answers
print(sorted({"torch", "transformers", "faiss", "sklearn", "fastapi", "uvicorn"} & set(sys.modules)))
"""


@pytest.mark.slow
def test_asking_a_service_imports_no_model_and_no_server(service: Running, front: Settings) -> None:
    values = {
        "HOME": front.home,
        "SYSTEM": "scripted",
        "CORPUS": "small",
        "ENGINE_URL": front.engine_url,
        "ENGINE_KEY": "a-key",
    }
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AMBISCOPE_")}
    environment |= {f"AMBISCOPE_{k}": str(v) for k, v in values.items()}
    command = [sys.executable, "-c", ASKED]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
