"""Estimates how many tokens a text has for a language model whose tokenizer isn't known.

The pieces are those into which tokenizers of the GPT family split a text before they look for tokens (`tiktoken`, cl100k_base and
o200k_base); most are one token.  On passages, prompts, Markdown, Python, JSON and tables they have 0.98 to 1.11
times the estimate, and smaller vocabularies up to 1.35 times.  Other languages and scripts follow o200k_base (0.9 to 1.7 times), which needs
the fewest tokens.
"""

from __future__ import annotations

import regex

LETTERS_PER_TOKEN = 8  # of a Latin word
OTHER_LETTERS_PER_TOKEN = 4  # of words in scripts such as Cyrillic, Arabic, Devanagari, Thai
TOKENS_PER_CHARACTER = 0.65  # of Chinese, Japanese and Korean
_REPEATED = regex.compile(r"(.)\1{3,}")  # a run of one character, which is few tokens
_PIECE = regex.compile(
    r"(?P<latin>\p{Latin}[\p{Latin}\p{M}'’]*)|(?P<character>[\p{Han}\p{Hiragana}\p{Katakana}ー\p{Hangul}])|(?P<other>[\p{L}\p{M}]+)"
    r"|\p{Nd}{1,4}|[^\s\p{L}\p{M}\p{Nd}]+|\n+"
)


def estimated_tokens(text: str) -> int:
    """
    >>> estimated_tokens("Who played Maria in 1961?"), estimated_tokens("=" * 5000), estimated_tokens("")
    (6, 1, 0)
    """
    total = 0.0
    for piece in _PIECE.finditer(_REPEATED.sub(r"\1\1\1", text)):
        match piece.lastgroup:
            case "latin":
                total += 1 + (len(piece.group()) - 1) // LETTERS_PER_TOKEN
            case "character":
                total += TOKENS_PER_CHARACTER
            case "other":
                total += max(1.0, len(piece.group()) / OTHER_LETTERS_PER_TOKEN)
            case _:
                total += 1
    return round(total)
