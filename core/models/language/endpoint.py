"""A language model behind any OpenAI-compatible endpoint (`POST /chat/completions`): vLLM, llama.cpp server, Ollama, a hosted one.

Protocol: OpenAI API reference, "Create chat completion" and "Structured model outputs"; the `openai` package sends, repeats and times the calls.  Decoding is
greedy (Lee et al. 2025, section 5.1.3).

Requests are simplified when the server refuses a parameter, and the choice is remembered: an object by JSON schema, by `json_object` with the schema beside it
(llama-cpp-python), or in words alone; `max_tokens` or `max_completion_tokens`; with `temperature` or without.

Guarantees: no call or batch outlives its deadline, no redirect is followed, no answer beyond the size limit is held in memory, and the key never
appears in an error, a log, `about` or `repr`.  The environment's proxies, `.netrc` and `OPENAI_*` are ignored, so that the key only goes to the configured
address, and nothing else does.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import replace
from functools import cache, cached_property
from typing import Any
from urllib.parse import urlsplit

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, OpenAIError

from core.errors import LanguageModelError
from core.models.language.address import check_url, near
from core.models.language.roles import STOPPED, TEMPERATURE, TOO_LATE, Completion, Request
from core.models.language.structured import empty, parse_completion
from core.models.language.tokens import estimated_tokens
from core.settings import Settings

PARAMETER_REFUSALS = frozenset({400, 415, 422, 501})  # status codes for an unknown parameter
STRUCTURES = ("json_schema", "json_object", "words")  # strictest first
GRACE = 1.0  # seconds after the deadline for calls to end
CONNECT_SECONDS = 10.0
SENT_HEADERS = frozenset({"host", "accept", "accept-encoding", "user-agent", "content-type", "content-length", "connection"})
# values of finish_reason: of a reply that is not complete, and of one that was filtered
CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
WITHHELD = frozenset({"content_filter", "safety", "prohibited_content", "blocklist", "recitation"})
FILTER_FIELDS = ("prompt_filter_results", "prompt_feedback", "promptFeedback")  # of a reply without choices
CUT_PROMPT_SHARE = 0.85  # counted tokens, relative to the estimate, below which the prompt was cut
CHECKED_TOKENS = 50  # of a prompt; shorter ones are not cut
# parts of the names of models that are not for chats
OTHER_NAME = re.compile(
    r"embed|rerank|whisper|moderation|transcri|diffusion|dall-?e|speech|(babbage|davinci)-00|turbo-instruct"
    r"|(?<![a-z0-9])(tts|stt|asr|bge|gte|e5|clip|siglip|colbert|minilm|mpnet|guard|audio|image|video)(?![a-z])"
)


class CallError(OpenAIError):
    """A call that failed for good.  The client passes its own kind of error on without repeating the call."""


@cache
def calls_loop() -> asyncio.AbstractEventLoop:
    """The event loop of all calls, in a separate thread."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="language-model", daemon=True).start()
    return loop


