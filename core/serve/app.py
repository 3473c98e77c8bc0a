"""The routes of the service over one engine."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from core import __version__
from core import types as t
from core.engine import Engine
from core.errors import AmbiscopeError, CancelledError, InputError
from core.evaluation.prediction_json import prediction_json
from core.serve import protocol, replies
from core.serve.chat import ChatCompletionHead, content, model_list
from core.serve.forms import MAX_PASSAGES, NAME_SCHEMA, AskForm, ChatForm, EmbedForm, SearchForm, SystemForm
from core.serve.guard import Guard
from core.serve.metrics import Metrics
from core.serve.pool import Job, Pool
from core.serve.protocol import RefusedError
from core.systems.base.system import one_line
from core.trace import fold, to_json

log = logging.getLogger("ambiscope.serve")
LOOKUP_THREADS = 2  # for what is quick: searches, passages, lists
LOOKUP_SECONDS = 30.0
LOADING_SECONDS = 8.0  # that a request waits while the models are being loaded
CorpusName = Annotated[str, Path(json_schema_extra=NAME_SCHEMA)]
CLIENT_CLOSED = 499  # nginx's code for a client that left; nobody receives it

ANSWER = {
    "question": "Who directed A Star Is Born?",
    "system": "ambiscope",
    "answers": [
        {
            "text": "George Cukor",
            "probability": 0.93,
            "passages": ["film-12"],
            "question": "Who directed the 1954 film A Star Is Born?",
            "label": "1954 film",
            "round_trip": True,
            "evidence": [{"passage_id": "film-12", "start": 31, "end": 43, "text": "George Cukor"}],
        }
    ],
    "seconds": 1.8,
    "waited": 0.1,
    "api": protocol.API_VERSION,
    "version": __version__,
}
EVENTS = (
    'event: system\ndata: {"name": "ambiscope", "corpus": "starter", ...}\n\n'
    'event: PassagesRetrieved\ndata: {"event": "PassagesRetrieved", "passages": [...], "seconds": 0.02, "query": "..."}\n\n'
    'event: Finished\ndata: {"event": "Finished", "seconds": 1.8, "why": "no further answer is likely"}\n\n'
)
FAILS: dict[int | str, dict[str, Any]] = {
    status: {"description": description, "model": replies.ErrorReply}
    for status, description in (
        (400, "the connection ended within the request"),
        (401, "no key, or a wrong one"),
        (403, "without a key, under a name that is not this machine's"),
        (404, "no system, corpus or passage of this name"),
        (408, "the request did not arrive in time"),
        (413, "the request is too large"),
        (422, "the request is wrong; the message says what to correct"),
        (429, "the queue is full; Retry-After says when to ask again"),
        (500, "a fault; the service's log has the details"),
        (502, "a language model that the service asks has failed"),
        (503, "the models are being loaded, or the service is stopping"),
        (504, "not answered before the deadline"),
    )
}


class Json(JSONResponse):
    """Escapes everything outside ASCII, because half of a surrogate pair, which a request may contain, has no UTF-8."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode()


def reply(**body: Any) -> Json:
    return Json(protocol.stamped(body))


class ClientLeftError(Exception):
    """The client no longer waits for the reply."""


