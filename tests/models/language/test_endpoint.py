from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import threading
import time
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from loopback_endpoint import Reply, choice, complete, endpoint, listing, said
from serving import free_port, until

from core.errors import InputError, LanguageModelError
from core.models.language.address import check_url
from core.models.language.endpoint import EndpointModel, calls_loop, strict
from core.models.language.loading import load_language_generator
from core.models.language.roles import Completion, Message, Request
from core.settings import Settings

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
KEY = "sk-very-secret-1234567890"
GOOD = said({"answer": "Ada"}, prompt_tokens=11, completion_tokens=5)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the tries of a call."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)


def request(text: str = "Who?", schema: dict[str, Any] | None = SCHEMA) -> Request:
    return Request((Message("system", "Reply."), Message("user", text)), schema, 32)


def model(url: str, **changes: Any) -> EndpointModel:
    base = Settings(lm_url=url, lm_model="tiny", lm_key=KEY, lm_timeout=5, lm_concurrency=4, lm_retries=2)
    return EndpointModel(replace(base, **{f"lm_{name}": value for name, value in changes.items()}))


def ask(url: str, n: int = 1, seconds: float = 10.0, **changes: Any) -> list[Completion]:
    return complete(model(url, **changes), [request(f"Question {i}?") for i in range(n)], time.monotonic() + seconds)


def send(endpoint_model: EndpointModel, *requests: Request) -> list[Completion]:
    return complete(endpoint_model, requests, time.monotonic() + 10)


def completion_of(reply: Reply, asked: Request) -> Completion:
    """The result of a request that the server answers like this."""
    with endpoint(lambda body, n: reply) as (url, _):
        return send(model(url), asked)[0]


def test_an_object_by_schema_with_what_it_cost() -> None:
    with endpoint(lambda body, n: GOOD) as (url, seen):
        done = ask(url)[0]
    assert (done.parsed, done.error, done.prompt_tokens, done.completion_tokens) == ({"answer": "Ada"}, "", 11, 5)
    assert done.seconds > 0
    body = seen.bodies[0]
    assert (seen.paths, body["model"], body["temperature"], body["max_tokens"]) == (["/v1/chat/completions"], "tiny", 0, 32)
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert body["response_format"]["json_schema"]["schema"] == strict(SCHEMA)
    assert seen.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert "tools" not in body  # nothing that a passage could call


def test_plain_text_and_estimated_tokens() -> None:
    with endpoint(lambda body, n: said("Ada wrote it.")) as (url, seen):
        [done] = send(model(url), request("one two " * 50, None))
    expected = Completion("Ada wrote it.", prompt_tokens=102, completion_tokens=4, seconds=done.seconds)
    assert (done, "response_format" in seen.bodies[0]) == (expected, False)


ACCIDENTS = {
    "html": (Reply("<html><script>alert(1)</script>It works!</html>", content_type="text/html"), "not JSON"),
    "empty body": (Reply(""), "is empty"),
    "a list": (Reply("[1, 2]"), "not a JSON object"),
    "no choices": (Reply('{"choices": [], "error": {"message": "overloaded"}}'), "no choices.*overloaded"),
    "no content": (Reply('{"choices": [{"message": {"content": null}}]}'), "said nothing"),
    "other words": (said("I'd rather talk about the weather."), "no JSON object"),
    "refusal": (choice({"content": None, "refusal": "I can't help with that."}), "I can't help"),
    "filtered": (choice({"content": '{"answer": "Ada"}'}, "content_filter"), "content filter withheld"),
    "filtered prompt": (Reply('{"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}'), "content filter"),
    "feedback alone": (Reply('{"promptFeedback": {"blockReason": "SAFETY"}}'), "content filter"),
    "not utf-8": (Reply(b"\xff\xfe\x00"), "not JSON"),
    "deep": (Reply("[" * 100_000), "not JSON"),
    "giant": (Reply(b" " * 3_000_000), "longer than 1024 KiB"),
    "compressed": (Reply(b"\x1f\x8b" + b"x" * 40, content_encoding="gzip"), "compressed"),
    "redirect": (Reply("", 302, location="http://127.0.0.1:9/steal"), "which is not followed"),
    "refused key": (Reply(json.dumps({"error": {"message": f"bad key {KEY}"}}), 401), "refuses the key"),
    "no such model": (Reply(json.dumps({"error": {"message": f"no {KEY}"}}), 404), r"HTTP 404.*no \*\*\*"),
    "teapot": (Reply(f"short and stout {KEY}\n\x1b[31m", 418), "HTTP 418: short and stout"),
    "server error": (Reply('{"detail": "boom"}', 500), "HTTP 500: boom"),
}


