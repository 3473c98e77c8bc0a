"""FidAnswerer: the paper's answering model, a Fusion-in-Decoder of T5 or another encoder-decoder with interleaved prompting.

Source: Sun et al. 2023, sections 2.2, 3.1 and 3.2.  [EOI] is a token; P([EOI]) is its probability at the first decoding position.  The paper
decodes greedily; here the few likeliest first tokens are each continued greedily, in one batch, so that a step has candidates to choose from.
The greedy answer is among them.  Legend: B questions, K candidates, S = P + N * L states, T tokens.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from core import disk
from core.errors import CheckpointError, StorageError
from core.models.loading.finding import FID_DETAILS, SMALL_SEQ2SEQ, find_fid, find_released, read_config
from core.models.loading.once import loaded_once
from core.models.loading.pretrained import pretrained, reason
from core.models.scheduling.device import pick_device
from core.models.scheduling.turns import MODEL_LOCK
from core.models.seq2seq.decoding import in_passage_words, locate
from core.models.seq2seq.network import FidConfig, FidNetwork, encoding, fan_out
from core.models.seq2seq.released import load_released
from core.models.seq2seq.small import load_small
from core.text import answer_words, shares_words
from core.types import EOI, STEP_CANDIDATES, Candidate, Proposal, RetrievedPassage

PROMPTS = "prompts.safetensors"  # learned prompts, where prompting="learned"
MAX_EXTRA = 8  # first tokens beyond the candidates, one for each previous answer


@dataclass(frozen=True)
class Generation:
    """`eoi_bias` is added to [EOI]'s logit at the first position (negative values stop later).  `repeats`: as in
    core.models.span.answerer.Decoding."""

    candidates: int = STEP_CANDIDATES // 2  # each costs the decoder a row
    eoi_bias: float = 0.0
    repeats: bool = False


class FidAnswerer:
    """An AnsweringModel.  Thread-safe: one call at a time."""

    def __init__(self, network: Any, tokenizer: Any, device: str = "auto", generation: Generation | None = None) -> None:
        """`network`: a FidNetwork, or one with the same methods (core.models.seq2seq.small)."""
        self.device = pick_device(device)
        self.network = network.to(self.device).eval()
        self.tokenizer, self.config = tokenizer, network.config
        self.generation = generation or Generation()
        self.lock = MODEL_LOCK

    def propose(self, question: str, passages: Sequence[RetrievedPassage], previous: Sequence[str]) -> Proposal:
        """The candidates, likeliest first, and the probability of [EOI].  Without `repeats` none of them shares words with
        `previous`."""
        return self.propose_many([(question, passages, previous)])[0]

    def propose_many(self, jobs: Sequence[tuple[str, Sequence[RetrievedPassage], Sequence[str]]]) -> list[Proposal]:
        texts = [
            (question, [(p.passage.title, p.passage.text) for p in retrieved], previous)
            for question, retrieved, previous in jobs
        ]
        # previous answers may still be likely and are dropped: look at as many more
        limits = [self.generation.candidates + min(len(previous), MAX_EXTRA) for _, _, previous in jobs]
        with encoding(self, texts) as (states, mask):
            sequences, probabilities, eoi = self._generate(states, mask, max(limits))
        return [
            self._proposal(sequences[b, : limits[b]], probabilities[b].tolist(), float(eoi[b]), passages, previous)
            for b, (_, passages, previous) in enumerate(jobs)
        ]

    def _generate(self, states: Tensor, mask: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
        """Token ids (B, K, T), likeliest first token first, their sequence probabilities (B, K) and P([EOI]) (B,)."""
        network, end = self.network, int(self.tokenizer.eos_token_id)
        questions = states.shape[0]
        ids = torch.full((questions, 1), network.start, device=states.device)
        out = network.decode(states, mask, ids, keep=True)
        first = out.logits[:, -1].float()  # (B, vocabulary)
        first[:, network.eoi] += self.generation.eoi_bias
        first = first.softmax(-1)
        eoi = first[:, network.eoi].clone()
        first[:, [network.eoi, end, int(self.tokenizer.pad_token_id)]] = 0.0  # none of them can begin an answer
        k = min(k, first.shape[1] - 3)
        probability, token = first.topk(k)  # (B, K)
        total, token = probability.log().reshape(-1), token.reshape(-1, 1)  # (B * K,)
        cache = network.repeat_cache(out.past_key_values, k)
        states, mask = fan_out(states, k), fan_out(mask, k)
        sequences, unfinished = [token], torch.ones_like(total, dtype=torch.bool)
        for _ in range(self.config.max_answer_tokens - 1):
            out = network.decode(states, mask, sequences[-1], cache, keep=True)
            logits, cache = out.logits[:, -1].float(), out.past_key_values
            logits[:, network.eoi] = float("-inf")
            best, token = logits.log_softmax(-1).max(-1)  # (B * K,)
            total = total + torch.where(unfinished, best, torch.zeros_like(best))
            sequences.append(torch.where(unfinished, token, torch.full_like(token, end))[:, None])
            unfinished = unfinished & (token != end)
            if not unfinished.any():
                break
        return torch.cat(sequences, 1).view(questions, k, -1).cpu(), total.exp().view(questions, k).cpu(), eoi.cpu()

    def _proposal(
        self,
        sequences: Tensor,
        probabilities: list[float],
        eoi: float,
        passages: Sequence[RetrievedPassage],
        previous: Sequence[str],
    ) -> Proposal:
        answers: dict[str, tuple[str, float]] = {}
        dropped = 0.0
        for ids, probability in zip(sequences, probabilities):
            text = " ".join(self.tokenizer.decode(ids, skip_special_tokens=True).split())
            text = in_passage_words(text, passages, self.network.uncased)
            key = answer_words(text)
            if not key or (not self.generation.repeats and shares_words(text, previous)):
                dropped += probability
            else:
                wording, mass = answers.get(key, (text, 0.0))
                answers[key] = (wording, mass + probability)
        # candidates that share words with a previous answer cannot be chosen, so their mass is removed
        remaining = max(1.0 - dropped, eoi, sum(p for _, p in answers.values()), 1e-9)
        best = sorted(answers.values(), key=lambda item: -item[1])[: self.generation.candidates]
        return Proposal(
            tuple(Candidate(text, min(1.0, p / remaining), locate(text, passages)) for text, p in best), eoi / remaining
        )


def add_eoi(model: Any, tokenizer: Any) -> int:
    """The id of [EOI].  If it is missing, it is added to the tokenizer and the embeddings, with the mean of all vectors."""
    is_new = EOI not in tokenizer.get_vocab()
    if is_new:
        tokenizer.add_special_tokens({"additional_special_tokens": [EOI]}, replace_extra_special_tokens=False)
    eoi = int(tokenizer.convert_tokens_to_ids(EOI))
    size = model.get_input_embeddings().weight.shape[0]
    if eoi >= size:  # t5-base has spare rows: 32,128 for 32,100 tokens
        model.resize_token_embeddings(eoi + 1, mean_resizing=False)
    if is_new:
        with torch.no_grad():
            for layer in (model.get_input_embeddings(), model.get_output_embeddings()):
                if layer is not None:
                    layer.weight[eoi] = layer.weight[:eoi].mean(0)
    return eoi


def make_fid(model: Any, tokenizer: Any, config: FidConfig | None = None, eoi: int = -1) -> FidNetwork:
    """A network around a transformers encoder-decoder. [EOI] is added if it is missing; `eoi` is the token that represents it
    (-1: its own)."""
    eoi = add_eoi(model, tokenizer) if eoi < 0 else eoi
    tokenizer.model_max_length = 1 << 30  # lengths are limited elsewhere; silences a warning
    return FidNetwork(model, config or FidConfig(), eoi)


def save_fid(network: nn.Module, folder: Path, about: dict[str, Any] | None = None, *, tokenizer: Any) -> None:
    """Writes weights (safetensors), tokenizer and our details.  Files are replaced atomically, so that a kill leaves the old ones.

    Raises StorageError: then nothing was changed.
    """
    assert isinstance(network, FidNetwork)
    writing = folder.with_name(folder.name + ".writing")
    shutil.rmtree(writing, ignore_errors=True)
    try:
        writing.mkdir(parents=True)
        network.model.save_pretrained(writing)
        tokenizer.save_pretrained(writing)
        if network.config.prompting == "learned":
            save_file({"prompts": network.prompts.detach().cpu().contiguous()}, writing / PROMPTS)
        details = {"kind": "fid", "config": asdict(network.config), "about": about or {}}
        disk.write_text(writing / FID_DETAILS, json.dumps(details, indent=1) + "\n")
    except (OSError, SafetensorError, StorageError) as error:
        reason = disk.describe_error(error, folder)
        shutil.rmtree(writing, ignore_errors=True)
        raise StorageError(f"{folder} cannot be written ({reason}); the existing files are unchanged") from error
    folder.mkdir(parents=True, exist_ok=True)
    for file in sorted(writing.iterdir()):
        file.replace(folder / file.name)
    writing.rmdir()


def _is_t5(file: Path) -> bool:
    """Whether core.models.seq2seq.released reads this file of weights: a bare state dict, or one next to a T5's config.json."""
    described = file.suffix != ".pt" and (file.parent / "config.json").exists()
    return not described or read_config(file.parent).get("model_type") == "t5"


