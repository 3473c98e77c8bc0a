"""Answer normalisation, token overlap, finding answers in text, and word chunking.

Sources: `normalize_answer` is the definition of SQuAD's evaluate-v1.1.py as AmbigQA's script uses it; `has_answer` follows DPR's
token-wise match (dpr/data/qa_validation.py) with a simpler tokeniser, for which each character of a script without spaces is a
token; chunks of 100 words as in DPR (section 4.1).
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import regex

from core.types import Evidence, RetrievedPassage

_PUNCTUATION = str.maketrans("", "", string.punctuation)
CHUNK_CHARS = 1500  # a chunk of 100 words has about 600; scripts without spaces would make one endless word
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ーｰﾞﾟ\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"  # written without spaces between words
_CHARACTER = rf"[[\p{{L}}\p{{N}}]&&[{_UNSPACED}]]\p{{M}}*"  # combining marks stay with their letter
_WORD = rf"[[\p{{L}}\p{{N}}_]--[{_UNSPACED}]][[\p{{L}}\p{{N}}\p{{M}}_\u200c\u200d]--[{_UNSPACED}]]*"
_ASCII_TOKEN = re.compile(r"\w+", re.ASCII)
_TOKEN = regex.compile(rf"{_WORD}|{_CHARACTER}", regex.V1)
_UNSPACED_RUN = regex.compile(rf"(?:{_CHARACTER})+", regex.V1)
_OTHER_LETTER = regex.compile(r"[\p{L}--\p{Latin}]", regex.V1)
STOPWORDS = frozenset(
    "a an the of in on at to for from by with and or is are was were be been being do does did has have had who whom whose what "
    "which when where why how many much that this these those it its as".split()
)


def normalize_answer(text: str) -> str:
    """Lower case, ASCII punctuation deleted, articles removed, white space collapsed.

    >>> normalize_answer("The  Beatles'")
    'beatles'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


@lru_cache(maxsize=65_536)
def answer_key(text: str) -> str:
    """The key by which answers are compared: the normalised text, or the case-folded text if normalisation leaves nothing ("The", "?!").

    >>> answer_key("The Beatles"), answer_key("The")
    ('beatles', 'the')
    """
    return normalize_answer(text) or text.casefold().strip()


def answer_keys(aliases: Iterable[str]) -> frozenset[str]:
    """The keys of one answer's aliases: two answers are the same if they share one.

    >>> sorted(answer_keys(["The Beatles", "beatles!", "Fab Four"]))
    ['beatles', 'fab four']
    """
    return frozenset(key for alias in aliases if (key := answer_key(alias)))


def word_tokens(text: str) -> list[str]:
    """Lower-case word tokens without punctuation; accents composed (NFC).  A character of a script without spaces is a token.

    >>> word_tokens("GDP of 東京")
    ['gdp', 'of', '東', '京']
    """
    if text.isascii():
        return _ASCII_TOKEN.findall(text.lower())
    tokens: list[str] = _TOKEN.findall(unicodedata.normalize("NFC", text).lower())
    return tokens


def unspaced_runs(text: str) -> tuple[list[str], str]:
    """The runs of characters of scripts without spaces, and the text with a space for each.

    >>> unspaced_runs("GDPは東京")
    (['は東京'], 'GDP ')
    """
    runs = [] if text.isascii() else _UNSPACED_RUN.findall(text)
    return runs, _UNSPACED_RUN.sub(" ", text) if runs else text


def mostly_other_letters(text: str) -> bool:
    """True if more than a quarter of the characters are letters of another script than the Latin one (a script's vowel signs are not letters)."""
    return not text.isascii() and 4 * len(_OTHER_LETTER.findall(text)) > len(text)


def contains_tokens(haystack: Sequence[str], needle: Sequence[str]) -> bool:
    """True if `needle` is a contiguous run of `haystack`; an empty needle is never contained."""
    n = len(needle)
    return n > 0 and any(list(haystack[i : i + n]) == list(needle) for i in range(len(haystack) - n + 1))


def has_answer(text: str, aliases: Iterable[str]) -> bool:
    """DPR's test: some alias occurs in the text, token by token."""
    tokens = word_tokens(text)
    return any(contains_tokens(tokens, word_tokens(alias)) for alias in aliases)


