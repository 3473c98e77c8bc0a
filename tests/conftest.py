"""Fixtures for all tests.  Models are tiny and have random weights; nothing is downloaded."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before transformers is imported: a test that reaches for the hub fails at once

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from tiny_models import WORDS, _folder, tiny_bert_config, tiny_decoder, tiny_mpnet_config, tiny_t5_config, word_tokenizer

from core.models.loading import finding
from core.models.loading.packaged import MINILM

# A run of the suite is the same each time; `HYPOTHESIS_PROFILE=search` draws new examples, to look for what is not known yet.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


# the small networks, in processes that tests start too: they read five times as fast
os.environ |= {"AMBISCOPE_READER": MINILM, "AMBISCOPE_ANSWERER": MINILM}
finding.NETWORKS = (MINILM,)  # type: ignore[assignment]

# below tests/: what starts browsers, Ray, servers or processes, trains, or reads the bundled weights
SLOW = (
    "attacks/",
    "browser/",
    "cluster/",
    "cli/test_train",
    "evaluation/test_long_reader",
    "models/encoders/test_packaged",
    "models/language/test_real_server",
    "models/test_bundled",
    "pages/explore/test_verdict_view",
    "pages/firstvisit/test_evaluate_shipped",
    "pages/firstvisit/test_practice",
    "pages/test_access",
    "pages/test_annotate_seen",
    "pages/test_evaluate_judge",
    "storage/analysis/test_loop",
    "storage/schema/test_store_damage",
    "storage/shipped/",
    "test_train_all",
    "training/running/",
    "training/tasks/",
    "training/test_resume",
    "training/test_training",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks slow tests."""
    for item in items:
        file = item.path.relative_to(Path(__file__).parent).as_posix()
        if item.get_closest_marker("browser") or file.startswith(SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def one_thread() -> Iterator[None]:
    """Tiny models are many times slower on several threads where the machine is busy."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def make_tiny(one_thread: None) -> Callable[..., Any]:
    """make_tiny(kind, seed=0, **config): a model with random weights, in eval mode.  Kinds: bert, mpnet (encoders), t5 (encoder-decoder), bart."""
    import torch
    from transformers import BartConfig, BartForConditionalGeneration, BertModel, MPNetModel, T5ForConditionalGeneration

    def make(kind: str, seed: int = 0, **changes: Any) -> Any:
        torch.manual_seed(seed)
        if kind == "bert":
            return BertModel(tiny_bert_config(**changes), add_pooling_layer=False).eval()
        if kind == "mpnet":
            return MPNetModel(tiny_mpnet_config(**changes), add_pooling_layer=False).eval()
        if kind == "t5":
            return T5ForConditionalGeneration(tiny_t5_config(**changes)).eval()
        config = BartConfig(
            vocab_size=len(WORDS) + 3,
            d_model=32,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=48,
            decoder_ffn_dim=48,
            max_position_embeddings=96,
            dropout=0.0,
            init_std=0.5,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=1,
            decoder_start_token_id=1,
            forced_eos_token_id=None,
        )
        return BartForConditionalGeneration(config).eval()

    return make


@pytest.fixture(scope="session")
def tiny_bert_folder(tmp_path_factory: pytest.TempPathFactory, make_tiny: Callable[..., Any]) -> Path:
    """A BERT encoder with its tokenizer, as AutoModel and AutoTokenizer load it.  Shared: do not write into it."""
    return _folder(tmp_path_factory.mktemp("models") / "bert", make_tiny("bert"), word_tokenizer("bert"))


@pytest.fixture(scope="session")
def tiny_mpnet_folder(tmp_path_factory: pytest.TempPathFactory, make_tiny: Callable[..., Any]) -> Path:
    """An MPNet encoder with its tokenizer, as core.models.encoders.mpnet and core.models.encoders.word_pieces load it.  Shared: do not write into it."""
    return _folder(tmp_path_factory.mktemp("models") / "mpnet", make_tiny("mpnet"), word_tokenizer("bert"))


@pytest.fixture(scope="session")
def tiny_decoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base of a writer (core.models.language.writer).  Shared: do not write into it."""
    return tiny_decoder(tmp_path_factory.mktemp("models") / "decoder")


@pytest.fixture(scope="session")
def tiny_t5_folder(tmp_path_factory: pytest.TempPathFactory, make_tiny: Callable[..., Any]) -> Path:
    """A T5 with its tokenizer, as AutoModelForSeq2SeqLM and AutoTokenizer load it.  Shared: do not write into it."""
    return _folder(tmp_path_factory.mktemp("models") / "t5", make_tiny("t5"), word_tokenizer("t5"))
