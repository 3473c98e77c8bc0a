"""Joint passage ranking: a reranker picks complementary passages, and a reader answers from them in one pass.

Source: Min et al. 2021 (JPR), section 3.  A pool is retrieved, `top_k` passages of it are picked by tree decoding (core.retrieval.rerank), and the
per-passage reader answers from the picked ones in one pass.  Rerankers: core.models.ranking.passage_scorers; `trained` is the paper's mechanism at a small size.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import replace

from core import types as t
from core.errors import CheckpointError
from core.models.loading.finding import find_checkpoint
from core.models.ranking.passage_network import KIND, JointNetwork, load_joint
from core.models.ranking.passage_scorers import ReaderScorer, TrainedScorer
from core.models.span.reader import PassageReader, load_reader
from core.retrieval.rerank import Scorer, tree_decode
from core.systems.base.options import Options
from core.systems.base.reading import ReadingSystem
from core.systems.base.selection import CalibrationKey, candidates_of, digest_of
from core.systems.base.system import SystemParts, SystemRun
from core.systems.options import JprOptions


class Jpr(ReadingSystem):
    config: JprOptions

    def __init__(
        self,
        parts: SystemParts,
        options: Options,
        config: JprOptions,
        reader: PassageReader,
        digest: str,
        joint: tuple[JointNetwork, str] | None = None,
    ) -> None:
        """`joint`: the network of `reranker: trained`, with the digest of its weights."""
        self.joint = joint
        provenance = {} if joint is None else {"joint_digest": joint[1]}
        weights = digest_of(digest, joint[1] if joint else "", config.pool, config.diversity, config.length_penalty)
        key = CalibrationKey(f"jpr {config.reranker}", "reader", weights)
        super().__init__("jpr", parts, options, config, reader, digest, key, provenance)

    def retrieve(self, run: SystemRun) -> Generator[t.Event, None, Sequence[t.RetrievedPassage]]:
        """The picked passages in the order of picking, with the time for retrieval and reranking.  The reader reads the whole
        pool for it."""
        start, question = time.perf_counter(), run.question.text
        pool = self.search(run.question, question, max(self.config.pool, self.options.passages)).passages
        texts = [p.passage for p in pool]
        joint, states = self.joint, None
        if joint is None:
            readouts = self.reader.read(question, texts)
        else:
            readouts, states = self.reader.read_states(question, texts)
        run.check()
        by_reader = ReaderScorer(readouts, [p.similarity for p in pool], self.config.diversity)
        scorer: Scorer = by_reader if joint is None or states is None else TrainedScorer(joint[0], states, by_reader)
        picks = tree_decode(scorer, self.options.passages, self.config.length_penalty)
        run.memo = [readouts[pick.passage] for pick in picks]
        passages = tuple(replace(pool[pick.passage], rank=rank, score=pick.score) for rank, pick in enumerate(picks, 1))
        yield t.PassagesRetrieved(passages, time.perf_counter() - start, question)
        return passages

    def candidates(self, run: SystemRun) -> list[t.Candidate]:
        return candidates_of(run.memo, "dpr")

    def summary(self, run: SystemRun, candidates: Sequence[t.Candidate]) -> str:
        return f"one pass over {len(run.passages)} picked passages; {self.stopping.description()}"


def build(name: str, parts: SystemParts, options: Options, config: JprOptions) -> Jpr:
    settings = parts.settings
    reader, digest = load_reader(settings.reader, settings.device)
    if config.reranker == "trained":  # the passage reranker beside a reader's folder, as in checkpoints/
        folder = find_checkpoint(settings.reader, "reader").with_name(KIND)
        try:
            return Jpr(parts, options, config, reader, digest, load_joint(str(folder), digest))
        except CheckpointError:  # a reader that none was trained for picks by itself
            if "reranker" in options.extra:
                raise
            config = replace(config, reranker="reader")
    return Jpr(parts, options, config, reader, digest)
