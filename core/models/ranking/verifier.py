"""The verifier: does a span of a passage answer the question?  A stronger encoder than the answering model's, used only for a few candidates.

Recall-then-verify (Shao and Huang 2022, section 3.3) with a cross-encoder; RECONSIDER (Iyer et al. 2021) reranks a reader's spans so.  It reads the
sentences around a candidate (core.models.ranking.verifier_rows), not the passage: a third of the tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from core.errors import CheckpointError
from core.models.encoders.low_rank import load_trained
from core.models.encoders.mpnet import load_mpnet
from core.models.encoders.packaged import packaged_folder
from core.models.encoders.word_pieces import WordPieces
from core.models.loading.files import digest
from core.models.loading.finding import find_verifier, read_config
from core.models.loading.once import loaded_once
from core.models.ranking.verifier_network import VerifierConfig, VerifierNetwork
from core.models.ranking.verifier_rows import Window, collate_windows, window_bounds
from core.models.scheduling.device import OnDevice, bf16_autocast, pick_device, store_in_bf16
from core.models.scheduling.turns import TURNS
from core.types import Passage

BATCH = 16  # windows encoded together
UNREAD = -12.0  # logit of a span that does not fit into a window


class SpanVerifier:
    """A merged VerifierNetwork with its tokenizer on a device.  Thread-safe: one call at a time."""

    def __init__(self, network: VerifierNetwork, tokenizer: Any, device: str = "auto") -> None:
        self.config, self.tokenizer = network.config, tokenizer
        self.network = network
        self._place = OnDevice("the verifier", network, pick_device(device))
        store_in_bf16(network.encoder, self._place.device)

    def judge(self, question: str, spans: Sequence[tuple[Passage, int, int]]) -> list[float]:
        """The logit of each span, (passage, first character, end); UNREAD where it does not fit."""
        inside: dict[tuple[str, int, int], list[int]] = {}
        passages: dict[str, Passage] = {}
        for number, (passage, start, end) in enumerate(spans):
            a, b = window_bounds(passage.text, start, end, self.config.window_words)
            inside.setdefault((passage.id, a, b), []).append(number)
            passages[passage.id] = passage
        windows: list[tuple[Window, list[int]]] = []
        for (key, a, b), numbers in inside.items():
            own = tuple((spans[n][1] - a, spans[n][2] - a) for n in numbers)
            windows.append((Window(question, passages[key].title, passages[key].text[a:b], own), numbers))
        windows.sort(key=lambda item: len(item[0].title) + len(item[0].text))  # short rows together: padding is work too
        out = [UNREAD] * len(spans)

        def forward(part: slice) -> None:
            batch, kept = collate_windows(self.tokenizer, [w for w, _ in windows[part]], self.config.max_tokens)
            with bf16_autocast(self._place.device):
                logits = self.network(batch.to(self._place.device))[0].cpu().tolist() if kept else []
            for (i, j), logit in zip(kept, logits):
                out[windows[part.start + i][1][j]] = logit

        with TURNS, torch.inference_mode():
            self._place.run(forward, len(windows), BATCH)
        return out


@loaded_once(1)
def _loaded(folder: Path, base: Path, weights: str, device: str) -> SpanVerifier:
    network = load_verifier_network(folder, base)
    return SpanVerifier(network.merge(), WordPieces(base), device)


def load_verifier_network(folder: Path, base: Path) -> VerifierNetwork:
    """A checkpoint's network over its base, not merged.  Raises CheckpointError when a file is missing, damaged, or does not fit the base."""
    config = _config(folder)
    try:
        network = VerifierNetwork(load_mpnet(base), config)
        load_trained(network, folder)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise _damaged(folder, error) from None
    return network


def _config(folder: Path) -> VerifierConfig:
    try:
        return VerifierConfig(**read_config(folder)["config"])
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(folder, error) from None


def _damaged(folder: Path, error: Exception) -> CheckpointError:
    return CheckpointError(f"checkpoint {folder} is damaged or does not fit its base ({error}); fetch or train it again")


def load_verifier(name: str = "default", device: str = "auto") -> tuple[SpanVerifier, str]:
    """(verifier, digest of its weights).  Loaded once; new weights in the folder are reloaded.  Raises CheckpointError, also if the package of
    its base is not installed."""
    folder = find_verifier(name)
    base = packaged_folder(_config(folder).base)
    weights = digest(folder)
    return _loaded(folder, base, weights, device), weights
