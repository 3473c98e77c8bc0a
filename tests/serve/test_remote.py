"""An engine that asks a service: the same as one of this process; and one clear message for each way in which a service can fail."""

from __future__ import annotations

import gzip
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from socketserver import BaseRequestHandler

import pytest
from answering_service import HOLD, HeldEngine, Running
from loopback_endpoint import http_server
from page_helpers import ANSWERS, QUESTION
from serving import until

from core import cli, errors
from core.engine import Engine
from core.errors import AmbiscopeError, InputError, NotFoundError, ServiceError
from core.evaluation.plan import EvaluationPlan, run_plan
from core.serve import connection
from core.serve.choice import make_engine
from core.serve.protocol import API_VERSION, KEEP_ALIVE, STREAM_TYPE, error_from_json, error_to_json, message
from core.serve.remote import RemoteCorpus, RemoteEngine
from core.settings import ROOT, Settings
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.types import Finished, Passage, Question

KEY = "a-key"


@pytest.fixture
def front(service: Running, tmp_path: Path) -> Settings:
    """Settings of a machine without any corpus."""
    asking = {"engine_url": service.address, "engine_key": KEY, "engine_timeout": 60}
    return Settings(home=tmp_path / "front", system="scripted", corpus="small", **asking)


@pytest.fixture
def environment(front: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, of commands."""
    for name in ("home", "system", "corpus", "engine_url", "engine_key"):
        monkeypatch.setenv(f"AMBISCOPE_{name.upper()}", str(getattr(front, name)))


def test_the_same_events_as_an_engine_of_this_process(service: Running, front: Settings) -> None:
    here = HeldEngine(service.service.settings).system("scripted", "small", Options(top_k=3))
    there = make_engine(front).system("scripted", "small", Options(top_k=3))
    assert isinstance(make_engine(front), RemoteEngine)
    assert there.info == here.info
    for question in (Question(QUESTION), Question(QUESTION, pinned=("X",), banned=(ANSWERS[1],))):
        expected, received = answer(here, question), answer(there, question)
        for field in ("answers", "clarifications", "passages"):
            assert getattr(received, field) == getattr(expected, field)
        assert [type(e) for e in received.events] == [type(e) for e in expected.events]
    assert not front.corpora_dir.exists()  # nothing was built here


def test_own_passages_travel(front: Settings) -> None:
    question = Question("Who played Anita?", passages=(Passage("mine", "Musical", "Chita Rivera played Anita."),))
    for own_passages in (True, False):  # False: others of the same file bring none
        system = make_engine(front).system("scripted", own_passages=own_passages)
        info = system.info
        assert answer(system, question).answers[0].text == "Chita Rivera"
        assert system.info == info


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
        errors_of = []
        for engine in (here, there):
            with pytest.raises(InputError) as error:
                call(engine)
            errors_of.append((error.type, str(error.value)))
        assert errors_of[0] == errors_of[1]
    with pytest.raises(NotFoundError, match="no corpus is named 'gone'"):
        there.corpus("gone")


@pytest.mark.parametrize("name", [n for n, k in vars(errors).items() if isinstance(k, type) and issubclass(k, AmbiscopeError)])
def test_every_error_travels(name: str) -> None:
    error = getattr(errors, name)("what is wrong")
    received = error_from_json(error_to_json(error))
    assert (str(received), type(received)) == ("what is wrong", ServiceError if name == "FormatError" else type(error))


@pytest.mark.parametrize("body", [{}, [], {"error": "x"}, {"error": {"kind": "Path"}}, {"error": {"message": 3}}])
def test_what_tells_of_no_error(body: object) -> None:
    assert error_from_json(body) is None


def test_a_client_that_leaves_with_the_last_event_was_answered(service: Running, front: Settings) -> None:
    def answered() -> float:
        count = re.search(r'outcome="answered",system="scripted"\} (\S+)', service.http.get("/metrics").text)
        return float(count[1]) if count else 0.0

    before, system = answered(), RemoteEngine(front).system("scripted", "small")
    for _ in range(5):
        assert isinstance(list(system.run(Question(QUESTION)))[-1], Finished)
    until(lambda: answered() == before + 5)


def test_a_run_that_is_stopped_ends_as_here_and_ends_there_too(service: Running, front: Settings) -> None:
    question = f"{HOLD} and stop"
    system = RemoteEngine(front).system("scripted", "small", cancelled=lambda: question in service.engine.held)
    last = list(system.run(Question(question)))[-1]
    assert isinstance(last, Finished)
    assert last.why == "stopped by a person"
    until(lambda: question in service.engine.cancelled)


def test_a_run_that_nobody_reads_any_more_ends_there_too(service: Running, front: Settings) -> None:
    question = f"{HOLD} and leave"
    events = RemoteEngine(front).system("scripted", "small").run(Question(question))
    next(events)
    events.close()  # type: ignore[attr-defined]
    until(lambda: question in service.engine.cancelled)


@pytest.mark.usefixtures("environment")
def test_the_command_line_asks_the_service(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ask", QUESTION, "--json"]) == 0
    assert [a["text"] for a in json.loads(capsys.readouterr().out)["answers"]] == list(ANSWERS)
    assert cli.main(["systems"]) == 0
    assert "ambiscope" in capsys.readouterr().out
    monkeypatch.setenv("AMBISCOPE_ENGINE_KEY", "another")
    assert cli.main(["ask", QUESTION]) == 9
    stderr = capsys.readouterr().err
    assert "refuses the key" in stderr
    assert stderr.count("\n") == 1


def test_an_evaluation_asks_the_service(front: Settings, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps({"id": "1", "question": QUESTION, "answers": [[a] for a in ANSWERS]}) + "\n")
    report = run_plan(EvaluationPlan(str(path), judge="none"), RemoteEngine(front))
    assert report.to_json()["scores"]["F1 answer"]["all"] == 1.0


# ------------------------------------------------------------ a service that fails


def reply(body: object, status: str = "200 OK", **headers: object) -> bytes:
    """A response with the headers of the service, unless others are given; text and bytes are sent as they are."""
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    raw = text.encode() if isinstance(text, str) else text
    whole = {"Content_Type": "application/json", "Ambiscope_Api": API_VERSION, "Content_Length": len(raw), **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in whole.items() if value is not None]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "Connection: close", "", ""]).encode() + raw


ENDLESS = reply(b"", Content_Length=None)
EVENTS = reply(b"", Content_Type=STREAM_TYPE, Content_Length=None)


@contextmanager
def scripted(*parts: bytes | float | Callable[[], bytes]) -> Iterator[str]:
    """A server that answers every request with these bytes, and waits for so many seconds between them."""
    over = threading.Event()

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.recv(65536)
                for part in parts:
                    if isinstance(part, float):
                        over.wait(part)
                    else:
                        self.request.sendall(part() if callable(part) else part)
                self.request.shutdown(socket.SHUT_WR)
                self.request.settimeout(0.2)
                while self.request.recv(65536):  # closing before all of a request was read would reset the connection
                    pass

    with http_server(Handler) as address:  # type: ignore[arg-type]
        try:
            yield address
        finally:
            over.set()


BOMB = gzip.compress(b" " * 10_000_000)
FAULTS: dict[str, tuple[str, bytes | float, *tuple[bytes | float, ...]]] = {  # what the message says, and what is sent
    "html": (
        r"answers with text/html \(HTTP 200\) and is no service of Ambiscope; correct AMBISCOPE_ENGINE_URL",
        reply("<html><body>Welcome to the hotel network</body></html>", Content_Type="text/html", Ambiscope_Api=None),
    ),
    "a redirect": (
        r"\(HTTP 302\) and is no service of Ambiscope",
        reply("", "302 Found", Location="http://127.0.0.1:9/", Ambiscope_Api=None),
    ),
    "another version": (
        rf"speaks form {API_VERSION + 1}, and this Ambiscope \(.*\) form {API_VERSION}: install the same version",
        reply({}, Ambiscope_Api=API_VERSION + 1),
    ),
    "another version, HTML in the header": (r"speaks form <b>x{17}, and", reply({}, Ambiscope_Api="<b>" + "x" * 500)),
    "slow": (r"did not answer within 1 seconds; see whether it runs", 20.0),
    "a byte at a time": (r"a response that does not end", ENDLESS, *[b"1", 0.2] * 100),
    "without end": (r"a response that does not end", ENDLESS, *[b" " * 65536] * 200),
    "cut off": (r"the connection to the service at .* broke", reply("{", Content_Length=100)),
    "no JSON": (r"sent something that is no JSON", reply("{")),
    "deep": (r"no JSON \(nested deeper than 64\)", reply('{"info":' + "[" * 100_000)),
    "many values": (r"more than 500000 values", reply("[" + "0," * 600_000 + "0]")),
    "a number beyond 64 bits": (r"64 bits", reply('{"info": ' + "9" * 5000 + "}")),
    "bytes of another encoding": (r"not UTF-8", reply(b"\xff\xfe")),
    "packed": (r"a body packed as gzip", reply(BOMB, Content_Encoding="gzip")),
    "an error of many lines": (r"^a b \[2J c$", reply({"error": {"kind": "X", "message": "a\nb\x1b[2J\u202ec"}}, "500 X")),
    "nothing": (r"the connection to the service at .* broke", b""),
    "an error of its own": (r"^ask later$", reply({"error": {"kind": "RefusedError", "message": "ask later"}}, "429 Busy")),
    "an error without words": (r"sent HTTP 500", reply({}, "500 X")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failing_service_is_one_clear_message(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_BYTES", 2**21)
    message, *parts = FAULTS[fault]
    with scripted(*parts) as address:
        engine = RemoteEngine(Settings(home=tmp_path, engine_url=address, engine_key="secret", engine_timeout=1))
        start = time.monotonic()
        with pytest.raises(ServiceError, match=message) as error:
            engine.system("scripted")
        assert time.monotonic() - start < 8
        assert "secret" not in str(error.value)
        assert "\n" not in str(error.value)


def stamped(**body: object) -> dict[str, object]:
    return {"api": API_VERSION, "version": "1", **body}


def small(engine: RemoteEngine) -> RemoteCorpus:
    return RemoteCorpus("small", engine._service)


HOLLOW: tuple[object, ...] = (
    *({}, [], None, 3, "x", {"passages": [{}]}, stamped()),
    *(stamped(**{name: 3}) for name in ("info", "names", "systems", "passages", "passage")),
)
# each with replies of its own that have the right types
CALLS: dict[str, tuple[Callable[[RemoteEngine], object], tuple[object, ...]]] = {
    "systems": (RemoteEngine.statuses, (stamped(systems=[{"name": "x"}]),)),
    "system": (lambda e: e.system("scripted"), (stamped(info={"name": "x", "settings": []}),)),
    "corpora": (lambda e: e.library.names(), (stamped(names=[], corpora=[{"name": "x"}]),)),
    "length": (lambda e: len(small(e)), (stamped(total=-1, digest="", passages=[]),)),
    "passages": (lambda e: small(e).passages(), (stamped(total=1, digest="", passages=[{"id": "x", "text": ""}]),)),
    "passage": (lambda e: small(e).get("p"), (stamped(passage={"id": 1, "title": "", "text": ""}),)),
    "search": (lambda e: small(e).search("x", 2), (stamped(passages=[{"passage": {"event": []}, "rank": 1, "score": 1}]),)),
    "embed": (lambda e: e.embed(["a", "b"]), tuple(stamped(vectors=rows) for rows in ([], [[1], [1, 2]], [[True], [1]]))),
    "warm": (RemoteEngine.warm, (stamped(status=1, problem="", waiting=0, running=0),)),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_reply_that_does_not_fit_is_one_clear_message(call: str, tmp_path: Path) -> None:
    ask, replies = CALLS[call]
    bodies = [*HOLLOW, *replies]
    with scripted(lambda: reply(bodies[-1])) as address:
        engine = RemoteEngine(Settings(home=tmp_path, engine_url=address, engine_timeout=5))
        while bodies:
            with pytest.raises(ServiceError, match="install the same version") as error:
                ask(engine)
            assert len(str(error.value)) < 500
            bodies.pop()


def test_texts_beyond_what_one_request_may_hold(service: Running, front: Settings) -> None:
    texts = ["dark rock", "lava"] * 600
    assert RemoteEngine(front).embed(texts).shape == HeldEngine(service.service.settings).embed(texts).shape


def test_cookies_are_refused(tmp_path: Path) -> None:
    body = stamped(status="ok", problem="", waiting=0, running=0)
    with scripted(reply(body, Set_Cookie="a=b")) as address:
        engine = RemoteEngine(Settings(home=tmp_path, engine_url=address, engine_timeout=5))
        engine.warm()
        assert not list(engine._service._http.cookies.jar)


def test_a_service_that_is_down(tmp_path: Path) -> None:
    with scripted() as address:
        pass
    engine = RemoteEngine(Settings(home=tmp_path, engine_url=address))
    with pytest.raises(ServiceError, match=r"cannot be reached .* start it with `python -m core serve`"):
        engine.library.names()


RELAXED = message("x", {"event": "QuestionRelaxed", "question": "x"})
PLACED = [{"index": 7, "x": 0, "y": 0, "cluster": 0, "medoid": True}]
STREAMS: dict[str, tuple[str, *tuple[bytes | float, ...]]] = {
    "ends within an answer": (r"ended within an answer|broke", RELAXED),
    "falls silent": (r"did not answer within 1 seconds", KEEP_ALIVE, 20.0),
    "a line without end": (r"a response that does not end", *[b"x" * 65536] * 200),
    "events without end": (r"a response that does not end", *[RELAXED * 1000] * 200),
    "an event of another version": (
        r"sent an event that cannot be read \(unknown event 'Dreamt'\)",
        message("Dreamt", {"event": "Dreamt"}),
    ),
    "an event that lacks a field": (r"cannot be read \(.*lacks seconds", message("Finished", {"event": "Finished"})),
    "no JSON": (r"no JSON", b"event: Finished\ndata: {\n\n"),
    "an error": (r"^too late$", message("error", {"error": {"kind": "RefusedError", "message": "too late"}})),
    "an event of a hostile name": (r"unknown event list", message("Finished", {"event": []})),
    "an event that is no object": (r"expected an object", message("system", 3)),
    "a map of what was never proposed": (
        r"interpretation 7 of 0",
        message("x", {"event": "InterpretationsClustered", "placed": PLACED}),
    ),
    "an error without words": (r"an error without a message", message("error", 3)),
}


@pytest.mark.parametrize("fault", STREAMS)
def test_a_failing_stream_is_one_clear_message(fault: str, front: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_BYTES", 2**18)
    problem, *parts = STREAMS[fault]
    system = RemoteEngine(front).system("scripted", "small")
    with scripted(EVENTS, *parts) as address:
        system._service = RemoteEngine(replace(front, engine_url=address, engine_timeout=1))._service
        start = time.monotonic()
        with pytest.raises(ServiceError, match=problem):
            list(system.run(Question(QUESTION)))
        assert time.monotonic() - start < 8


@pytest.mark.parametrize(
    ("url", "key", "message"),
    [
        ("localhost:8700", "", "AMBISCOPE_ENGINE_URL must begin with http:// or https://"),
        ("file:///etc/passwd", "", "must begin with http"),
        ("http://me:word@127.0.0.1:8700", "", "remove them and set AMBISCOPE_ENGINE_KEY"),
        ("http://engine.example.org", "a-key", "the key would be sent unencrypted to engine.example.org; use https"),
        ("http://127.0.0.1:8700", "two\nlines", "AMBISCOPE_ENGINE_KEY contains a space, a line break"),
    ],
)
def test_an_address_that_is_not_asked(url: str, key: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as error:
        RemoteEngine(Settings(home=tmp_path, engine_url=url, engine_key=key))
    assert "me:word" not in str(error.value)


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
@pytest.mark.usefixtures("environment")
def test_asking_a_service_imports_no_model_and_no_server() -> None:
    program = [sys.executable, "-c", ASKED]
    process = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (process.stdout.strip(), process.stderr) == ("[]", "")