class Service:
    """The engine with two pools: one for questions, one for quick lookups."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.settings, self.metrics = engine, engine.settings, Metrics()
        self.questions = Pool("question", self.settings.serve_workers, self.settings.serve_queue, self.metrics.queue.observe)
        self.lookups = Pool("lookup", LOOKUP_THREADS, self.settings.serve_queue)
        self.metrics.watch(self.questions)
        self.ready = threading.Event()  # the models are loaded, or will be when they are needed
        self.problem = ""  # why they could not be

    def warm(self) -> None:
        """Loads the models in a separate thread."""
        try:
            self.engine.warm()
        except Exception as error:
            self.problem = str(reportable(error))
            log.warning("the models could not be loaded: %s", self.problem)
        finally:
            self.ready.set()

    def stop(self) -> None:
        """Gives up all running and waiting work.  Called in the event loop."""
        for pool in (self.questions, self.lookups):
            pool.stop()

    # ------------------------------------------------------------ questions

    def start(self, form: AskForm) -> Job:
        """Raises InputError for a bad question, RefusedError."""
        question, options = form.to_question(self.settings), form.to_options(self.engine)

        def work(job: Job) -> None:
            while not self.ready.wait(0.1):
                if job.cancelled():
                    return
            own_passages = form.own_passages or question.passages is not None
            system = self.engine.system(form.system, form.corpus, options, job.cancelled, own_passages=own_passages)
            job.put(system.info)
            for event in system.run(question):
                job.put(event)

        return self.questions.start(work, form.seconds(self.settings))

    async def results(self, job: Job) -> AsyncGenerator[Any, None]:
        """The results of a question's job, preceded by its positions in the queue.  Counts how the job ended, and stops it when
        the results are no longer read."""
        name, outcome, answered = "", "left", False
        clock = asyncio.get_running_loop().time
        start = clock()
        try:
            if position := self.questions.position(job):
                yield t.QuestionQueued(position, self.questions.running)
            async for result in job.results():
                if position and (now := self.questions.position(job)) != position:
                    position = now
                    yield t.QuestionQueued(position, self.questions.running - (position == 0))
                if isinstance(result, t.SystemInfo):
                    name = result.name
                elif isinstance(result, t.StepFinished) and result.answer is not None and not answered:
                    answered = True
                    self.metrics.first_answer.observe(clock() - start)
                elif isinstance(result, t.Finished):  # a reader of events may leave at this one
                    outcome = "answered"
                    self.metrics.answer_set.observe(clock() - start)
                yield result
        except AmbiscopeError as error:
            outcome = str(protocol.status_of(error))
            raise
        except Exception as error:
            outcome = "failed"
            raise reportable(error) from error
        finally:
            job.stop()
            self.metrics.questions.labels(name, outcome).inc()

    async def prediction(self, form: AskForm, job: Job, request: Request | None = None) -> t.Prediction:
        """The folded events of a job.  Raises ClientLeftError, within a second, if the client of `request` has left."""
        info, events = t.SystemInfo(""), list[t.Event]()
        results = self.results(job)
        try:
            async for result in results:
                if result is None:
                    if request is not None and await request.is_disconnected():
                        raise ClientLeftError
                elif isinstance(result, t.SystemInfo):
                    info = result
                else:
                    events.append(result)
        finally:
            await results.aclose()
        return fold(form.to_question(self.settings), info, events)

    async def ask(self, form: AskForm, request: Request) -> Response:
        """The complete answer set."""
        job = self.start(form)
        body = prediction_json(await self.prediction(form, job, request))
        if form.mode == "clarify" and body["clarification"]:
            body |= {"answers": [], "steps": []}
        return reply(**body, waited=(job.started or job.submitted) - job.submitted)

    async def chat(self, form: ChatForm, request: Request) -> Response:
        """The answer set in OpenAI's format, as one reply or in chunks."""
        ask_form = form.to_ask_form()
        job, completion = self.start(ask_form), ChatCompletionHead(form.model)
        passages_url = f"{str(request.base_url).rstrip('/')}/v1/corpora/{ask_form.corpus or self.settings.corpus}/passage"

        async def chunks() -> AsyncIterator[bytes]:
            yield protocol.data(completion.first())
            pending = asyncio.ensure_future(self.prediction(ask_form, job))
            try:
                while not (await asyncio.wait([pending], timeout=protocol.ALIVE_SECONDS))[0]:
                    yield protocol.KEEP_ALIVE
                for chunk in completion.chunks(*content(pending.result(), passages_url)):
                    yield protocol.data(chunk)
                yield b"data: [DONE]\n\n"
            except Exception as error:
                yield protocol.data(protocol.error_to_json(reportable(error)))
            finally:
                pending.cancel()

        if form.stream:
            return StreamingResponse(chunks(), media_type=protocol.STREAM_TYPE, headers={"x-accel-buffering": "no"})
        prediction = await self.prediction(ask_form, job, request)
        return Json(completion.complete(*content(prediction, passages_url)))

    async def stream(self, job: Job) -> AsyncIterator[bytes]:
        """Server-sent events as they happen."""
        results = self.results(job)
        try:
            yield protocol.KEEP_ALIVE  # the headers go out at once
            async for result in results:
                if result is None:
                    yield protocol.KEEP_ALIVE
                elif isinstance(result, t.SystemInfo):
                    yield protocol.message(protocol.SYSTEM, protocol.stamped(to_json(result)))
                else:
                    yield protocol.message(type(result).__name__, to_json(result))
        except Exception as error:
            yield protocol.message(protocol.ERROR, protocol.error_to_json(reportable(error)))
        finally:
            await results.aclose()

    # ------------------------------------------------------------ lookups

    async def look_up(self, call: Callable[[], Any], needs_models: bool = False) -> Any:
        """Runs `call` in one of the lookup threads and returns its result.  `needs_models` waits until they are loaded.  Raises
        what `call` raises, and RefusedError."""
        deadline = time.monotonic() + LOADING_SECONDS
        while needs_models and not self.ready.is_set():
            if time.monotonic() > deadline:
                raise RefusedError(503, "the service is still loading its models; ask again in a few seconds", 5)
            await asyncio.sleep(0.1)
        job = self.lookups.start(lambda job: job.put(call()), LOOKUP_SECONDS)
        try:
            async for result in job.results():
                if result is not None:
                    return result
        except AmbiscopeError:
            raise
        except Exception as error:
            raise reportable(error) from error
        finally:
            job.stop()
        raise CancelledError("the service is stopping")