@pytest.mark.parametrize("name", ACCIDENTS)
def test_an_accident_fails_its_own_request_and_says_why(name: str) -> None:
    reply, words = ACCIDENTS[name]
    bad = "Question 1?"
    with endpoint(lambda body, n: reply if body["messages"][-1]["content"] == bad else GOOD) as (url, seen):
        done = ask(url, 3)
    assert [c.parsed for c in done] == [{"answer": "Ada"}, None, {"answer": "Ada"}]
    error = done[1].error
    assert re.search(words, error)
    assert KEY not in repr(done)
    assert (error.isprintable(), len(error) < 400) == (True, True)
    tries = sum(b["messages"][-1]["content"] == bad for b in seen.bodies)
    assert tries == (3 if name == "server error" else 1)


def test_where_nobody_listens_the_others_are_not_tried_once_one_has_used_its_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Request] = []
    real = EndpointModel.ask

    async def counted(self: EndpointModel, asked: Request) -> Any:
        tries.append(asked)
        return await real(self, asked)

    monkeypatch.setattr(EndpointModel, "ask", counted)
    done = ask(f"http://127.0.0.1:{free_port()}/v1", 30)
    assert all("can't be reached" in c.error for c in done)
    assert len(tries) <= 8  # four at a time


def test_a_connection_that_breaks_is_tried_again() -> None:
    def hang_up(body: dict[str, Any], n: int) -> Reply:
        raise ConnectionAbortedError

    with endpoint(hang_up) as (url, seen):
        [done] = ask(url)
    assert ("connection broke" in done.error, len(seen.bodies)) == (True, 3)


ADA, BOB = json.dumps({"answer": "Ada"}), json.dumps({"answer": "Bob"})


@pytest.mark.parametrize(
    "message",
    [
        {"content": [{"type": "text", "text": '{"answer": '}, {"type": "text", "text": '"Ada"}'}]},
        {"content": [{"type": "thinking", "thinking": BOB, "text": BOB}, {"type": "text", "text": ADA}]},
        {"content": [ADA]},
        {"content": ADA, "reasoning_content": BOB},
        {"content": ADA, "reasoning": BOB},
        {"content": f"maybe {BOB}, no</think>\n{ADA}"},
        {"content": f"<think>{BOB} <think>{BOB}</think> {BOB}</think>{ADA}"},
        {"content": f"[THINK]{BOB}[/THINK]{ADA}"},
        {"content": f"◁think▷{BOB}◁/think▷{ADA}"},
        {"content": f"<|channel|>analysis<|message|>{BOB}<|end|><|start|>assistant<|channel|>final<|message|>{ADA}"},
    ],
)
@pytest.mark.parametrize("schema", [SCHEMA, None], ids=["object", "text"])
def test_reasoning_is_not_the_answer_and_parts_are_one_text(message: dict[str, Any], schema: dict[str, Any] | None) -> None:
    done = completion_of(choice(message), request(schema=schema))
    assert done.error == ""
    assert "Bob" not in done.text or schema
    assert (done.parsed or json.loads(done.text)) == {"answer": "Ada"}


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "reasoning_content": BOB},
        {"content": "", "reasoning": BOB},
        {"content": f"<think>{BOB}"},
        {"content": f"{BOB}</think>"},
        {"content": [{"type": "reasoning", "text": BOB}]},
    ],
)
@pytest.mark.parametrize("schema", [SCHEMA, None], ids=["object", "text"])
def test_a_reply_that_only_reasons_is_an_error(message: dict[str, Any], schema: dict[str, Any] | None) -> None:
    done = completion_of(choice(message), request(schema=schema))
    assert (bool(done.error), done.parsed, "Bob" in done.text and schema is None) == (True, None, False)


