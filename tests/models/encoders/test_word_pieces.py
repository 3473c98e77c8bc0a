"""core.models.encoders.word_pieces gives what transformers' fast tokenizer gives, for every call that the rows are made with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from core.errors import CheckpointError
from core.models.encoders.word_pieces import WordPieces
from core.models.loading.packaged import MINILM, packaged_folder
from core.models.span.model import load_tokenizer
from core.models.span.rows import clip, passage_rows, prompt_row

LONG = "Zürich, the largest city — 2,000 años; 東京 isn't. " * 20
TEXT = st.text(max_size=80) | st.sampled_from(["", LONG, "a [SEP] b", "don't", "\u200b", "🎬 film"])


@pytest.fixture(scope="module")
def both() -> tuple[Any, Any]:
    theirs = AutoTokenizer.from_pretrained(packaged_folder(MINILM), use_fast=True)
    theirs.model_max_length = 1 << 30
    return WordPieces(packaged_folder(MINILM)), theirs


@settings(max_examples=60, deadline=None)
@given(question=TEXT, passages=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=3), previous=st.lists(TEXT, max_size=3))
def test_rows_and_prompts_are_those_of_transformers(
    both: tuple[Any, Any], question: str, passages: list[tuple[str, str]], previous: list[str]
) -> None:
    for make in (
        lambda t: passage_rows(t, question, passages, max_tokens=48, max_question_tokens=12),
        lambda t: prompt_row(t, question, previous, 32),
        lambda t: clip(t, question, 5),
    ):
        ours, theirs = map(make, both)
        assert ours == theirs


def test_single_texts_batches_and_cuts(both: tuple[Any, Any]) -> None:
    for text, options in (
        (["Who played Maria?", "", LONG], {"truncation": True, "max_length": 20}),
        (LONG, {}),  # an earlier cut is not remembered
        ("b", {"add_special_tokens": False}),
    ):
        ours, theirs = (tokenizer(text, **options)["input_ids"] for tokenizer in both)
        assert ours == theirs
    assert both[0].pad_token_id == both[1].pad_token_id


def test_a_missing_or_damaged_file_says_so(tiny_bert_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        WordPieces(tmp_path)
    with pytest.raises(CheckpointError, match=r"the tokenizer of base model .* cannot be loaded"):
        load_tokenizer(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match=r"tokenizer.json is damaged"):
        WordPieces(tmp_path)
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((tiny_bert_folder / name).read_bytes())
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        load_tokenizer(str(tmp_path))
