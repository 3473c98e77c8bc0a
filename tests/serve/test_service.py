"""The routes: the same answers, events and errors as the engine gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from answering_service import HeldEngine, Running, running, small_settings
from page_helpers import ANSWERS, QUESTION

from core.evaluation.prediction_json import prediction_json
from core.serve import forms, replies
from core.serve.protocol import API_VERSION, STREAM_TYPE, messages
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.trace import from_json
from core.types import Question


def post(service: Running, path: str, body: object) -> httpx.Response:
    """Bytes as they are, all else as JSON; it may hold what is no JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body)
    return service.http.post(path, content=content, headers={"content-type": "application/json"})


@contextmanager
def stream(service: Running, question: str) -> Iterator[Iterator[tuple[str, str]]]:
    with service.http.stream("POST", "/v1/ask", json={"question": question}, headers={"accept": STREAM_TYPE}) as response:
        assert response.headers["content-type"].startswith(STREAM_TYPE)
        yield messages(response.iter_lines())


def test_an_answer_is_what_the_command_line_prints(service: Running) -> None:
    response = service.ask(top_k=3)
    assert response.status_code == 200
    assert (response.headers["ambiscope-api"], response.headers["cache-control"]) == (str(API_VERSION), "no-store")
    body = response.json()
    assert (body.pop("api"), bool(body.pop("version"))) == (API_VERSION, True)
    assert [a["text"] for a in body["answers"]] == list(ANSWERS)
    system = HeldEngine(service.service.settings).system(options=Options(top_k=3))
    expected = json.loads(json.dumps(prediction_json(answer(system, Question(QUESTION)))))
    timed = dict.fromkeys(("seconds", "steps", "waited"))
    assert body | timed == expected | timed


def test_an_ambiguous_question_is_asked_back(service: Running) -> None:
    answered = service.ask().json()
    asked_back = service.ask(mode="clarify").json()
    assert answered["outcome"] == asked_back["outcome"] == "ambiguous"
    assert [o["answer"] for o in asked_back["clarification"]["options"]] == list(ANSWERS)
    assert asked_back["clarification"] == answered["clarification"]
    assert asked_back["answers"] == asked_back["steps"] == []
    one = service.ask(mode="clarify", max_answers=1).json()
    assert (one["outcome"], one["clarification"], len(one["answers"])) == ("answered", None, 1)


def test_a_whole_number_may_be_written_as_a_float(service: Running) -> None:
    assert len(service.ask(top_k=3.0).json()["passages"]) == 3


def test_texts_that_are_half_characters_or_huge_have_vectors_or_are_refused(service: Running) -> None:
    for text, status in (("\ud800", 422), ("x" * 500_000, 200), ("\0", 200), ("", 200)):
        assert post(service, "/v1/embed", {"texts": [text]}).status_code == status, text[:10]


def nested(depth: int) -> dict[str, object]:
    return {"x": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    ("body", "status", "kind", "message"),
    [
        ({}, 422, "InputError", "question: Field required"),
        ({"question": "\ud800 x"}, 422, "InputError", "lone surrogate"),
        ({"question": QUESTION, "colour": 1}, 422, "InputError", "colour: Extra inputs"),
        ({"question": QUESTION, "top_k": 0}, 422, "InputError", "at least 1"),
        ({"question": QUESTION, "top_k": 9}, 422, "InputError", "has only 4"),
        ({"question": QUESTION, "system": "no-such"}, 404, "UnknownNameError", "no-such"),
        ({"question": QUESTION, "corpus": "no-such"}, 404, "NotFoundError", "no corpus is named"),
        ({"question": QUESTION, "options": {"colour": 1}}, 422, "InputError", "has no option 'colour'"),
        ({"question": QUESTION, "passages": []}, 422, "NothingRetrievedError", "empty list of passages"),
        ({"question": QUESTION, "stop_above": float("nan")}, 422, "InputError", "NaN is not JSON"),
        ({"question": QUESTION, "options": {"table": nested(100)}}, 422, "InputError", "nested deeper"),
        ({"question": QUESTION, "options": {"x" * 9000: 1}}, 422, "InputError", "has no option"),
    ],
)
def test_a_bad_question_is_refused(service: Running, body: dict[str, object], status: int, kind: str, message: str) -> None:
    response = post(service, "/v1/ask", body)
    error = response.json()["error"]
    assert (response.status_code, error["kind"]) == (status, kind)
    assert message in error["message"]
    assert len(response.text) < 3000


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/ask", 405),
        ("GET", "/v1/corpora/small/passage?id=p9", 404),
        ("GET", "/docs", 404),
    ],
)
def test_what_is_not_there(service: Running, method: str, path: str, status: int) -> None:
    response = service.http.request(method, path)
    assert response.status_code == status
    assert response.json()["error"]["message"]


