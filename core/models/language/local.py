"""A language model of transformers on this machine: a folder or a hub name, CUDA or CPU, batched greedy generation with the model's chat template.

Only safetensors and code of transformers itself are loaded: no pickles, no `trust_remote_code`.
Prompts are padded at the left, so that each row's new tokens begin at the same column (B prompts, L tokens).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList

from core.errors import CheckpointError
from core.models.language.roles import STOPPED, TEMPERATURE, TOO_LATE, Completion, Request
from core.models.language.structured import parse_completion
from core.models.loading.pretrained import pretrained, reason
from core.models.scheduling.device import pick_device


class _Halt(StoppingCriteria):  # type: ignore[misc]
    """Ends generation at the deadline or when a person stops the run; checked at each token."""

    def __init__(self, deadline: float, cancelled: Callable[[], bool]) -> None:
        self.deadline, self.cancelled, self.reason = deadline, cancelled, ""

    def is_over(self) -> bool:
        if not self.reason:
            self.reason = STOPPED if self.cancelled() else TOO_LATE if time.monotonic() >= self.deadline else ""
        return bool(self.reason)

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> Any:
        return torch.full((input_ids.shape[0],), self.is_over(), dtype=torch.bool, device=input_ids.device)


class LocalModel:
    """A LanguageModel.  Thread-safe: one batch at a time."""

    def __init__(self, model: Any, tokenizer: Any, name: str, batch: int = 8) -> None:
        """`model` is on its device, in eval mode; `tokenizer` pads at the left."""
        self.model, self.tokenizer, self.batch = model, tokenizer, batch
        self.name = Path(name).name
        self.about: Mapping[str, Any] = {
            "model": name,
            "revision": getattr(model.config, "_commit_hash", None) or "",
            "dtype": str(model.dtype).removeprefix("torch."),
        }
        self._lock = threading.Lock()
        # special tokens, which untrusted text must not contain; single characters are punctuation
        self._special = [s for s in {*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()} if len(s) > 1]

    def stream(
        self, requests: Sequence[Request], deadline: float, cancelled: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[int, Completion]]:
        """See core.models.language.roles.LanguageModel.  Prompts of similar length share a batch, the longest first, so that
        one that doesn't fit fails early."""
        prompts = [self.prompt(r) for r in requests]
        lengths = [len(ids) for ids in self.tokenizer(prompts, add_special_tokens=False)["input_ids"]] if prompts else []
        limit = self._context()
        order: list[int] = []
        for i in sorted(range(len(requests)), key=lambda i: -lengths[i]):
            room = limit - requests[i].max_tokens
            if lengths[i] > room:
                error = (
                    f"the prompt has {lengths[i]} tokens; the model's limit including the answer is {limit}: use fewer passages"
                )
                yield i, Completion(error=error, prompt_tokens=lengths[i])
            else:
                order.append(i)
        size = self.batch
        while order:
            group, order = order[:size], order[size:]
            try:
                completions = self._generate(
                    [prompts[i] for i in group], max(requests[i].max_tokens for i in group), deadline, cancelled
                )
            except torch.OutOfMemoryError:
                if len(group) == 1:
                    error = "the device does not have enough memory for this prompt"
                    yield group[0], Completion(error=error, prompt_tokens=lengths[group[0]])
                else:  # again in halves
                    order, size = [*group, *order], max(1, len(group) // 2)
                continue
            for i, completion in zip(group, completions):
                is_cut = completion.cut and requests[i].schema is not None  # free text may end anywhere
                yield i, completion if completion.error else parse_completion(replace(completion, cut=is_cut), requests[i])

    def prompt(self, request: Request) -> str:
        """The model's input: from its chat template, or plain turns without one."""
        messages = [{"role": m.role, "content": self._clean(m.text)} for m in request.messages]
        if not getattr(self.tokenizer, "chat_template", None):
            transcript = "".join(f"{t['role'].capitalize()}: {t['content']}\n\n" for t in messages)
            return f"{transcript}Assistant:"
        try:
            return self._templated(messages)
        except Exception:  # a template without system turns (jinja2.TemplateError): prepend the text to the first question
            if messages[0]["role"] != "system" or len(messages) < 2:
                raise
            merged = {"role": "user", "content": f"{messages[0]['content']}\n\n{messages[1]['content']}"}
            return self._templated([merged, *messages[2:]])

    def _templated(self, messages: list[dict[str, str]]) -> str:
        """`enable_thinking`: turns off thinking in reasoning models; other templates ignore it."""
        text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=False)
        return str(text)

    def _clean(self, text: str) -> str:
        for token in self._special:
            text = text.replace(token, f"{token[0]} {token[1:]}")
        return text

    def _context(self) -> int:
        """The maximum number of tokens of prompt and answer together."""
        stated = getattr(self.model.config, "max_position_embeddings", None) or getattr(self.model.config, "n_positions", None)
        return min(int(stated or 1 << 20), int(min(self.tokenizer.model_max_length, 1 << 20)))

    def _generate(
        self, prompts: list[str], max_new_tokens: int, deadline: float, cancelled: Callable[[], bool]
    ) -> list[Completion]:
        halt = _Halt(deadline, cancelled)
        while not self._lock.acquire(timeout=0.05):
            if halt.is_over():
                return [Completion(error=halt.reason)] * len(prompts)
        try:
            if halt.is_over():
                return [Completion(error=halt.reason)] * len(prompts)
            start = time.monotonic()
            inputs = self.tokenizer(prompts, padding=True, add_special_tokens=False, return_tensors="pt").to(self.model.device)
            config = GenerationConfig(
                **({"do_sample": True, "temperature": TEMPERATURE} if TEMPERATURE else {"do_sample": False}),
                num_beams=1,
                max_new_tokens=max_new_tokens,
                pad_token_id=self.tokenizer.pad_token_id,
                eos_token_id=self._ends() or None,
            )
            with torch.inference_mode():
                output = self.model.generate(
                    input_ids=inputs["input_ids"],
                    attention_mask=inputs["attention_mask"],
                    generation_config=config,
                    stopping_criteria=StoppingCriteriaList([halt]),
                )
            seconds = time.monotonic() - start
        finally:
            self._lock.release()
        lengths = inputs["attention_mask"].sum(1).tolist()
        out = []
        for row, n in zip(output[:, inputs["input_ids"].shape[1] :], lengths):  # (B, new tokens)
            tokens = int((row != self.tokenizer.pad_token_id).sum())
            text = self.tokenizer.decode(row, skip_special_tokens=True)
            finished = bool(torch.isin(row, torch.tensor(self._ends(), device=row.device)).any())
            error = "" if finished else halt.reason
            out.append(Completion(text, None, error, int(n), tokens, seconds / len(prompts), cut=not finished and not error))
        return out

    def _ends(self) -> list[int]:
        ends = getattr(self.model.generation_config, "eos_token_id", None)
        ends = self.tokenizer.eos_token_id if ends is None else ends
        return [] if ends is None else [int(e) for e in (ends if isinstance(ends, (list, tuple)) else [ends])]


@lru_cache(maxsize=1)
def load_local(name: str, device: str = "auto", batch: int = 8) -> LocalModel:
    """Loads a model once.  Raises CheckpointError for a folder or name without one, InputError for an unavailable device."""
    place = pick_device(device)
    path = Path(name).expanduser()
    source = str(path) if path.exists() else name
    try:
        tokenizer = pretrained("AutoTokenizer", source, padding_side="left")
        dtype = torch.bfloat16 if place.type == "cuda" else torch.float32
        model = pretrained("AutoModelForCausalLM", source, dtype=dtype, use_safetensors=True)
    except ImportError as error:
        raise CheckpointError(f"AMBISCOPE_LM_LOCAL '{name}' needs a package that is not installed: {error}") from None
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise CheckpointError(
            f"AMBISCOPE_LM_LOCAL '{name}' is not a transformers language model with safetensors weights: {reason(error)[:300]}"
        ) from None
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    return LocalModel(model.to(place).eval(), tokenizer, name, batch)
