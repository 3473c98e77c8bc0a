"""A tokenizer loaded from tokenizer.json with only the `tokenizers` library, for bases that are a plain BERT.

Same calls and results as transformers' fast tokenizers (compared in tests/models/encoders/test_word_pieces.py), whose import takes 1.5 seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Encoding, Tokenizer

FILE = "tokenizer.json"


class Encoded(dict[str, Any]):
    """Lists of ids by name, one list per row; for a single text, the list of its only row."""

    def __init__(self, rows: Sequence[Encoding], of_text: Sequence[int], single: bool) -> None:
        values: dict[str, list[Any]] = {
            "input_ids": [r.ids for r in rows],
            "token_type_ids": [r.type_ids for r in rows],
            "offset_mapping": [r.offsets for r in rows],
        }
        super().__init__({name: row[0] for name, row in values.items()} if single else values)
        self["overflow_to_sample_mapping"] = list(of_text)
        self._rows = rows

    def sequence_ids(self, row: int = 0) -> list[int | None]:
        """The text of the pair that each token is from, 0 or 1; None for special tokens."""
        ids: list[int | None] = self._rows[row].sequence_ids
        return ids


class WordPieces:
    """Not thread-safe, because the tokenizer holds the truncation as state."""

    def __init__(self, folder: str | Path) -> None:
        """Raises OSError if the file is missing, ValueError if it is damaged."""
        text = (Path(folder) / FILE).read_text(encoding="utf-8")
        try:
            self._tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # the library raises bare Exceptions
            raise ValueError(f"{FILE} is damaged: {error}") from None
        self._tokenizer.no_padding()

    @property
    def pad_token_id(self) -> int:
        token_id = self._tokenizer.token_to_id("[PAD]")
        return 0 if token_id is None else int(token_id)

    def __call__(
        self,
        text: str | Sequence[str],
        text_pair: str | Sequence[str] | None = None,
        *,
        add_special_tokens: bool = True,
        truncation: bool | str = False,
        max_length: int = 0,
        stride: int = 0,
        return_overflowing_tokens: bool = False,
        **_: bool,  # which lists to return: always all
    ) -> Encoded:
        """`truncation`: True (the longest first) or "only_second", to `max_length` tokens, special ones included."""
        if truncation:
            strategy = truncation if isinstance(truncation, str) else "longest_first"
            self._tokenizer.enable_truncation(max_length, stride=stride, strategy=strategy)
        else:
            self._tokenizer.no_truncation()
        single = isinstance(text, str)
        texts = [text] if isinstance(text, str) else list(text)
        # an empty second text counts as none, as in transformers: a prompt without answers ends with the question
        pairs = ([text_pair] if text_pair else None) if isinstance(text_pair, str) else text_pair
        inputs: list[Any] = texts if pairs is None else list(zip(texts, pairs, strict=True))
        rows: list[Encoding] = []
        of_text: list[int] = []
        for i, first in enumerate(self._tokenizer.encode_batch(inputs, add_special_tokens=add_special_tokens)):
            windows = [first, *first.overflowing] if return_overflowing_tokens else [first]
            rows += windows
            of_text += [i] * len(windows)
        return Encoded(rows, of_text, single and not return_overflowing_tokens)
