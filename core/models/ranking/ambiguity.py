"""Whether a question is ambiguous, and what it might mean; both without evidence, for Disambig-first (Min et al. 2020, section 5).

The classifier is a logistic regression on the question's sentence vector (all-MiniLM-L6-v2).  The writer has learnt from AmbigNQ's pairs of
prompt question and disambiguated question which words people add: a lexicon of phrases by opening word and cue ("when" + "come out": "in
theaters", "on dvd").  It knows nothing of the facts, and that is the point of this baseline: "rewrites look reasonable but do not match the
facts" (section 6).  Theirs are BERT and BART.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core import disk
from core.errors import CheckpointError
from core.models.loading.finding import BUNDLED, WEIGHTS, read_config
from core.models.loading.once import loaded_once
from core.text import content_words, word_tokens

if TYPE_CHECKING:
    from core.models.encoders.sentence_encoder import Encoder

KIND = "ambiguity"
LEXICON = "lexicon.json"
ENCODER = "minilm"  # the encoder of the weights, independent of the settings
ANY = "*"  # cue of phrases that are added to every question of an opening word
OPENINGS = (
    "how many",
    "how much",
    "how long",
    "how old",
    "who",
    "whose",
    "whom",
    "what",
    "when",
    "where",
    "which",
    "why",
    "how",
)


def opening(question: str) -> str:
    """The question word: the first one of OPENINGS that stands in the question, else "other".

    >>> opening("In what year did it open?")
    'what'
    """
    text = f" {' '.join(word_tokens(question))} "
    found = [(text.find(f" {o} "), -len(o), o) for o in OPENINGS if f" {o} " in text]
    return min(found)[2] if found else "other"


def cues(question: str) -> list[str]:
    """The words and word pairs of a question that decide which phrases are added."""
    have = word_tokens(question)
    return [*(" ".join(pair) for pair in itertools.pairwise(have)), *have]


@dataclass(frozen=True)
class Lexicon:
    """`phrases[opening][cue]`: (phrase, weight), the heaviest first; a phrase is appended to the question."""

    phrases: dict[str, dict[str, list[tuple[str, float]]]]

    def rewrite(self, question: str, limit: int) -> list[str]:
        """At most `limit` disambiguated questions, the likeliest first; without phrases that the question already contains."""
        by_cue = self.phrases.get(opening(question), {})
        have = set(word_tokens(question))
        scores: dict[str, float] = {}
        for cue in [*cues(question), ANY]:
            for phrase, weight in by_cue.get(cue, ()):
                scores[phrase] = scores.get(phrase, 0.0) + weight
        body, chosen = question.strip().rstrip("?").rstrip(), []
        said: list[set[str]] = []
        for phrase, _ in sorted(scores.items(), key=lambda item: (-item[1], item[0])):
            content = set(content_words(phrase))
            if content <= have or any(content <= other or other <= content for other in said):
                continue
            said.append(content)
            chosen.append(f"{body} {phrase}?")
            if len(chosen) == limit:
                break
        return chosen


class AmbiguityModel:
    """`weights` (d,) and `bias` on unit vectors of `encoder`; calls from several threads are safe."""

    def __init__(self, weights: NDArray[np.float32], bias: float, lexicon: Lexicon, encoder: Encoder) -> None:
        self.weights, self.bias, self.lexicon, self.encoder = weights, bias, lexicon, encoder

    def probability(self, question: str) -> float:
        """P(the question is ambiguous)."""
        return self.probabilities([question])[0]

    def probabilities(self, questions: Sequence[str]) -> list[float]:
        vectors = self.encoder.encode([normal(q) for q in questions], "query")
        return [1 / (1 + math.exp(-float(z))) for z in vectors @ self.weights + self.bias]

    def rewrite(self, question: str, limit: int = 4) -> list[str]:
        return self.lexicon.rewrite(question, limit)


def normal(question: str) -> str:
    """As AmbigNQ writes questions: lower case, no question mark."""
    return " ".join(question.lower().split()).rstrip("?").rstrip()


def save_ambiguity(folder: Path, weights: NDArray[np.float32], bias: float, lexicon: Lexicon, about: dict[str, Any]) -> None:
    """Writes weights (safetensors), lexicon and config; files are replaced atomically, config.json last, so that a kill leaves the old model
    or none.  Raises StorageError."""
    from safetensors.numpy import save

    disk.write_bytes(folder / WEIGHTS, save({"weights": weights.astype(np.float32), "bias": np.array([bias], np.float32)}))
    config = {"kind": KIND, "encoder": ENCODER, "about": about}
    for name, value in ((LEXICON, lexicon.phrases), ("config.json", config)):
        disk.write_text(folder / name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def find_ambiguity(name: str = "default") -> Path:
    """The folder of a model; "default" is the bundled one.  Raises CheckpointError."""
    folder = BUNDLED / KIND if name == "default" else Path(name).expanduser()
    if not (folder / "config.json").exists():
        raise CheckpointError(f"no ambiguity model in {folder}; train one: python -m core train ambiguity --ambignq FILE")
    kind = read_config(folder).get("kind")
    if kind != KIND:
        raise CheckpointError(
            f"{folder} holds a model of kind {kind}, not of {KIND}; train one: python -m core train ambiguity"
        )
    return folder


@loaded_once(2)
def _loaded(folder: Path, _sha: str, device: str) -> AmbiguityModel:
    from dataclasses import replace

    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    from core.models.encoders.sentence_encoder import load_encoder
    from core.settings import Settings

    try:
        tensors = load_file(folder / WEIGHTS)
        raw = json.loads((folder / LEXICON).read_text(encoding="utf-8"))
        phrases = {
            o: {cue: [(str(p), float(w)) for p, w in found] for cue, found in by_cue.items()} for o, by_cue in raw.items()
        }
        weights, bias = tensors["weights"], float(tensors["bias"][0])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, SafetensorError) as error:
        raise CheckpointError(f"checkpoint {folder} is incomplete or damaged ({error}); fetch or train it again") from None
    encoder = load_encoder(replace(Settings(), encoder=ENCODER, device=device))
    if weights.shape != (encoder.dimension,):
        raise CheckpointError(
            f"checkpoint {folder} has weights of shape {weights.shape} for vectors of {encoder.dimension}; train it again"
        )
    return AmbiguityModel(weights, bias, Lexicon(phrases), encoder)


def load_ambiguity(name: str = "default", device: str = "auto") -> tuple[AmbiguityModel, str]:
    """(model, digest of its files).  Loaded once; new files in the folder are reloaded.  Raises CheckpointError."""
    folder = find_ambiguity(name)
    try:
        sha = sha256((folder / WEIGHTS).read_bytes() + (folder / LEXICON).read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise CheckpointError(f"checkpoint {folder} is incomplete ({error}); fetch or train it again") from None
    return _loaded(folder, sha, device), sha