@pytest.mark.parametrize("reason", ["length", "MAX_TOKENS", None])
@pytest.mark.parametrize("content", [ADA, '{"answer": "Ad', "", "Ada"])
@pytest.mark.parametrize("schema", [SCHEMA, None], ids=["object", "text"])
def test_a_reply_at_its_limit_is_an_error_that_names_it(
    content: str, reason: str | None, schema: dict[str, Any] | None
) -> None:
    """32 tokens: without a reason, the count says that the limit ended it."""
    reply = choice({"content": content}, reason, prompt_tokens=9, completion_tokens=32)
    done = completion_of(reply, request(schema=schema))
    assert done.parsed is None
    assert {"32", "AMBISCOPE_LM_MAX_TOKENS"} <= set(re.findall(r"\w+", done.error))


PROSE = "The pilot of the Grey Ferry was played by Ada Munro in the film of that year. " * 40  # 680 words


@pytest.mark.parametrize(
    ("text", "usage", "doubtful"),
    [
        (PROSE, {"prompt_tokens": 300}, True),
        (PROSE, {"prompt_tokens": 300, "prompt_tokens_details": {"cached_tokens": 500}}, False),  # counted apart
        (PROSE, {"prompt_tokens": 760}, False),  # o200k_base
        (PROSE, {"prompt_tokens": 560}, True),  # a quarter of it is gone
        (PROSE, {"prompt_tokens": 0}, False),
        (PROSE, {}, False),
        ("誰がマリアを演じましたか。" * 200, {"prompt_tokens": 300}, True),
        ("誰がマリアを演じましたか。" * 200, {"prompt_tokens": 1500}, False),
        ("=" * 5000, {"prompt_tokens": 80}, False),
        ("Who?", {"prompt_tokens": 3}, False),
    ],
)
def test_a_prompt_that_the_endpoint_cut_is_reported(text: str, usage: dict[str, Any], doubtful: bool) -> None:
    done = completion_of(choice({"content": ADA}, **usage), request(text))
    assert (done.parsed, done.error, bool(done.warning)) == ({"answer": "Ada"}, "", doubtful)


def test_too_many_requests_are_tried_again_after_the_time_that_the_server_names_if_a_call_may_last_so_long() -> None:
    with endpoint(lambda body, n: Reply("{}", 429, retry_after="1") if n == 0 else GOOD) as (url, seen):
        assert ask(url)[0].parsed == {"answer": "Ada"}
    assert seen.times[1] - seen.times[0] >= 0.95
    with endpoint(lambda body, n: Reply("{}", 429, retry_after="3600")) as (url, seen):
        [done] = ask(url)
    assert ("asks to wait 3600 s" in done.error, len(seen.bodies)) == (True, 1)
    with endpoint(lambda body, n: Reply("{}", 429, retry_after="100")) as (url, seen):
        [done] = ask(url, timeout=1)
    assert ("no answer within 1 s" in done.error, len(seen.bodies)) == (True, 1)


def test_server_errors_are_tried_again() -> None:
    with endpoint(lambda body, n: Reply("", 503) if n < 2 else GOOD) as (url, seen):
        assert ask(url)[0].parsed == {"answer": "Ada"}
    assert len(seen.bodies) == 3


def test_nothing_of_this_machine_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's own headers say which system and Python run, and its environment may hold another key."""
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "BASE_URL"):
        monkeypatch.setenv(f"OPENAI_{name}", "elsewhere")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer elsewhere\nX-Mine: elsewhere")
    for key in (KEY, ""):
        with endpoint(lambda body, n: GOOD) as (url, seen):
            assert ask(url, key=key)[0].error == ""
        assert "elsewhere" not in str(seen.headers)
        assert seen.headers[0].get("Authorization", "") == (f"Bearer {KEY}" if key else "")
        assert not [name for name in seen.headers[0] if name.lower().startswith(("x-", "openai"))]


