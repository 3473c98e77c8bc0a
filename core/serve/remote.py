"""The engine of an app that asks a service: the interface of core.engine.Engine, with the work done by the service."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core import types as t
from core.engine import SystemStatus
from core.errors import CancelledError, FormatError, InputError, NotFoundError, ServiceError
from core.retrieval.library import CorpusInfo
from core.serve.connection import Connection
from core.serve.protocol import SYSTEM
from core.serve.replies import (
    CorporaReply,
    EmbedReply,
    HealthReply,
    PassageReply,
    PassagesReply,
    SearchReply,
    SystemReply,
    SystemsReply,
)
from core.settings import Settings
from core.systems.base.asking import Asking
from core.systems.base.options import Options
from core.systems.base.system import check_question
from core.trace import event_from_json, from_json, to_json

CACHE_SECONDS = 2.0  # of the list of corpora: a page needs it several times
MAX_TEXTS = 100  # of one request


class RemoteEngine(Asking):
    """Thread-safe.  Raises ServiceError if the service can't be reached, and otherwise what an Engine raises."""

    needs_libraries = False

    def __init__(self, settings: Settings) -> None:
        self.settings, self._service = settings, Connection(settings)
        self.remote_notice = (
            f"This app asks the service at {self._service.url}. Build and delete corpora, and train models, on its machine."
        )
        self.library = RemoteLibrary(self._service, self.remote_notice)

    def statuses(self) -> Sequence[SystemStatus]:
        return self._service.get("/v1/systems", SystemsReply).systems

    def corpus(self, name: str | None = None, progress: object = None) -> RemoteCorpus:
        """Raises NotFoundError."""
        name = name or self.settings.corpus
        if name not in (names := self.library.names()):
            raise NotFoundError(
                f"no corpus is named '{name[:80]}' at {self._service.url}; there are: {', '.join(names) or 'none'}"
            )
        return RemoteCorpus(name, self._service)

    def forget(self, name: str) -> None:
        """Does nothing, because nothing is open here."""

    def system(
        self,
        name: str | None = None,
        corpus: str | None = None,
        options: Options | None = None,
        cancelled: Callable[[], bool] | None = None,
        own_passages: bool = False,
    ) -> RemoteSystem:
        options = options or self.options()
        request = {
            "system": name or self.settings.system,
            "corpus": corpus or self.settings.corpus,
            **{key: value for key, value in asdict(options).items() if key != "extra"},
            "options": options.extra,
            "own_passages": own_passages,
        }
        info = self._service.post("/v1/system", request, SystemReply).info
        return RemoteSystem(info, request, self._service, self.settings, cancelled or (lambda: False))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (n, d) of the service's encoder."""
        parts = []
        for start in range(0, len(texts), MAX_TEXTS):
            batch = list(texts[start : start + MAX_TEXTS])
            rows = self._service.post("/v1/embed", {"texts": batch}, EmbedReply).vectors
            if len(rows) != len(batch) or len({len(row) for row in rows}) > 1:
                raise self._service.unreadable(f"{len(rows)} vectors for {len(batch)} texts, or some of another length")
            parts.append(np.asarray(rows, np.float32))
        if len({part.shape[1] for part in parts}) > 1:
            raise self._service.unreadable("vectors of several lengths")
        return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)

    def warm(self, corpus: str | None = None) -> None:
        """Checks that the service answers."""
        self._service.get("/health", HealthReply)


class RemoteLibrary:
    def __init__(self, service: Connection, elsewhere: str) -> None:
        self._service, self._elsewhere = service, elsewhere
        self._cache: tuple[float, CorporaReply] | None = None

    def _corpora(self) -> CorporaReply:
        if self._cache is None or time.monotonic() - self._cache[0] > CACHE_SECONDS:
            self._cache = time.monotonic(), self._service.get("/v1/corpora", CorporaReply)
        return self._cache[1]

    def names(self) -> list[str]:
        return list(self._corpora().names)

    def list(self) -> list[CorpusInfo]:
        return list(self._corpora().corpora)

    def create(self, *_: Any, **__: Any) -> Any:
        raise InputError(self._elsewhere)

    def delete(self, name: str) -> None:
        raise InputError(self._elsewhere)


class RemoteCorpus:
    """A corpus of the service.  `store` is the corpus itself, which returns passages by id."""

    def __init__(self, name: str, service: Connection) -> None:
        self.name, self.store, self._service = name, self, service
        self._path = f"/v1/corpora/{name}"

    @cached_property
    def _total(self) -> int:
        return self._page(0, 1).total

    def __len__(self) -> int:
        return self._total

    def _page(self, offset: int, limit: int) -> PassagesReply:
        page = self._service.get(f"{self._path}/passages", PassagesReply, offset=offset, limit=limit)
        if page.total < 0:
            raise self._service.unreadable(f"a corpus of {page.total} passages")
        return page

    def passages(self, offset: int = 0, limit: int = 50) -> list[t.Passage]:
        return list(self._page(offset, limit).passages)

    def get(self, passage_id: str) -> t.Passage:
        """Raises NotFoundError for an unknown id."""
        return self._service.get(f"{self._path}/passage", PassageReply, id=passage_id).passage

    def search(self, query: str, k: int, mode: str | None = None) -> list[t.RetrievedPassage]:
        body = {"query": query, "corpus": self.name, "k": k, "mode": mode}
        return list(self._service.post("/v1/search", body, SearchReply).passages)


@dataclass(eq=False)
class RemoteSystem:
    """A system of the service, which passes on its events as they happen there."""

    info: t.SystemInfo
    _request: dict[str, Any]  # of /v1/system, and with a question of /v1/ask
    _service: Connection
    _settings: Settings
    _cancelled: Callable[[], bool]

    def run(self, question: t.Question) -> Iterator[t.Event]:
        """Raises InputError for a bad question, and what the service reports."""
        question = check_question(question, self._settings.max_question_chars)
        body = {
            **self._request,
            "question": question.text,
            "id": question.id,
            "pinned": question.pinned,
            "banned": question.banned,
        }
        if question.passages is not None:
            body["passages"] = to_json(question.passages)
        start, proposed = time.perf_counter(), 0
        events = self._service.events("/v1/ask", body, self._cancelled)
        try:
            for name, row in events:
                if name == SYSTEM:
                    # a question that brings passages among others that bring none is asked without the corpus of this system
                    if self._request["own_passages"] == (question.passages is not None):
                        self.info = from_json(t.SystemInfo, row)
                    continue
                event = event_from_json(row)
                if isinstance(event, t.InterpretationProposed):
                    proposed += 1
                elif isinstance(event, t.InterpretationsClustered) and (
                    unknown := [p.index for p in event.placed if not 0 <= p.index < proposed]
                ):
                    raise FormatError(f"interpretation {unknown[0]} of {proposed} was never proposed", field="placed")
                yield event
                if isinstance(event, t.Finished):
                    return
        except CancelledError:
            if not self._cancelled():
                raise
            yield t.Finished(time.perf_counter() - start, "stopped by a person")
            return
        except FormatError as error:
            raise self._service.unreadable(f"an event that cannot be read ({error})") from None
        raise ServiceError(f"the connection to the service at {self._service.url} ended within an answer; ask again")