class _Bounded(httpx2.AsyncByteStream):
    """The body of a reply; raises CallError once it is longer than `limit` KiB."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream, self._limit = stream, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for block in self._stream:
            if (size := size + len(block)) > 1024 * self._limit:
                raise CallError(f"the endpoint's answer is longer than {self._limit} KiB (AMBISCOPE_LM_MAX_RESPONSE_KB)")
            yield block

    async def aclose(self) -> None:
        await self._stream.aclose()


class EndpointModel:
    """A LanguageModel at an address.  Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        """Raises InputError for an invalid address, or one that must not receive the key."""
        self.settings, self.url = settings, check_url(settings.lm_url, settings.lm_key)
        self._model, self.choice = settings.lm_model, ""
        self.is_gone = False  # the endpoint no longer has the model that it listed: another run may use the next one
        # purpose of a request -> index into STRUCTURES that succeeded; a server may refuse one schema and accept another
        self._proven: dict[str, int] = {}
        self._limit, self._temperature = "max_tokens", True

    @property
    def name(self) -> str:
        return f"{self._model or 'language model'} at {urlsplit(self.url).netloc}"

    @property
    def about(self) -> Mapping[str, Any]:
        return {"endpoint": self.url, "model": self._model}

    def connect(self) -> None:
        """Lists the endpoint's models and uses the first that can chat if none is set.  Raises LanguageModelError when the endpoint can't be
        reached or lists none."""
        if self._model:
            return
        seconds = min(CONNECT_SECONDS, self.settings.lm_timeout)
        client = self._client.with_options(max_retries=0)
        call = asyncio.run_coroutine_threadsafe(asyncio.wait_for(self._json(client, "/models"), seconds), calls_loop())
        try:
            listing = call.result(seconds + GRACE)
        except Exception as error:
            call.cancel()
            problem = "it did not answer in time" if isinstance(error, TimeoutError) else self._problem(error)
            raise LanguageModelError(
                f"the language model's endpoint can't be asked for its models: {problem}; set AMBISCOPE_LM_MODEL, or start it"
            ) from None
        rows = listing.get("data")
        models = [name for row in rows if isinstance(name := _mapping(row).get("id"), str)] if isinstance(rows, list) else []
        if not models:
            raise LanguageModelError(f"the endpoint {self.url} lists no model; set AMBISCOPE_LM_MODEL")
        chat_models = [name for name in models if not OTHER_NAME.search(name.lower())]
        if not chat_models:
            raise LanguageModelError(
                f"the endpoint {self.url} lists no model for chats ({self.clean(', '.join(models))}); "
                "set AMBISCOPE_LM_MODEL if one of them is"
            )
        self._model = chat_models[0][:200]
        self.choice = f"the model '{self.clean(self._model, 80)}' is the first one for chats that the endpoint lists; set AMBISCOPE_LM_MODEL to use another"

    def clean(self, message: object, limit: int = 200) -> str:
        """An error message in one line, without the key and line markup."""
        text = str(message)
        if self.settings.lm_key:
            text = text.replace(self.settings.lm_key, "***")
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:limit]

    # ------------------------------------------------------------ a batch

    def stream(
        self, requests: Sequence[Request], deadline: float, cancelled: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[int, Completion]]:
        """See core.models.language.roles.LanguageModel.  At most `concurrency` calls at a time."""
        slots, unreachable, error = asyncio.Semaphore(self.settings.lm_concurrency), list[str](), TOO_LATE
        calls = {
            asyncio.run_coroutine_threadsafe(self._complete(request, slots, deadline, unreachable), calls_loop()): index
            for index, request in enumerate(requests)
        }
        try:
            while calls:
                if cancelled():
                    error = STOPPED
                    break
                if time.monotonic() > deadline + GRACE:
                    break
                for call in wait(calls, 0.05, FIRST_COMPLETED).done:
                    yield calls.pop(call), call.result()
            for index in calls.values():
                yield index, Completion(error=error)
        finally:
            for call in calls:
                call.cancel()

    async def _complete(
        self, request: Request, slots: asyncio.Semaphore, deadline: float, unreachable: list[str]
    ) -> Completion:
        """`unreachable`: why the endpoint can't be reached, set once a call of the batch has used up its retries.  The others
        are then not tried."""
        start, own_time = time.monotonic(), asyncio.timeout(self.settings.lm_timeout)
        try:
            async with asyncio.timeout(deadline - start), slots:
                start = time.monotonic()
                if unreachable:
                    raise CallError(unreachable[0])
                if start >= deadline:  # nothing may be sent any more
                    raise TimeoutError
                async with own_time:
                    completion = self.completion(await self.ask(request), request, time.monotonic() - start)
        except Exception as error:  # one failed request must not stop the batch
            problem = self._problem(error)
            if isinstance(error, TimeoutError):
                problem = (
                    f"no answer within {self.settings.lm_timeout} s (AMBISCOPE_LM_TIMEOUT)" if own_time.expired() else TOO_LATE
                )
            if isinstance(error.__cause__, (httpx2.ConnectError, httpx2.ConnectTimeout)):
                unreachable.append(problem)
            completion = Completion(error=problem, seconds=time.monotonic() - start)
        if completion.error and self.choice and not (unreachable or completion.cut):
            completion = replace(completion, error=f"{completion.error}; {self.choice}")
        return completion

    def _problem(self, error: Exception) -> str:
        """Why a call failed, and what to do, in one line without the key."""
        if isinstance(error, APIConnectionError):
            cause = error.__cause__ or error
            if isinstance(cause, (httpx2.ConnectError, httpx2.ConnectTimeout)):
                return f"the endpoint {self.url} can't be reached; is it running?"
            return f"the connection broke ({type(cause).__name__}: {self.clean(cause, 100)})"
        if not isinstance(error, APIStatusError):
            return self.clean(error if isinstance(error, CallError) else f"{type(error).__name__}: {error}")
        status, body = error.status_code, error.body
        for name in ("error", "message", "detail"):
            if isinstance(body, dict) and name in body:
                body = body[name]
        problem = self.clean(body or "", 160)
        if 300 <= status < 400:
            return f"the endpoint redirects (HTTP {status}), which is not followed; set AMBISCOPE_LM_URL to the final address"
        if status in (401, 403):
            return f"the endpoint refuses the key (HTTP {status}); check AMBISCOPE_LM_KEY"
        if status == 404:
            return (
                f"the endpoint has no such path or model (HTTP 404): {problem}; check AMBISCOPE_LM_URL and AMBISCOPE_LM_MODEL"
            )
        pause = self.clean(error.response.headers.get("retry-after", ""), 40)
        return f"the endpoint returned HTTP {status}: {problem}" + (f"; it asks to wait {pause} s" if pause else "")

    # ------------------------------------------------------------ one call

    @cached_property
    def _client(self) -> AsyncOpenAI:
        http = httpx2.AsyncClient(
            headers={"Accept-Encoding": "identity"},
            event_hooks={"request": [self._prepare], "response": [self._check]},
            trust_env=False,
            verify=self.url.startswith("https"),  # certificates take long to load
        )
        seconds = self.settings.lm_timeout
        return AsyncOpenAI(
            api_key=self.settings.lm_key or "none",
            base_url=self.url,
            timeout=httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds), pool=None),
            max_retries=self.settings.lm_retries,
            http_client=http,
        )

    async def _prepare(self, request: httpx2.Request) -> None:
        """Drops the headers that identify the client or come from the environment."""
        for name in set(request.headers) - SENT_HEADERS:
            del request.headers[name]
        request.headers["User-Agent"] = "ambiscope"
        if self.settings.lm_key:
            request.headers["Authorization"] = f"Bearer {self.settings.lm_key}"
            if request.url.scheme == "http":
                request.extensions["trace"] = self._connected

    async def _connected(self, event: str, details: Mapping[str, Any]) -> None:
        """Called with a new connection before anything is sent, because a host name may resolve to a different address each
        time.

        Raises CallError if the key would go unencrypted to an address that is not near.
        """
        if event != "connection.connect_tcp.complete":
            return
        stream = details["return_value"]
        peer = stream.get_extra_info("server_addr")
        if not near(str(peer[0])):
            await stream.aclose()
            raise CallError(f"the key would be sent unencrypted to {peer[0]}, the address of AMBISCOPE_LM_URL; use https")

    async def _check(self, response: httpx2.Response) -> None:
        """Called with the head of a reply.  Raises CallError if it is compressed, because its size isn't known before it is
        unpacked."""
        if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            raise CallError("the endpoint sent compressed data, which was not requested")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream, self.settings.lm_max_response_kb)

    async def _json(self, client: AsyncOpenAI, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The object of a reply as the server wrote it.  Raises CallError for anything else, OpenAIError."""
        kind = httpx2.Response
        response = await (client.get(path, cast_to=kind) if body is None else client.post(path, cast_to=kind, body=body))
        text = response.content.decode("utf-8", "replace")
        try:
            reply = json.loads(text)
        except (ValueError, RecursionError):
            excerpt = self.clean(text, 80)
            raise CallError(
                f"the endpoint's answer is not JSON: {excerpt}" if excerpt else "the endpoint's answer is empty"
            ) from None
        if not isinstance(reply, dict):
            raise CallError("the endpoint's answer is not a JSON object")
        return reply

    def body(self, request: Request, structure: int) -> dict[str, Any]:
        out: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": m.role, "content": m.text} for m in request.messages],
            self._limit: request.max_tokens,
        }
        if self._temperature:
            out["temperature"] = TEMPERATURE
        if request.schema is not None and STRUCTURES[structure] == "json_schema":
            json_schema = {"name": "answer", "schema": strict(request.schema), "strict": True}
            out["response_format"] = {"type": "json_schema", "json_schema": json_schema}
        elif request.schema is not None and STRUCTURES[structure] == "json_object":
            out["response_format"] = {"type": "json_object", "schema": strict(request.schema)}
        return out

    async def ask(self, request: Request) -> dict[str, Any]:
        """One call, repeated with fewer parameters if the server refuses some.  Raises CallError, OpenAIError."""
        structure, refusals = self._proven.get(request.purpose, 0), 0
        while True:
            limit, temperature = self._limit, self._temperature  # for this call: other calls may change them
            try:
                reply = await self._json(self._client, "/chat/completions", self.body(request, structure))
            except APIStatusError as error:
                text = error.response.text
                self.is_gone |= error.status_code == 404 and not self.settings.lm_model
                refusals += 1
                if error.status_code not in PARAMETER_REFUSALS or refusals > 4:
                    raise
                if "max_completion_tokens" in text and limit == "max_tokens":
                    self._limit = "max_completion_tokens"
                elif "temperature" in text and temperature:
                    self._temperature = False
                elif request.schema is not None and request.purpose not in self._proven and structure < len(STRUCTURES) - 1:
                    structure += 1
                else:
                    raise
            else:
                if request.schema is not None:  # only remembered on success: a request may be refused for its length
                    self._proven.setdefault(request.purpose, structure)
                return reply

    def completion(self, reply: Mapping[str, Any], request: Request, seconds: float) -> Completion:
        """The server's object as a completion; missing or invalid parts give an error, never an exception."""
        choices = reply.get("choices")
        first = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
        message, usage = _mapping(first.get("message")), _mapping(reply.get("usage"))
        text = _text(message.get("content"))  # reasoning_content and reasoning are no answer
        estimate = sum(estimated_tokens(m.text) for m in request.messages)
        completion = Completion(
            text=text,
            prompt_tokens=_count(usage.get("prompt_tokens"), estimate),
            completion_tokens=_count(usage.get("completion_tokens"), estimated_tokens(text)),
            seconds=seconds,
            warning=_truncation(usage, estimate),
        )
        if not first:
            problem: Any = reply.get("error")
            if not problem and any(reply.get(name) for name in FILTER_FIELDS):
                problem = "its content filter withheld the answer"
            return replace(
                completion, error="the endpoint's answer has no choices" + (f": {self.clean(problem, 120)}" if problem else "")
            )
        reason = str(first.get("finish_reason") or "").lower()
        if reason in WITHHELD:
            return replace(completion, error=f"the endpoint's content filter withheld the answer (finish_reason {reason})")
        if message.get("refusal"):
            return replace(completion, error=f"the model refused to answer: {self.clean(message['refusal'], 120)}")
        tokens = _count(usage.get("completion_tokens"), 0)
        is_cut = reason in CUT_OFF or (not reason and tokens >= request.max_tokens)
        if not is_cut and not text.strip() and any(message.get(name) for name in ("reasoning_content", "reasoning")):
            return replace(completion, error=empty("reasoning"))
        return parse_completion(replace(completion, cut=is_cut), request)


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema for strict structured output: all properties required and no others, at every level."""
    out = dict(schema)
    if "properties" in schema:
        properties = {name: strict(p) for name, p in schema["properties"].items()}
        out |= {"properties": properties, "required": list(properties), "additionalProperties": False}
    if "items" in schema:
        out["items"] = strict(schema["items"])
    return out


def _text(content: Any) -> str:
    """The text of a message: a string, or the parts of a list except those that are reasoning."""
    parts = content if isinstance(content, list) else [content] if isinstance(content, str) else []
    texts = (p.get("text") if isinstance(p, dict) and p.get("type", "text") in ("text", "output_text") else p for p in parts)
    return "".join(t for t in texts if isinstance(t, str))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _truncation(usage: Mapping[str, Any], estimate: int) -> str:
    """A warning if the endpoint counted far fewer tokens than the prompt is estimated to have.  It then cut the prompt without
    an error, as Ollama does.

    Tokens that an endpoint reports as cached are added, as some count them apart.
    """
    tokens = _count(usage.get("prompt_tokens"), 0)
    if not tokens:
        return ""
    tokens += _count(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens"), 0)
    if estimate < CHECKED_TOKENS or tokens >= CUT_PROMPT_SHARE * estimate:
        return ""
    return (
        f"the endpoint counted {tokens} tokens of a prompt that has about {estimate}: it cut the prompt; raise its context length "
        "(Ollama: OLLAMA_CONTEXT_LENGTH), or read fewer passages"
    )


def _count(value: Any, estimate: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else estimate