@pytest.mark.parametrize("slow", [Reply("{}", wait=30), Reply("x" * 1000, drip=0.2)], ids=["silent", "drip"])
def test_a_slow_server_fails_the_call_at_its_own_deadline_and_the_others_go_on(slow: Reply) -> None:
    with endpoint(lambda body, n: slow if "1" in body["messages"][-1]["content"] else GOOD) as (url, _):
        started = time.monotonic()
        done = ask(url, 3, timeout=1)
        took = time.monotonic() - started
    assert "no answer within 1 s" in done[1].error
    assert [c.parsed for c in done] == [{"answer": "Ada"}, None, {"answer": "Ada"}]
    assert took < 10


def test_a_batch_ends_at_its_deadline_and_sends_nothing_after_it() -> None:
    with endpoint(lambda body, n: Reply("{}", wait=30)) as (url, _):
        started = time.monotonic()
        done = ask(url, 10, seconds=0.5)
    assert ["time was over" in c.error for c in done] == [True] * 10
    assert time.monotonic() - started < 10
    with endpoint(lambda body, n: GOOD) as (url, seen):
        done = ask(url, 2, seconds=-1)
    assert (["time was over" in c.error for c in done], seen.bodies) == ([True] * 2, [])


def test_a_person_can_stop_a_batch() -> None:
    stopped = threading.Event()
    with endpoint(lambda body, n: GOOD if n == 0 else Reply("{}", wait=30)) as (url, seen):
        started = time.monotonic()
        done = {}
        for i, c in model(url, concurrency=2).stream([request(str(i)) for i in range(8)], started + 20, stopped.is_set):
            done[i] = c
            stopped.set()
    assert time.monotonic() - started < 10
    assert sorted(done) == list(range(8))
    assert sum("stopped" in c.error for c in done.values()) >= 6
    assert len(seen.bodies) <= 4


def test_each_completion_comes_as_it_is_ready_and_never_more_than_allowed_at_once() -> None:
    others, others_are_answered = iter(range(7)), threading.Event()

    def answer(body: dict[str, Any], n: int) -> Reply:
        if body["messages"][-1]["content"] == "first":
            others_are_answered.wait(60)
        elif next(others) == 6:
            others_are_answered.set()
        return Reply(GOOD.body, wait=0.05)

    requests = [request("first"), *[request(str(i)) for i in range(7)]]
    with endpoint(answer) as (url, seen):
        order = [i for i, _ in model(url, concurrency=3, timeout=30).stream(requests, time.monotonic() + 30)]
    assert sorted(order) == list(range(8))
    assert order.index(0) >= 5  # it came after those that were ready before it
    assert 2 <= seen.most <= 3


def test_a_consumer_that_goes_away_leaves_no_calls_behind() -> None:
    with endpoint(lambda body, n: GOOD if n == 0 else Reply("{}", wait=30)) as (url, _):
        batch = model(url).stream([request(str(i)) for i in range(3)], time.monotonic() + 20, lambda: False)
        next(batch)
        batch.close()
        until(lambda: not asyncio.all_tasks(calls_loop()))


def refusing(*unknown: str) -> Any:
    """A server that says 400 while one of these stands in the body."""

    def answer(body: dict[str, Any], n: int) -> Reply:
        for name in unknown:
            if name in json.dumps(body):
                return Reply(json.dumps({"error": {"message": f"'{name}' is not supported with this model"}}), 400)
        return GOOD

    return answer


@pytest.mark.parametrize(
    ("unknown", "calls", "left"),
    [(["json_schema"], 2, "json_object"), (["response_format"], 3, None), (["temperature"], 2, "json_schema")],
)
def test_what_a_server_refuses_is_asked_for_once(unknown: list[str], calls: int, left: str | None) -> None:
    with endpoint(refusing(*unknown)) as (url, seen):
        asked = model(url)
        assert (send(asked, request())[0].parsed, len(seen.bodies)) == ({"answer": "Ada"}, calls)
        assert [c.error for c in send(asked, request(), request())] == ["", ""]
        assert len(seen.bodies) == calls + 2  # remembered
    assert seen.bodies[-1].get("response_format", {}).get("type") == left


