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
    ours, theirs = both
    own, other = (passage_rows(t, question, passages, max_tokens=48, max_question_tokens=12) for t in (ours, theirs))
    assert own == other
    assert prompt_row(ours, question, previous, 32) == prompt_row(theirs, question, previous, 32)
    assert clip(ours, question, 5) == clip(theirs, question, 5)


def test_single_texts_batches_and_cuts(both: tuple[Any, Any]) -> None:
    ours, theirs = both
    texts = ["Who played Maria?", "", LONG]
    assert (
        ours(texts, truncation=True, max_length=20)["input_ids"] == theirs(texts, truncation=True, max_length=20)["input_ids"]
    )
    assert ours(LONG)["input_ids"] == theirs(LONG)["input_ids"]  # an earlier cut is not remembered
    assert ours("b", add_special_tokens=False)["input_ids"] == theirs("b", add_special_tokens=False)["input_ids"]
    assert ours.pad_token_id == theirs.pad_token_id


def test_a_missing_or_damaged_file_says_so(tiny_bert_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        WordPieces(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match=r"tokenizer.json is damaged"):
        WordPieces(tmp_path)
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((tiny_bert_folder / name).read_bytes())
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        load_tokenizer(str(tmp_path))