def reportable(error: Exception) -> AmbiscopeError:
    """The error to report to a caller.  An unexpected one is replaced by a number under which the log has it."""
    if isinstance(error, AmbiscopeError):
        return error
    if isinstance(error, MemoryError):
        return AmbiscopeError("there is not enough memory; read fewer passages")
    number = uuid.uuid4().hex[:8]
    log.error("error %s", number, exc_info=error)
    return AmbiscopeError(
        f"an unexpected error occurred ({type(error).__name__}); the service's log has the details under {number}"
    )


def make_app(engine: Engine) -> FastAPI:
    """The service over an engine; its Service is `app.state.service`."""
    service, settings = Service(engine), engine.settings

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=service.warm, name="warm", daemon=True).start()
        yield
        service.stop()

    app = FastAPI(
        title="Ambiscope",
        version=__version__,
        description="Answers to ambiguous questions, with the passage behind each.",
        docs_url=None,  # their pages load scripts of another host
        redoc_url=None,
        lifespan=lifespan,
        responses=FAILS,
        default_response_class=Json,
    )
    app.state.service = service

    def count_refusal(status: int) -> None:
        service.metrics.refused.labels(str(status)).inc()

    @app.exception_handler(AmbiscopeError)
    async def failed(request: Request, error: AmbiscopeError) -> Response:
        headers = {}
        if isinstance(error, RefusedError):
            count_refusal(error.status)
            if error.retry_after:
                headers["retry-after"] = str(error.retry_after)
        return Json(protocol.error_to_json(error), protocol.status_of(error), headers)

    @app.exception_handler(ClientLeftError)
    async def client_left(request: Request, error: ClientLeftError) -> Response:
        return Response(status_code=CLIENT_CLOSED)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        problems = (f"{'.'.join(str(p) for p in e['loc'][1:]) or 'the request'}: {e['msg']}" for e in error.errors()[:5])
        return await failed(request, InputError("; ".join(problems)))

    @app.exception_handler(HTTPException)
    async def no_route(request: Request, error: HTTPException) -> Response:
        problem = f"{request.method} {request.url.path}: {error.detail}; see /openapi.json"
        response = await failed(request, RefusedError(error.status_code, problem))
        response.headers.update(error.headers or {})  # the methods that a route allows
        return response

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> Response:
        response = await failed(request, reportable(error))
        # Starlette answers this outside the guard, which otherwise sets the header
        response.headers[protocol.API_HEADER] = str(protocol.API_VERSION)
        return response

    # ------------------------------------------------------------ questions

    @app.post(
        "/v1/ask",
        response_model=replies.AskReply,
        responses={
            200: {
                "content": {
                    "application/json": {"example": ANSWER},
                    protocol.STREAM_TYPE: {"schema": {"type": "string"}, "example": EVENTS},
                }
            }
        },
        summary="All answers to a question; as events while they are found, where the client accepts text/event-stream",
    )
    async def ask(form: AskForm, request: Request) -> Response:
        if protocol.STREAM_TYPE not in request.headers.get("accept", ""):
            return await service.ask(form, request)
        job = service.start(form)
        return StreamingResponse(service.stream(job), media_type=protocol.STREAM_TYPE, headers={"x-accel-buffering": "no"})

    @app.post(
        "/v1/chat/completions",
        response_model=replies.ChatReply,
        summary="The answer set as a chat reply in OpenAI's format, with citations as annotations",
    )
    async def chat(form: ChatForm, request: Request) -> Response:
        return await service.chat(form, request)

    @app.get("/v1/models", response_model=replies.ModelsReply, summary="The systems that can run here, in OpenAI's format")
    async def models() -> Response:
        rows = await service.look_up(engine.statuses)
        return Json(model_list([row.name for row in rows if row.ready]))

    @app.post(
        "/v1/system",
        response_model=replies.SystemReply,
        summary="What a system would note with its answers: settings, corpus, weights",
    )
    async def system(form: SystemForm) -> Response:
        options = form.to_options(engine)
        info = await service.look_up(
            lambda: engine.system(form.system, form.corpus, options, own_passages=form.own_passages).info, needs_models=True
        )
        return reply(info=to_json(info))

    # ------------------------------------------------------------ systems and corpora

    @app.get(
        "/v1/systems", response_model=replies.SystemsReply, summary="Every system, what it needs, and whether it can run here"
    )
    async def systems() -> Response:
        rows = await service.look_up(engine.statuses)
        return reply(systems=[asdict(row) for row in rows])

    @app.get(
        "/v1/corpora",
        response_model=replies.CorporaReply,
        summary="The corpora; `names` has the starter corpus even before its first use",
    )
    async def corpora() -> Response:
        names, infos = await service.look_up(lambda: (engine.library.names(), engine.library.list()))
        return reply(names=names, corpora=[asdict(info) for info in infos])

    @app.get(
        "/v1/corpora/{corpus}/passages", response_model=replies.PassagesReply, summary="Some passages of a corpus, in its order"
    )
    async def passages(
        corpus: CorpusName, offset: int = Query(0, ge=0), limit: int = Query(50, ge=1, le=MAX_PASSAGES)
    ) -> Response:
        def read() -> dict[str, Any]:
            source = engine.corpus(corpus)
            rows = source.passages(offset, limit)
            return {"total": len(source), "digest": source.digest, "passages": [to_json(p) for p in rows]}

        return reply(**await service.look_up(read))

    @app.get("/v1/corpora/{corpus}/passage", response_model=replies.PassageReply, summary="One passage by its id")
    async def passage(corpus: CorpusName, id: str) -> Response:
        row = await service.look_up(lambda: engine.corpus(corpus).store.get(id))
        return reply(passage=to_json(row))

    @app.post("/v1/search", response_model=replies.SearchReply, summary="The best passages for a query")
    async def search(form: SearchForm) -> Response:
        query = one_line(form.query, "the query", settings.max_question_chars)
        hits = await service.look_up(lambda: engine.corpus(form.corpus).search(query, form.k, form.mode), needs_models=True)
        return reply(passages=[to_json(p) for p in hits])

    @app.post("/v1/embed", response_model=replies.EmbedReply, summary="Unit vectors of texts, by the encoder of the corpora")
    async def embed(form: EmbedForm) -> Response:
        vectors = await service.look_up(lambda: engine.embed(form.texts), needs_models=True)
        return reply(vectors=vectors.tolist())

    # ------------------------------------------------------------ the service itself

    @app.get("/health", response_model=replies.HealthReply, summary="Whether it runs, and what waits; needs no key")
    async def health() -> Response:
        status = "ok" if service.ready.is_set() else "loading"
        pool = service.questions
        # who has no key is told that there is a problem, not what it reveals about this machine
        problem = "the models could not be loaded; see the log" if service.problem and settings.serve_key else service.problem
        return reply(status=status, problem=problem, waiting=pool.waiting, running=pool.running)

    in_json = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorReply"}}}
    fails = {status: {"description": row["description"], "content": in_json} for status, row in FAILS.items()}

    @app.get("/metrics", response_class=PlainTextResponse, responses=fails, summary="Figures for Prometheus")
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    app.add_middleware(Guard, settings=settings, on_refusal=count_refusal)
    if origins := [o.strip() for o in settings.serve_origins.split(",") if o.strip()]:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )
    return app