def load_network(name: str, config: Any = None) -> tuple[Any, Any]:
    """(network, tokenizer) from a folder or the hub.  `config`: replaces the stored one.  Raises CheckpointError."""
    source = find_fid(name)
    try:
        if (Path(source) / "config.json").exists() and read_config(Path(source)).get("kind") == SMALL_SEQ2SEQ:
            return load_small(Path(source), config)
        if (file := find_released(source)) is not None and not (file.parent / FID_DETAILS).exists() and _is_t5(file):
            model, tokenizer, authors_config, eoi = load_released(file)
            return make_fid(model, tokenizer, config or authors_config, eoi), tokenizer
        details = Path(source) / FID_DETAILS  # not of models on the hub that have no owner, such as t5-base
        stored_config = FidConfig(**json.loads(details.read_text())["config"]) if details.exists() else FidConfig()
        tokenizer = pretrained("AutoTokenizer", source, use_fast=True)
        model, info = pretrained("AutoModelForSeq2SeqLM", source, dtype=torch.float32, output_loading_info=True)
        if info["missing_keys"] or info["mismatched_keys"]:
            raise ValueError(f"weights are missing or of another shape: {sorted(map(str, info['missing_keys']))[:3]}")
        if tokenizer.eos_token_id is None or tokenizer.pad_token_id is None:
            raise ValueError("its tokenizer has no end-of-sequence or padding token")
        network = make_fid(model, tokenizer, config or stored_config)
        if stored_config.prompting == network.config.prompting == "learned":
            if not (Path(source) / PROMPTS).exists():
                raise ValueError(f"{PROMPTS} is missing")
            with torch.no_grad():
                network.prompts.copy_(load_file(Path(source) / PROMPTS)["prompts"])
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        if Path(source).exists():
            raise CheckpointError(
                f"checkpoint {source} is incomplete or damaged ({reason(error)}); fetch or train it again"
            ) from None
        raise CheckpointError(
            f"model '{source}' cannot be loaded from the hub ({reason(error)}); check the name, or give a folder"
        ) from None
    return network.eval(), tokenizer