def overlapping(a: str, b: str) -> bool:
    """True if the words of one answer are a contiguous part of the other's (equal ones included)."""
    x, y = word_tokens(normalize_answer(a)), word_tokens(normalize_answer(b))
    return contains_tokens(x, y) or contains_tokens(y, x)


def shares_words(answer: str, others: Iterable[str]) -> bool:
    """True if the answer equals, contains or is contained in one of the others."""
    return any(overlapping(answer, other) for other in others)


def content_words(text: str) -> list[str]:
    return [w for w in word_tokens(text) if w not in STOPWORDS]


def split_words(text: str, longest: int = CHUNK_CHARS) -> list[str]:
    """Words separated by white space; longer ones are cut every `longest` characters."""
    return [word[i : i + longest] for word in text.split() for i in range(0, len(word), longest)]


def chunk_length(tokens: Sequence[str], start: int = 0, size: int = 100, chars: int = CHUNK_CHARS) -> int:
    """The number of words in the chunk from `start`: at most `size` words and `chars` characters including spaces; at least 1."""
    total = -1
    for n, word in enumerate(tokens[start : start + size]):
        total += len(word) + 1
        if n and total > chars:
            return n
    return min(size, len(tokens) - start)


def chunk_words(text: str, size: int = 100, chars: int = CHUNK_CHARS) -> Iterator[str]:
    """Consecutive chunks of at most `size` words and `chars` characters; longer words are cut.  The last chunk may be shorter."""
    tokens = split_words(text, chars)
    start = 0
    while start < len(tokens):
        end = start + chunk_length(tokens, start, size, chars)
        yield " ".join(tokens[start:end])
        start = end


def find_spans(text: str, answer: str) -> list[tuple[int, int]]:
    """Character spans of `text` whose words are those of `answer`, ignoring case, punctuation between words and white space."""
    want = word_tokens(answer)
    found = list((_ASCII_TOKEN if text.isascii() else _TOKEN).finditer(text))
    have = [unicodedata.normalize("NFC", m.group()).lower() for m in found]
    n = len(want)
    if not n:
        return []
    return [(found[i].start(), found[i + n - 1].end()) for i in range(len(have) - n + 1) if have[i : i + n] == want]


def occurrences(answer: str, passages: Sequence[RetrievedPassage], limit: int = 20) -> tuple[Evidence, ...]:
    """Every occurrence of the answer's words, in the order of the passages; at most `limit`.

    None for answers shorter than 4 characters, or 2 of a script without spaces: "3" occurs in many passages that do not support it; a year
    is long enough.
    """
    if len(answer) < (2 if _UNSPACED_RUN.search(answer) else 4):
        return ()
    out = [
        Evidence(p.passage.id, start, end, p.passage.text[start:end])
        for p in passages
        for start, end in find_spans(p.passage.text, answer)
    ]
    return tuple(out[:limit])


def text_problem(text: str, *, line: bool = False) -> str | None:
    """Why a text cannot be stored or shown, or None.  `line`: a single line, which may not contain control characters either.

    NUL truncates SQL's `length()`, and PostgreSQL refuses it; a lone surrogate cannot be written as UTF-8.

    >>> text_problem("one\\ttwo"), text_problem("a\\tb", line=True), text_problem("\\ud800")
    (None, 'it contains a control character (U+0009)', 'it contains a lone surrogate (half of a character)')
    """
    if "\0" in text:
        return "it contains a NUL character"
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            return "it contains a lone surrogate (half of a character)"
    if line and (strange := next((c for c in text if unicodedata.category(c) == "Cc"), "")):
        return f"it contains a control character (U+{ord(strange):04X})"
    return None


def storable(text: str) -> str:
    """The text with "?" for lone surrogates, which occur in damaged PDFs and in file names of another encoding."""
    return text.encode("utf-8", "replace").decode()


def listed(n: int, what: str) -> str:
    """ "1 passage", "3 passages"."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def question_key(text: str) -> str:
    """Words alone: case, punctuation and white space do not make another question.

    >>> question_key("Who won  the U.S. Open?") == question_key("who won the u s open")
    True
    """
    return " ".join(word_tokens(text))