def test_a_schema_that_a_server_refuses_costs_the_other_schemas_nothing() -> None:
    def answer(body: dict[str, Any], n: int) -> Reply:
        return Reply("unions are not supported", 400) if '"null"' in json.dumps(body.get("response_format", {})) else GOOD

    union = {**SCHEMA, "properties": {"answer": {"type": ["string", "null"]}}}
    with endpoint(answer) as (url, seen):
        asked = model(url)
        for schema, purpose in ((SCHEMA, "relax"), (union, "interpret"), (SCHEMA, "relax"), (union, "interpret")):
            [done] = send(asked, replace(request(schema=schema), purpose=purpose))
            assert done.parsed == {"answer": "Ada"}
    kinds = [b.get("response_format", {}).get("type") for b in seen.bodies]
    assert kinds == ["json_schema", "json_schema", "json_object", None, "json_schema", None]


def test_calls_at_the_same_time_learn_the_newer_name_of_the_limit_together() -> None:
    def answer(body: dict[str, Any], n: int) -> Reply:
        wrong = json.dumps({"error": {"message": "Unsupported parameter: use 'max_completion_tokens' instead."}})
        return Reply(wrong, 400, wait=0.1) if "max_tokens" in body else GOOD

    with endpoint(answer) as (url, seen):
        done = ask(url, 4)
    assert [c.error for c in done] == [""] * 4
    assert {b["response_format"]["type"] for b in seen.bodies} == {"json_schema"}


def test_a_prompt_that_is_too_long_does_not_cost_the_structure() -> None:
    def answer(body: dict[str, Any], n: int) -> Reply:
        long = len(body["messages"][-1]["content"]) > 1000
        return Reply(json.dumps({"error": {"message": "context length exceeded"}}), 400) if long else GOOD

    with endpoint(answer) as (url, seen):
        asked = model(url)
        assert "context length exceeded" in send(asked, request("x" * 2000))[0].error
        send(asked, request())
    assert seen.bodies[-1]["response_format"]["type"] == "json_schema"


def test_without_a_name_the_first_model_that_chats_is_taken() -> None:
    others = "nomic-embed-text:latest bge-m3 intfloat/e5-base jina-reranker-v2 whisper-large-v3 tts-1-hd llama-guard3:8b"
    reply = listing(*others.split(), "llama3.2:3b", "qwen3:8b")
    with endpoint(lambda body, n: GOOD if body else reply) as (url, seen):
        asked = model(url, model="")
        asked.connect()
        send(asked, request())
    assert (seen.paths[0], seen.bodies[-1]["model"], asked.about["model"]) == ("/v1/models", *["llama3.2:3b"] * 2)


def test_where_nobody_named_a_model_the_next_run_uses_one_that_the_endpoint_still_has() -> None:
    models = ["old"]

    def answer(body: dict[str, Any], n: int) -> Reply:
        return listing(*models) if not body else GOOD if body["model"] in models else Reply("no such model", 404)

    with endpoint(answer) as (url, _):
        settings = Settings(lm_url=url)
        earlier = load_language_generator(settings)
        models[:] = ["new"]
        assert complete(earlier.model, [request()], time.monotonic() + 10)[0].error
        later = load_language_generator(settings)
        assert not complete(later.model, [request()], time.monotonic() + 10)[0].error
    assert (earlier.about["model"], later.about["model"]) == ("old", "new")  # what a run says of itself stays true