@loaded_once(2)  # large weights: an answering model and a rewriter
def _loaded(location: str, files: object, device: str) -> tuple[FidAnswerer, str]:
    """One network per set of weights.  `files` changes with the folder's files, which reloads them."""
    network, tokenizer = load_network(location)
    sha = sha256()
    for key, tensor in sorted(network.state_dict().items()):
        sha.update(key.encode())
        sha.update(tensor.detach().contiguous().numpy())
    return FidAnswerer(network, tokenizer, device), sha.hexdigest()[:16]


def _files(location: str) -> tuple[tuple[str, int, int, int], ...]:
    """Name, size, time and inode of each file in a folder; empty for a hub name."""
    path = Path(location)
    stats = [(p.name, p.stat()) for p in (sorted(path.iterdir()) if path.is_dir() else [path]) if p.is_file()]
    return tuple((name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in stats)


def load_fid(name: str, device: str = "auto", generation: Generation | None = None) -> tuple[FidAnswerer, str]:
    """(answerer, first 16 hex digits of the sha256 of its weights).

    Weights are loaded once and again when the files change; the generation settings are the caller's.  `name` is a folder (trained here, or of
    transformers), a name under checkpoints/, or a hub name.  Raises CheckpointError.
    """
    location = find_fid(name)
    loaded, weights = _loaded(location, _files(location), device)
    answerer = copy.copy(loaded)  # network and lock stay shared
    answerer.generation = generation or Generation()
    return answerer, weights
