from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest

from core.models.encoders.word_pieces import WordPieces
from core.models.language.tokens import estimated_tokens
from core.models.loading.packaged import MINILM, packaged_folder

ROOT = Path(__file__).parents[3]


def test_the_estimate_is_close_to_a_tokenizer_s_count_of_every_passage() -> None:
    tokenizer = WordPieces(packaged_folder(MINILM))
    rows = (ROOT / "data" / "starter" / "passages.tsv").read_text(encoding="utf-8").splitlines()[1:]
    texts = [row.split("\t")[1] for row in rows]
    counts = [len(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]
    ratios = [estimated_tokens(text) / count for text, count in zip(texts, counts, strict=True)]
    assert 0.95 < statistics.median(ratios) < 1.05
    assert min(ratios) > 0.7
    assert max(ratios) < 1.25


@pytest.mark.parametrize("text", ["a", " ", "1", "(", "é", "ab ", "{1: 2}\n", "東", "ด"])
def test_time_grows_in_proportion(text: str) -> None:
    start = time.process_time()
    estimated_tokens((text * 200_000)[:200_000])
    assert time.process_time() - start < 2.0
