"""A language model behind any OpenAI-compatible endpoint (`POST /chat/completions`): vLLM, llama.cpp server, Ollama, a hosted one.

Protocol: OpenAI API reference, "Create chat completion" and "Structured model outputs".  Decoding is greedy (Lee et al. 2025, section 5.1.3).

Requests are simplified when the server refuses a parameter, and the choice is remembered: an object by JSON schema, by `json_object` with the schema beside it
(llama-cpp-python), or in words alone; `max_tokens` or `max_completion_tokens`; with `temperature` or without.

Guarantees: no call or batch outlives its deadline, no redirect is followed, no answer beyond the size limit is held in memory, and the key never
appears in an error, a log, `about` or `repr`.  The environment's proxies and `.netrc` are ignored, so that the key only goes to the configured address.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import httpx

from core.errors import FormatError, LanguageModelError
from core.models.language.address import Address, near
from core.models.language.batch import STOPPED, TOO_LATE, Batch, CallError, StatusError
from core.models.language.roles import Completion, Request
from core.models.language.structured import empty, read_object, without_reasoning

PARAMETER_REFUSALS = frozenset({400, 415, 422, 501})  # status codes for an unknown parameter
STRUCTURES = ("json_schema", "json_object", "words")  # strictest first
CHARS_PER_TOKEN = 4  # if the server does not count tokens
GRACE = 1.0  # seconds after the deadline for a batch's thread to return its results
# values of finish_reason: of a reply that is not complete, and of one that was filtered
CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
WITHHELD = frozenset({"content_filter", "safety", "prohibited_content", "blocklist", "recitation"})
FILTER_FIELDS = ("prompt_filter_results", "prompt_feedback", "promptFeedback")  # of a reply without choices
BYTES_PER_TOKEN = 8  # more than tokenizers reach in any language
CUT_PROMPT_SHARE = 0.8  # counted tokens, relative to the fewest that a prompt can have, below which it was cut
# parts of the names of models that are not for chats
OTHER_NAME = re.compile(
    r"embed|rerank|whisper|moderation|transcri|diffusion|dall-?e|speech|(babbage|davinci)-00|turbo-instruct"
    r"|(?<![a-z0-9])(tts|stt|asr|bge|gte|e5|clip|siglip|colbert|minilm|mpnet|guard|audio|image|video)(?![a-z])"
)


class EndpointModel:
    """A LanguageModel at an address.  Thread-safe; each batch has its own connections."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._model, self.choice = address.model, ""
        self.is_gone = False  # the endpoint no longer has the model that it listed: another run may use the next one
        # purpose of a request -> index into STRUCTURES that succeeded; a server may refuse one schema and accept another
        self._proven: dict[str, int] = {}
        self._limit, self._temperature = "max_tokens", True

    def __repr__(self) -> str:
        return f"EndpointModel({self.address.url!r}, {self.address.model!r})"

    @property
    def name(self) -> str:
        return f"{self._model or 'language model'} at {urlsplit(self.address.url).netloc}"

    @property
    def about(self) -> Mapping[str, Any]:
        return {"endpoint": self.address.url, "model": self._model}

    def connect(self) -> None:
        """Lists the endpoint's models and uses the first that can chat if none is set.  Raises LanguageModelError when the endpoint can't be
        reached or lists none."""
        if self._model:
            return

        async def ask() -> dict[str, Any]:
            async with self.client() as client, asyncio.timeout(min(10.0, self.address.timeout)):
                return await self._json(client, "GET", "/models", None)

        thread = ThreadPoolExecutor(1)  # the caller may have an event loop of its own
        try:
            listing = thread.submit(asyncio.run, ask()).result(min(10.0, self.address.timeout) + GRACE)
        except Exception as error:
            problem = "it did not answer in time" if isinstance(error, TimeoutError) else self.clean(error)
            problem = f"HTTP {error.status}" if isinstance(error, StatusError) else problem
            raise LanguageModelError(
                f"the language model's endpoint can't be asked for its models: {problem}; set AMBISCOPE_LM_MODEL, or start it"
            ) from None
        finally:
            thread.shutdown(wait=False)
        rows = listing.get("data")
        models = [name for row in rows if isinstance(name := _mapping(row).get("id"), str)] if isinstance(rows, list) else []
        if not models:
            raise LanguageModelError(f"the endpoint {self.address.url} lists no model; set AMBISCOPE_LM_MODEL")
        chat_models = [name for name in models if not OTHER_NAME.search(name.lower())]
        if not chat_models:
            raise LanguageModelError(
                f"the endpoint {self.address.url} lists no model for chats ({self.clean(', '.join(models))}); "
                "set AMBISCOPE_LM_MODEL if one of them is"
            )
        self._model = chat_models[0][:200]
        self.choice = f"the model '{self.clean(self._model, 80)}' is the first one for chats that the endpoint lists; set AMBISCOPE_LM_MODEL to use another"

    def clean(self, message: object, limit: int = 200) -> str:
        """An error message in one line, without the key and line markup."""
        text = str(message)
        if self.address.key:
            text = text.replace(self.address.key, "***")
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:limit]

    # ------------------------------------------------------------ a batch

    def stream(
        self, requests: Sequence[Request], deadline: float, cancelled: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[int, Completion]]:
        """See core.models.language.roles.LanguageModel.  Calls run in their own thread, at most `concurrency` at a time."""
        if not requests:
            return
        ready: queue.Queue[tuple[int, Completion]] = queue.Queue()
        batch = Batch(self, requests, deadline, lambda i, c: ready.put((i, c)))
        threading.Thread(target=batch.work, name="language-model", daemon=True).start()
        waiting = dict.fromkeys(range(len(requests)))
        try:
            while waiting:
                if cancelled():
                    error = STOPPED
                    break
                if time.monotonic() > deadline + GRACE:
                    error = TOO_LATE
                    break
                with contextlib.suppress(queue.Empty):
                    index, completion = ready.get(timeout=0.05)
                    waiting.pop(index, None)
                    yield index, completion
            else:
                return
            for index in waiting:
                yield index, Completion(error=error)
        finally:
            batch.stop()

    def client(self) -> httpx.AsyncClient:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "ambiscope"}
        if self.address.key:
            headers["Authorization"] = f"Bearer {self.address.key}"
        return httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(self.address.timeout, connect=min(10.0, self.address.timeout)),
            limits=httpx.Limits(max_connections=self.address.concurrency),
            follow_redirects=False,
            trust_env=False,
            verify=self._ssl if self.address.url.startswith("https") else False,
        )

    @cached_property  # takes long to make
    def _ssl(self) -> Any:
        return httpx.create_ssl_context(trust_env=False)

    # ------------------------------------------------------------ one call

    async def _json(self, client: httpx.AsyncClient, method: str, path: str, body: Any) -> dict[str, Any]:
        """Raises StatusError for a status other than 200, CallError for anything but a JSON object."""
        trace = {"trace": self._connected} if self.address.key and self.address.url.startswith("http:") else {}
        async with client.stream(method, self.address.url + path, json=body, extensions=trace) as response:
            if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
                raise CallError("the endpoint sent compressed data, which was not requested")
            data = bytearray()
            async for block in response.aiter_raw():
                data += block
                if len(data) > self.address.max_bytes:
                    raise CallError(
                        f"the endpoint's answer is longer than {self.address.max_bytes // 1024} KiB (AMBISCOPE_LM_MAX_RESPONSE_KB)"
                    )
        text = data.decode("utf-8", "replace")
        if response.status_code != 200:
            raise StatusError(response.status_code, text, response.headers.get("retry-after", ""))
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

    async def _connected(self, event: str, details: Mapping[str, Any]) -> None:
        """Called by httpx with a new connection before anything is sent: a host name may resolve to a different address each time.

        Raises CallError where the key would go unencrypted to an address that is not near.
        """
        if event != "connection.connect_tcp.complete":
            return
        stream = details["return_value"]
        peer = stream.get_extra_info("server_addr")
        if not near(str(peer[0])):
            await stream.aclose()
            raise CallError(f"the key would be sent unencrypted to {peer[0]}, the address of AMBISCOPE_LM_URL; use https")

    def body(self, request: Request, structure: int) -> dict[str, Any]:
        out: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": m.role, "content": m.text} for m in request.messages],
            self._limit: request.max_tokens,
        }
        if self._temperature:
            out["temperature"] = 0
        if request.schema is not None and STRUCTURES[structure] == "json_schema":
            json_schema = {"name": "answer", "schema": strict(request.schema), "strict": True}
            out["response_format"] = {"type": "json_schema", "json_schema": json_schema}
        elif request.schema is not None and STRUCTURES[structure] == "json_object":
            out["response_format"] = {"type": "json_object", "schema": strict(request.schema)}
        return out

    async def ask(self, client: httpx.AsyncClient, request: Request) -> dict[str, Any]:
        """One call, repeated with fewer parameters if the server refuses some.  Raises StatusError, CallError, httpx errors."""
        structure, refusals = self._proven.get(request.purpose, 0), 0
        while True:
            limit, temperature = self._limit, self._temperature  # for this call: other calls may change them
            try:
                reply = await self._json(client, "POST", "/chat/completions", self.body(request, structure))
            except StatusError as error:
                self.is_gone |= error.status == 404 and not self.address.model
                refusals += 1
                if error.status not in PARAMETER_REFUSALS or refusals > 4:
                    raise
                if "max_completion_tokens" in error.text and limit == "max_tokens":
                    self._limit = "max_completion_tokens"
                elif "temperature" in error.text and temperature:
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
        estimate = sum(len(m.text) for m in request.messages) // CHARS_PER_TOKEN
        completion = Completion(
            text=text,
            prompt_tokens=_count(usage.get("prompt_tokens"), estimate),
            completion_tokens=_count(usage.get("completion_tokens"), len(text) // CHARS_PER_TOKEN),
            seconds=seconds,
            warning=_truncation(usage, request),
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


def parse_completion(completion: Completion, request: Request) -> Completion:
    """The completion with the parsed object, or with the reason why there is none.  A reply that its limit cut is no answer even where it can
    be read: what is missing may be half of a name, or the other half of a list."""
    parsed, text, problem = None, completion.text, ""
    if request.schema is None:
        text = without_reasoning(completion.text)
        problem = "" if text.strip() else empty(completion.text)
    else:
        try:
            parsed = read_object(completion.text, request.schema)
        except FormatError as error:
            problem = str(error)
    if completion.cut:
        limit = f"the reply was cut off at its limit of {request.max_tokens} tokens; raise AMBISCOPE_LM_MAX_TOKENS"
        return replace(completion, text=text, error=f"{problem}: {limit}" if problem else limit)
    return replace(completion, text=text, parsed=parsed, error=problem)


def _text(content: Any) -> str:
    """The text of a message: a string, or a list of parts, of which those that reason are left out."""
    parts = content if isinstance(content, list) else [content] if isinstance(content, str) else []
    texts = (p.get("text") if isinstance(p, dict) and p.get("type", "text") in ("text", "output_text") else p for p in parts)
    return "".join(t for t in texts if isinstance(t, str))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _truncation(usage: Mapping[str, Any], request: Request) -> str:
    """A warning where the endpoint counted far fewer tokens than the prompt has, which it then cut without an error, as Ollama does.

    The bound is conservative: no token spans two words, and for scripts without spaces a token is taken to be long.  Tokens that an endpoint
    reports as cached are added, as some count them apart.
    """
    tokens = _count(usage.get("prompt_tokens"), 0)
    if not tokens:
        return ""
    tokens += _count(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens"), 0)
    # tokenizers make one token of a run of one character
    texts = [re.sub(r"(.)\1{3,}", r"\1\1\1", message.text) for message in request.messages]
    minimum = sum(max(len(text.split()), len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN) for text in texts)
    if tokens >= CUT_PROMPT_SHARE * minimum:
        return ""
    return (
        f"the endpoint counted {tokens} tokens of a prompt that has at least {minimum}: it cut the prompt; raise its context length "
        "(Ollama: OLLAMA_CONTEXT_LENGTH), or read fewer passages"
    )


def _count(value: Any, estimate: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else estimate
