"""The writer: a pretrained decoder that writes, for each answer of an ambiguous question, a question that has this answer only.

Task: question disambiguation of AmbigQA (Min et al. 2020, section 5: from the prompt question, the target answer, the other answers and the
passages).  Network: core.models.language.decoder.

A row holds the prompt question and, of every answer, a line with the answer, the title of its passage and the words around it.  The branches
follow, one an answer: "Question for ANSWER:" and the question.  A branch attends to the row's head and to itself, so that all questions of a set
are learned in one row, and written from one cache of the head.

Legend: n answers of a row.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from core.disambiguation.drafts import AnswerExcerpt, QuestionDraft
from core.models.language.decoder import IGNORED, DecoderNetwork, TokenRow, collate, load_decoder
from core.models.loading.files import digest
from core.models.loading.finding import find_writer
from core.models.loading.once import loaded_once
from core.models.loading.pretrained import TRANSFORMERS
from core.models.scheduling.device import bf16_autocast, pick_device, store_in_bf16

KIND = "writer"
MAX_MEANINGS = 8  # of a row; more are written in several rows
MAX_QUESTION_TOKENS = 96  # of the prompt question
MAX_MEANING_TOKENS = 112  # of a line with an answer, its title and its excerpt
MAX_WRITTEN_TOKENS = 48


class WriterTokenizer:
    """The decoder's tokenizer.  Other people's texts can't produce its control tokens."""

    def __init__(self, folder: str) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
        vocabulary = self._tokenizer.get_vocab()
        self.begin, self.end = vocabulary["<|im_start|>"], vocabulary["<|im_end|>"]

    def ids(self, text: str) -> list[int]:
        text = " ".join(text.replace("<|", "< |").replace("|>", "| >").split(" "))
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def text(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def holds(self, question: str) -> bool:
        """Whether a row's head has the whole prompt question."""
        return len(self.ids(f"Question: {_line(question)}")) <= MAX_QUESTION_TOKENS

    def head(self, question: str, meanings: Sequence[AnswerExcerpt]) -> list[int]:
        """The head of a row, which all its branches read."""
        out = [self.begin, *self.ids(f"Question: {_line(question)}")[:MAX_QUESTION_TOKENS], *self.ids("\n")]
        for m in meanings:
            parts = [_line(part) for part in (m.answer, m.title, m.excerpt) if part]
            out += [*self.ids(" | ".join(parts))[:MAX_MEANING_TOKENS], *self.ids("\n")]
        return out

    def branch(self, answer: str) -> list[int]:
        return self.ids(f"Question for {_line(answer)[:200]}:")

    def target(self, question: str) -> list[int]:
        return [*self.ids(f" {_line(question)}")[: MAX_WRITTEN_TOKENS - 1], self.end]


def _line(text: str) -> str:
    return " ".join(text.split())


def row(
    tokenizer: WriterTokenizer, question: str, meanings: Sequence[AnswerExcerpt], targets: Sequence[str] | None = None
) -> TokenRow:
    """(ids, positions, branch of each token with 0 for the head, targets) of one row; targets[i] is the question for meanings[i], or empty.
    Without `targets`, each branch ends where its question begins."""
    ids = tokenizer.head(question, meanings)
    head = len(ids)
    positions, branches, labels = list(range(head)), [0] * head, [IGNORED] * head
    for number, meaning in enumerate(meanings, 1):
        if targets is not None and not targets[number - 1]:
            continue
        start = tokenizer.branch(meaning.answer)
        written = tokenizer.target(targets[number - 1]) if targets is not None else [IGNORED]
        ids += [*start, *written[:-1]]
        labels += [*[IGNORED] * (len(start) - 1), *written]
        length = len(start) + len(written) - 1
        positions += range(head, head + length)
        branches += [number] * length
    return ids, positions, branches, labels


class QuestionWriter:
    """Writes questions.  Thread-safe: one row at a time."""

    def __init__(self, tokenizer: WriterTokenizer, network: DecoderNetwork, device: str = "auto") -> None:
        """`network` is in eval mode; its low-rank updates may be merged."""
        self.tokenizer, self.network = tokenizer, network
        self.device = pick_device(device)
        network.to(self.device)
        self._lock = threading.Lock()

    def write(self, question: str, meanings: Sequence[AnswerExcerpt], beams: int = 4) -> list[list[QuestionDraft]]:
        """At most `beams` distinct drafts for each meaning, the likeliest first; none for a prompt question that is longer than
        MAX_QUESTION_TOKENS, because what is cut off could distinguish the answers."""
        if not self.tokenizer.holds(question):
            return [[] for _ in meanings]
        out: list[list[QuestionDraft]] = []
        for first in range(0, len(meanings), MAX_MEANINGS):
            with self._lock:
                out += self._write_row(question, meanings[first : first + MAX_MEANINGS], beams)
        return out

    @torch.inference_mode()
    def _write_row(self, question: str, meanings: Sequence[AnswerExcerpt], beams: int) -> list[list[QuestionDraft]]:
        """Beam search of n branches at once.  Hypotheses are compared by their mean log probability; an answer's search ends when it has
        `beams` of them, or at MAX_WRITTEN_TOKENS.

        The tokens of all hypotheses follow the head and the branches in one row, and `seen` (n beams, tokens so far) says which of them
        a hypothesis continues, so that no cache is copied for each of them.
        """
        with TRANSFORMERS:
            from transformers import DynamicCache

        decoder, end, n = self.network.decoder, self.tokenizer.end, len(meanings)
        token_row = row(self.tokenizer, question, meanings)
        start = collate([token_row]).to(self.device)
        ends = [i for i, (a, b) in enumerate(pairwise([*token_row[2], 0])) if a and a != b]  # of the branches
        cache = DynamicCache(config=decoder.config)
        places = torch.arange(n, device=self.device).unsqueeze(1) * beams  # of the first hypothesis of each answer
        finished: list[list[tuple[float, list[int]]]] = [[] for _ in meanings]

        def following(ids: Tensor, positions: Tensor, mask: Tensor, rows: Sequence[int]) -> Tensor:
            """Log probabilities (rows, vocabulary) of the tokens that follow those at `rows`."""
            with bf16_autocast(self.device):
                states = decoder.model(ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True)
                return decoder.lm_head(states.last_hidden_state[0, rows]).float().log_softmax(-1)

        scores, tokens = following(start.ids, start.positions, start.mask, ends).topk(beams, -1)  # (n, beams)
        written = tokens.unsqueeze(-1)  # (n, beams, t)
        seen = start.mask[0, 0, ends].repeat_interleave(beams, 0)
        itself = torch.eye(n * beams, dtype=torch.bool, device=self.device)
        for length in range(1, MAX_WRITTEN_TOKENS + 1):
            ended = written[:, :, -1].eq(end)
            for i, j in ended.nonzero().tolist():
                finished[i].append((float(scores[i, j]) / length, written[i, j, :-1].tolist()))
            scores = scores.masked_fill(ended, -torch.inf)
            if length == MAX_WRITTEN_TOKENS or all(len(f) >= beams for f in finished):
                break
            seen = torch.cat([seen, itself], 1)
            positions = seen.sum(1) - 1
            next_scores = following(written[:, :, -1].view(1, -1), positions[None], seen[None, None], range(n * beams))
            totals = scores.unsqueeze(-1) + next_scores.view(n, beams, -1)
            scores, flat = totals.view(n, -1).topk(beams, -1)
            parents = places + flat // next_scores.shape[-1]  # (n, beams)
            seen = seen[parents.flatten()]
            written = torch.cat([written.flatten(0, 1)[parents], (flat % next_scores.shape[-1]).unsqueeze(-1)], -1)
        return [self._drafts(hypotheses)[:beams] for hypotheses in finished]

    def _drafts(self, hypotheses: Sequence[tuple[float, list[int]]]) -> list[QuestionDraft]:
        """The distinct texts of (score, ids), the likeliest first."""
        drafts: dict[str, float] = {}
        for score, ids in sorted(hypotheses, reverse=True):
            if text := _line(self.tokenizer.text(ids)):
                drafts.setdefault(text, score)
        return [QuestionDraft(text, score) for text, score in drafts.items()]


@loaded_once(1)
def _loaded(folder: Path, weights: str, device: str) -> QuestionWriter:
    tokenizer, network = load_decoder(folder, KIND, WriterTokenizer)
    network.merge()
    store_in_bf16(network, pick_device(device))
    return QuestionWriter(tokenizer, network, device)


def load_writer(name: str, device: str = "auto") -> tuple[QuestionWriter, str]:
    """(writer, digest of its weights), loaded once.  `name`: bundled as checkpoints/NAME, or a folder.  Raises CheckpointError."""
    folder = find_writer(name)
    weights = digest(folder)
    return _loaded(folder, weights, device), weights
