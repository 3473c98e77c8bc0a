"""The object that holds everything expensive to load (corpora, encoder, models) and builds systems, shared by pages and the
command line.

Thread-safe: everything is loaded once, and each model serves one caller at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.errors import AmbiscopeError, InputError
from core.installation.requirements import check
from core.retrieval.build import BuildProgress, no_progress
from core.retrieval.library import Corpus, CorpusLibrary
from core.settings import Settings
from core.systems import SYSTEMS, build, is_bundled, mechanism_only, passages_to_read, speed_of
from core.systems.base.asking import Asking
from core.systems.base.options import Options
from core.systems.base.system import SystemParts
from core.types import AnsweringSystem, Passage


@dataclass(frozen=True)
class SystemStatus:
    name: str
    summary: str
    needs: tuple[str, ...]
    source: str
    ready: bool
    why_not: str = ""
    expect: str = ""
    title: str = ""
    speed: str = ""
    mechanism_only: str = ""
    missing: str = ""
    origin: str = ""  # the plugin that it comes from; empty for ours


class Engine(Asking):
    """`Engine()` uses the environment's settings; `Engine(corpus="mine", threads=2)` overrides some (docs/settings.md names
    them).

    core.serve.remote.RemoteEngine offers the same to the pages.
    """

    needs_libraries = True  # to search and to run, this process needs torch and FAISS
    remote_notice = ""  # why corpora are not built and models not trained here

    def __init__(self, settings: Settings | None = None, **changes: object) -> None:
        """Raises InputError for an unknown setting, or a value that it does not take."""
        if settings is not None and changes:
            raise InputError(f"an engine takes settings or changes ({', '.join(changes)}), not both")
        self.settings = settings = settings or Settings.changed(**changes)
        self.library = CorpusLibrary(settings)
        self._corpora: dict[str, Corpus] = {}
        self._lock = threading.Lock()
        if settings.threads:
            import torch

            torch.set_num_threads(settings.threads)

    def corpus(self, name: str | None = None, progress: BuildProgress = no_progress) -> Corpus:
        """Opens a corpus once, and again after it has been rebuilt.  Raises NotFoundError, IndexMismatchError."""
        name = name or self.settings.corpus
        with self._lock:
            corpus = self._corpora.get(name)
            if corpus is None or corpus.by_words_only or not self.library.is_current(corpus):
                corpus = self._corpora[name] = self.library.open(name, progress)
            return corpus

    def forget(self, name: str) -> None:
        """Drops an open corpus before it is deleted."""
        with self._lock:
            self._corpora.pop(name, None)

    def system(
        self,
        name: str | None = None,
        corpus: str | None = None,
        options: Options | None = None,
        cancelled: Callable[[], bool] | None = None,
        own_passages: bool = False,
    ) -> AnsweringSystem:
        """A system by name over a corpus; `own_passages`: questions bring their own passages, and no corpus is opened.

        Raises UnknownNameError, NotFoundError, InputError for options that do not fit the corpus, CheckpointError.
        """
        options = options or self.options()
        name = name or self.settings.system
        SYSTEMS[name]  # an unknown name fails before a corpus is opened
        source = None if own_passages else self.corpus(corpus)
        options = replace(options, top_k=self._to_read(name, options.top_k, source))
        parts = SystemParts(
            self.settings,
            source,
            source.name if source else "",
            source.digest if source else "",
            cancelled or (lambda: False),
            {"encoder": self.library.encoder_name}  # of questions, and of passages that they bring
            | ({"retriever": self.settings.retriever, "index_kind": source.manifest.kind} if source else {}),
            similarity=self.similarity,
            embed=self.embed,
        )
        return build(name, parts, options)

    def _to_read(self, system: str, top_k: int | None, corpus: Corpus | None) -> int:
        """The number of passages a system reads: `top_k`, else its default, at most the whole corpus.  Raises InputError for a larger `top_k`."""
        default = passages_to_read(system, self.settings.top_k)
        if corpus is None:
            return top_k or default
        if top_k is not None and top_k > len(corpus):
            raise InputError(
                f"{top_k} passages were requested, but corpus '{corpus.name}' has only {len(corpus)}; lower --top-k"
            )
        return top_k or max(1, min(default, len(corpus)))

    def embed(self, texts: Sequence[str]) -> Any:
        """Unit vectors (n, d); recent ones are cached."""
        return self.library.encoder().encode(texts, "query")

    def similarity(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """Cosine similarities between a question and its own passages.  Raises CheckpointError."""
        from core.models.encoders.sentence_encoder import passage_text

        encoder = self.library.encoder()
        (vector,) = encoder.encode([question], "query")
        return [float(c) for c in encoder.encode([passage_text(p) for p in passages], "passage") @ vector]

    def statuses(self) -> Sequence[SystemStatus]:
        """Every system with its needs, and whether it can run here."""
        return statuses(self.settings)

    def warm(self, corpus: str | None = None) -> None:
        """Loads the default system, its models and the corpus, so that the first question does not wait for them."""
        self.corpus(corpus).warm()
        self.system(corpus=corpus)


def statuses(settings: Settings) -> Sequence[SystemStatus]:
    """Every system with its needs, and whether it can run here.  Looks for files and loads no weights."""
    out = []
    bundled = all(is_bundled(name) for name in (settings.answerer, settings.reader, settings.seq2seq))
    has_language_model = bool(settings.lm_url or settings.lm_local)
    for name, entry in SYSTEMS.items():
        if entry.hidden:
            continue
        reason = ""
        try:
            for need in entry.needs:
                check(need, settings)
        except AmbiscopeError as error:
            reason = str(error)
        out.append(
            SystemStatus(
                name,
                entry.summary,
                entry.needs,
                entry.source,
                not reason,
                reason,
                entry.expect,
                entry.title,
                speed_of(name),
                mechanism_only(name) if bundled else "",
                "" if has_language_model else entry.missing,
                SYSTEMS.origin(name),
            )
        )
    return out