@pytest.mark.parametrize(
    "body", [b"{", b"[" * 100_000, b'{"question": "\xff"}', b'{"question": "a", "question": "b"}', b"", b"3", b'"x"']
)
def test_a_body_that_is_no_json(service: Running, body: bytes) -> None:
    response = post(service, "/v1/ask", body)
    assert (response.status_code, response.headers["ambiscope-api"]) == (422, str(API_VERSION))
    from_json(replies.ErrorReply, response.json())


def test_a_fault_is_told_by_number_only(service: Running, caplog: pytest.LogCaptureFixture) -> None:
    """JSON and stream: the traceback stands in the log."""
    response = service.ask("Fail")
    assert response.status_code == 500
    assert response.headers["ambiscope-api"]
    assert "nobody foresaw" not in response.text
    with stream(service, "Fail") as received:
        *_, (name, data) = received
    assert name == "error"
    number = json.loads(data)["error"]["message"].split()[-1]
    assert any(number in record.getMessage() and record.exc_info for record in caplog.records)


def test_a_fault_of_another_route_is_of_this_service(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    nonsense = SimpleNamespace(info=SimpleNamespace(secret="nobody foresaw"))  # what cannot be written as JSON
    monkeypatch.setattr(service.engine, "system", lambda *_, **__: nonsense)
    response = service.http.post("/v1/system", json={"corpus": "small"})
    assert response.status_code == 500
    assert response.headers["ambiscope-api"]
    assert "nobody foresaw" not in response.text


def test_health_and_figures(service: Running) -> None:
    assert service.http.get("/health").json()["status"] == "ok"
    service.ask()
    figures = service.http.get("/metrics").text
    assert 'ambiscope_questions_total{outcome="answered",system="scripted"}' in figures
    assert "ambiscope_waiting 0.0" in figures


def test_every_example_of_the_documentation_is_a_valid_request(service: Running) -> None:
    described = service.http.get("/openapi.json").json()
    assert set(described["paths"]) >= {"/v1/ask", "/v1/systems", "/v1/corpora", "/v1/search", "/health", "/metrics"}
    examples = {name: form["examples"] for name, form in described["components"]["schemas"].items() if "examples" in form}
    assert examples
    for name, rows in examples.items():
        for row in rows:
            getattr(forms, name).model_validate(row)


def test_replies_are_what_the_documentation_declares(service: Running) -> None:
    """Every JSON reply has a schema of its own, errors too; an answer set has exactly the fields that are declared."""
    described = service.http.get("/openapi.json").json()
    for path, methods in described["paths"].items():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if path != "/metrics" or status != "200":
                    assert "$ref" in response["content"]["application/json"]["schema"], (path, status)
    body, schemas = service.ask().json(), described["components"]["schemas"]
    parts = {"AskReply": body, "Calls": body["calls"], "AnswerRow": body["answers"][0], "PassageRow": body["passages"][0]}
    assert {name: part.keys() for name, part in parts.items()} == {n: schemas[n]["properties"].keys() for n in parts}
    from_json(replies.AskReply, body)
    from_json(replies.ErrorReply, service.ask("").json())


def test_an_unready_corpus_does_not_stop_the_service(tmp_path: Path) -> None:
    with running(replace(small_settings(tmp_path), corpus="gone")) as service:
        assert "no corpus is named 'gone'" in service.http.get("/health").json()["problem"]
        assert service.ask(corpus="small").status_code == 200
