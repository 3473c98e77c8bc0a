"""Joint passage ranking: a reranker picks complementary passages, and a reader answers from them in one pass.

Source: Min et al. 2021 (JPR), section 3.  A pool is retrieved, `top_k` passages of it are picked by tree decoding (core.retrieval.rerank), and the
per-passage reader answers from the picked ones in one pass.  Rerankers: core.models.ranking.passage_scorers; `trained` is the paper's mechanism at a small size.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Generator
from dataclasses import replace
from typing import Any

from core import types as t
from core.disambiguation.round_trip import ask_each_passage
from core.models.loading.finding import find_checkpoint
from core.models.ranking.passage_network import KIND, JointNetwork, load_joint
from core.models.ranking.passage_scorers import AnswererScorer, ReaderScorer, TrainedScorer
from core.models.span.reader import PassageReader, Readout, load_reader
from core.retrieval.rerank import Scorer, tree_decode
from core.systems.base.base import Options, Parts, read_extra, retrieve
from core.systems.base.candidates import (
    STOPPING,
    answer_events,
    candidates_of,
    check_count,
    check_share,
    read_with,
    selection,
)
from core.systems.base.passage_system import PassageSystem
from core.systems.base.rescoring import ADDITIONS, KEPT_FROM, additions_of
from core.systems.base.stopping import Place, digest_of

KEPT = 8  # cached questions between retrieval and reading
# threshold and diversity: chosen by benchmarks.tuning.thresholds on the practice questions held out from training
DEFAULTS: dict[str, Any] = {
    "reranker": ("trained", "reader", "answerer"),
    "pool": 30.0,  # passages retrieved
    "threshold": 0.03,
    "diversity": 0.9,
    "length_penalty": 1.0,
    "additions": ADDITIONS,
    **STOPPING,
}


class Jpr(PassageSystem):
    def __init__(
        self,
        parts: Parts,
        options: Options,
        reader: PassageReader,
        digest: str,
        answerer: t.BatchAnsweringModel | None = None,
        answerer_digest: str = "",
        joint: tuple[JointNetwork, str] | None = None,
    ) -> None:
        """`answerer`: the model of `reranker: answerer`; `joint`: the network of `reranker: trained`, and the digest of its weights."""
        chosen = read_extra(options, "jpr", DEFAULTS)
        self.pool = check_count("pool", chosen["pool"], 500)
        self.additions = additions_of("jpr", chosen["additions"], parts, (parts.settings.reader, "reader"))
        if self.additions.on:
            chosen["threshold"] = options.extra.get("threshold", KEPT_FROM)
        self.threshold = check_share("threshold", chosen["threshold"])
        self.diversity = check_share("diversity", chosen["diversity"])
        self.beta, self.reader, self.answerer = chosen["length_penalty"], reader, answerer
        self.joint = joint[0] if joint is not None else None
        joint_digest = joint[1] if joint is not None else ""
        self._readouts: OrderedDict[tuple[str, ...], list[Readout]] = OrderedDict()  # by ids of picked passages
        used = dict(chosen)
        if answerer is not None:
            used |= {"answerer": parts.settings.answerer, "answerer_digest": answerer_digest}
        if joint_digest:
            used |= {"joint_digest": joint_digest}
        checkpoint = (parts.settings.reader, digest)
        decides = digest_of(digest, answerer_digest or joint_digest, self.pool, self.diversity, self.beta)
        place = self.additions.place(Place(f"jpr {chosen['reranker']}", "reader", decides))
        self.stopping = selection(chosen, parts.settings.reader, place, self.threshold)
        used |= {**self.stopping.about(), **self.additions.about}
        super().__init__("jpr", parts, options, ask_each_passage(read_with(reader)), checkpoint, used)

    def _rank(self, question: str, pool: tuple[t.RetrievedPassage, ...], k: int) -> list[tuple[int, float, Readout]]:
        """(index in the pool, score, readout) of the picked passages, in the order of picking."""
        texts = [p.passage for p in pool]
        states = None
        if self.joint is None:
            readouts = self.reader.read(question, texts)
        else:
            readouts, states = self.reader.read_states(question, texts)
        self.check_cancelled()
        said = ReaderScorer(readouts, [p.similarity for p in pool], self.diversity)
        scorer: Scorer = said
        if self.joint is not None and states is not None:
            scorer = TrainedScorer(self.joint, states, said)
        elif self.answerer is not None:
            scorer = AnswererScorer(self.answerer, question, pool)
        return [(pick.passage, pick.score, readouts[pick.passage]) for pick in tree_decode(scorer, k, self.beta)]

    def passages(self, question: t.Question) -> t.PassagesRetrieved:
        """The picked passages in order, with the time for retrieval and reranking."""
        started = time.perf_counter()
        k = self.options.passages
        found = retrieve(question, self.parts, max(self.pool, k))
        picked = self._rank(question.text, found.passages, k)
        self._readouts[tuple(found.passages[i].passage.id for i, _, _ in picked)] = [readout for _, _, readout in picked]
        while len(self._readouts) > KEPT:
            self._readouts.popitem(last=False)
        ranked = tuple(replace(found.passages[i], rank=rank, score=score) for rank, (i, score, _) in enumerate(picked, 1))
        return t.PassagesRetrieved(ranked, time.perf_counter() - started, question.text)

    def find(self, question: t.Question, passages: tuple[t.RetrievedPassage, ...]) -> Generator[t.Event, None, str]:
        yield t.StepStarted(1, (), "")
        begun = time.perf_counter()
        # the reader has already read the pool passage by passage
        readouts = self._readouts.pop(tuple(p.passage.id for p in passages), None)
        if readouts is None:  # evicted by other runs
            readouts = self.reader.read(question.text, [p.passage for p in passages])
        candidates = self.additions.weighed(question.text, passages, candidates_of(readouts, "dpr"), readouts)
        kept, shown = self.stopping.keep(candidates, question, self.options.max_answers)
        seconds = time.perf_counter() - begun
        yield from answer_events(kept, shown, len(question.pinned), passages, seconds)
        return f"one pass over {len(passages)} picked passages; {self.stopping.description()}"


def _joint_of(reader: str) -> str:
    """The passage reranker that lies beside a reader's folder, as in checkpoints/; else the bundled one."""
    folder = find_checkpoint(reader, "reader")
    beside = folder.with_name(KIND)
    return str(beside) if (beside / "config.json").exists() else "default"


def build(parts: Parts, options: Options) -> Jpr:
    """Raises InputError for an unknown option, CheckpointError."""
    chosen = read_extra(options, "jpr", DEFAULTS)  # fail before weights are loaded
    settings = parts.settings
    reader, digest = load_reader(settings.reader, settings.device)
    if chosen["reranker"] == "reader":
        return Jpr(parts, options, reader, digest)
    if chosen["reranker"] == "trained":
        return Jpr(parts, options, reader, digest, joint=load_joint(_joint_of(settings.reader), digest))
    from core.models.answering import load_answering

    answerer, answerer_digest = load_answering(settings.answerer, settings.device)
    return Jpr(parts, options, reader, digest, answerer, answerer_digest)