@pytest.mark.parametrize("reply", [Reply("no chat here", 400), Reply("out of memory", 500), said("lorem ipsum")])
def test_a_failure_of_a_model_that_nobody_named_names_it_and_the_setting(reply: Reply) -> None:
    with endpoint(lambda body, n: reply if body else listing("mystery")) as (url, _):
        asked = model(url, model="")
        asked.connect()
        unnamed, named = send(asked, request())[0].error, ask(url)[0].error
    assert re.search(r"mystery.*AMBISCOPE_LM_MODEL", unnamed)
    assert "AMBISCOPE_LM_MODEL" not in named


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (listing("nomic-embed-text"), r"no model for chats \(nomic-embed-text\)"),
        (Reply('{"data": 3}'), "lists no model"),
        (Reply("", 500), "HTTP 500"),
    ],
)
def test_an_endpoint_that_lists_no_model_for_chats_is_an_error_that_says_what_to_set(reply: Reply, problem: str) -> None:
    with (
        endpoint(lambda body, n: reply) as (url, _),
        pytest.raises(LanguageModelError, match=rf"{problem}.*AMBISCOPE_LM_MODEL"),
    ):
        model(url, model="").connect()


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://127.0.0.1:8123/v1/", "http://127.0.0.1:8123/v1"),
        ("http://localhost:11434", "http://localhost:11434/v1"),
        ("https://models.example.org/openai/v1", "https://models.example.org/openai/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_an_address_is_taken_as_people_write_it(address: str, expected: str) -> None:
    assert check_url(address) == expected


@pytest.mark.parametrize(
    ("url", "key", "words"),
    [
        ("ftp://example.org/v1", "", "http"),
        ("file:///etc/passwd", "", "http"),
        ("localhost:8000", "", "http"),
        ("http://", "", "host"),
        ("http://me:pass@localhost/v1", "", "AMBISCOPE_LM_KEY"),
        ("http://localhost/v1?key=abc", "", "query"),
        ("http://localhost:99999/v1", "", "not an address"),
        ("http://[::1/v1", "", "not an address"),
        ("http://example.org/v1", KEY, "unencrypted"),
        ("http://8.8.8.8/v1", KEY, "unencrypted"),
        ("https://example.org/v1", "two words", "another invalid character"),
    ],
)
def test_an_address_that_is_none_or_unsafe_is_refused(url: str, key: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        check_url(url, key)
    assert "pass" not in str(caught.value)
    assert not key or key not in str(caught.value)


@pytest.mark.parametrize(
    "host", "localhost 127.0.0.1 127.1 10.1.2.3 192.168.0.9 ollama gpu.lan [::1] [fd12::7] [::ffff:10.0.0.1]".split()
)
def test_a_key_may_go_to_a_server_nearby(host: str) -> None:
    assert check_url(f"http://{host}:8000/v1", KEY)


FAR = (
    "169.254.169.254 2852039166 0xA9FEA9FE 0251.0376.0251.0376 169.254.43518 0xa9.254.0251.0xfe [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] "
    "[fe80::1] [fe80::1%25eth0] [fd00:ec2::254] [64:ff9b::a9fe:a9fe] [2002:a9fe:a9fe::1] [::] 0.0.0.0 0 192.0.0.192 100.100.100.200 "
    "198.51.100.7 255.255.255.255 134744072 example.org example.org. １６９.254.169.254 169。254。169。254 [2001:4860:4860::8888]"
)


@pytest.mark.parametrize("host", FAR.split())
def test_a_key_goes_unencrypted_to_no_other_address_however_it_is_written(host: str) -> None:
    with pytest.raises(InputError):
        check_url(f"http://{host}:8000/v1", KEY)
    assert not host.startswith("[f") or check_url(f"https://{host}:8000/v1", KEY)


def test_a_key_goes_to_no_address_that_a_name_leads_to_unless_it_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """`model.internal` may lead to a cloud's metadata service, and a name's address may change after it was looked at: the connection counts."""
    look_up = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest, **kw: look_up("127.0.0.1", *rest, **kw))
    with endpoint(lambda body, n: GOOD) as (url, seen):
        port = urlsplit(url).port
        named = f"http://model.internal:{port}/v1"
        assert check_url(named, KEY) == named
        assert not ask(named)[0].error
        assert seen.headers[0]["Authorization"] == f"Bearer {KEY}"
        monkeypatch.setattr("core.models.language.endpoint.near", lambda address: address != "127.0.0.1")
        done = ask(named, 3)
        with pytest.raises(LanguageModelError, match=r"unencrypted to 127\.0\.0\.1"):
            model(named, model="").connect()
        assert not [d for d in done if "unencrypted to 127.0.0.1" not in d.error]
        assert len(seen.headers) == 1  # nothing was sent
        assert not ask(named, key="")[0].error  # without a key there is nothing to keep


def test_the_key_shows_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(lm_url="http://127.0.0.1:1/v1", lm_model="tiny", lm_key=KEY)
    shown = EndpointModel(settings)
    with caplog.at_level(logging.DEBUG), endpoint(lambda body, n: Reply(f"oops {KEY}", 400)) as (url, _):
        done = ask(url)
    shapes = [repr(settings), str(settings), repr(shown), json.dumps(dict(shown.about)), shown.name]
    assert not [text for text in (*shapes, repr(done), caplog.text) if KEY in text]
