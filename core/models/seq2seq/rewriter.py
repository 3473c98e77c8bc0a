"""Question disambiguation with an encoder-decoder, which writes a question from the prompt question, the target answer, the
other answers and the passages.

Source: Min et al. 2020, section 5 ("generates each question conditioning on the concatenation of the prompt question, the target answer, other answers,
and the top passages").  The rows are those of core.models.seq2seq.network: the prompt row holds the question and the answers, the target
first, and each passage is a row of its own.  Candidates are diverse beams, including the greedy one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from core.errors import CheckpointError
from core.models.seq2seq.decoding import SequenceDecoding, write
from core.models.seq2seq.fid import load_fid
from core.models.seq2seq.network import encoding
from core.text import STOPWORDS, question_key
from core.types import Passage

RewriteJob = tuple[str, str, Sequence[str], Sequence[Passage]]  # prompt question, target answer, other answers, passages
BEAMS = 3
MAX_TOKENS = 48  # of a question
BATCH = 4  # jobs
_WORD = re.compile(r"\w+(?:[-'’]\w+)*")


def rewriting_job(
    question: str, answer: str, others: Sequence[str], passages: Sequence[tuple[str, str]]
) -> tuple[str, Sequence[tuple[str, str]], list[str]]:
    """A job for a network's `collate`, with the answers in the prompt row, the target first."""
    return question, passages, [answer, *others]


def truecase(text: str, sources: Sequence[str]) -> str:
    """Restores the case of a lower-case text: each word as most of the sources write it, and a capital first letter.

    >>> truecase("who played maria in west side story?", ["Who played Maria?", "West Side Story is a film."])
    'Who played Maria in West Side Story?'
    >>> truecase("when did the u.s. win?", ["The U.S. won."])  # a capital that only begins a sentence
    'When did the U.S. win?'
    """
    forms: dict[str, Counter[str]] = {}
    for source in sources:
        for word in _WORD.findall(source):
            lower = word.lower()
            form = lower if lower in STOPWORDS and word.istitle() else word
            forms.setdefault(lower, Counter())[form] += 1

    def cased(match: re.Match[str]) -> str:
        counts = forms.get(match.group().lower())
        return max(counts, key=lambda form: (counts[form], form)) if counts else match.group()

    out = _WORD.sub(cased, text)
    return out[:1].upper() + out[1:]


class Seq2SeqRewriter:
    """A core.disambiguation.clarifiers.Rewriter over the network, tokenizer and lock of a FidAnswerer."""

    def __init__(self, answerer: Any, beams: int = BEAMS) -> None:
        self.answerer = answerer
        self.writing = SequenceDecoding("diverse-beam" if beams > 1 else "greedy", beams, max_tokens=MAX_TOKENS)

    def rewrite_many(self, jobs: Sequence[RewriteJob]) -> list[list[str]]:
        """Distinct candidates of each job, the greedy one first."""
        batches = (jobs[i : i + BATCH] for i in range(0, len(jobs), BATCH))
        return [candidates for batch in batches for candidates in self._rewrite(batch)]

    def _rewrite(self, jobs: Sequence[RewriteJob]) -> list[list[str]]:
        network, tokenizer = self.answerer.network, self.answerer.tokenizer
        texts = [rewriting_job(q, answer, others, [(p.title, p.text) for p in top]) for q, answer, others, top in jobs]
        with encoding(self.answerer, texts) as (states, mask):
            beams = write(network, tokenizer, states, mask, self.writing, [q for q, *_ in jobs])
            candidates = [[tokenizer.decode(sequence.ids, skip_special_tokens=True) for sequence in beam] for beam in beams]
        out = []
        for decoded, (question, answer, others, passages) in zip(candidates, jobs):
            sources = [question, answer, *others, *(f"{p.title}. {p.text}" for p in passages)]
            distinct: dict[str, str] = {}
            for text in (" ".join(candidate.split()) for candidate in decoded):
                if key := question_key(text):
                    distinct.setdefault(key, truecase(text, sources) if network.uncased else text)
            out.append([text if text.endswith("?") else f"{text}?" for text in distinct.values()])
        return out


def load_rewriter(name: str, device: str = "auto") -> tuple[Seq2SeqRewriter, str]:
    """(rewriter, digest of its weights).  Raises CheckpointError, also for weights that were trained to write answers."""
    answerer, digest = load_fid(name, device)
    if answerer.config.target != "question":
        raise CheckpointError(
            f"{name} was not trained to write disambiguated questions; name weights of `python -m core train disambiguation` in "
            "AMBISCOPE_REWRITER"
        )
    return Seq2SeqRewriter(answerer), digest
