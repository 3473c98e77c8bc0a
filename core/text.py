"""When two texts are the same, token overlap, finding answers in text, and word chunking.

"The same answer" has three meanings:
- equal for scoring, `normalize_answer`: AmbigQA's script, letter by letter.  For metrics, references and training targets;
- equal for display, `answer_key`: the same in `comparable` form too, so that a typographic quote or an accent in two code points is no other
  answer.  For what people see and select, agreement, duplicates and exports; likewise `question_key` for questions;
- `overlapping`: one contains the other's words.

Sources: `normalize_answer` is the definition of SQuAD's evaluate-v1.1.py as AmbigQA's script uses it; `has_answer` follows DPR's
token-wise match (dpr/data/qa_validation.py) with a simpler tokeniser, for which each character of a script without spaces is a
token; chunks of 100 words as in DPR (section 4.1); invisible characters are Unicode's Default_Ignorable_Code_Point
(DerivedCoreProperties.txt), confusable ones a part of confusables.txt (UTS #39).
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
_NUMERAL = re.compile(r"[2-9]|x{0,3}(?:i{1,3}|i?v|vi{1,3}|ix|x)", re.IGNORECASE)
_UNSPACED_RUN = regex.compile(rf"(?:{_CHARACTER})+", regex.V1)
_SEPARATORS = regex.compile(r"[\p{P}--[\#%\&@*]]", regex.V1)  # punctuation, except signs that distinguish names ("C#", "C++")
_OTHER_LETTER = regex.compile(r"[\p{L}--\p{Latin}]", regex.V1)
STOPWORDS = frozenset(
    "a an the of in on at to for from by with and or is are was were be been being do does did has have had who whom whose what "
    "which when where why how many much that this these those it its as".split()
)


_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_STRAIGHT = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2035\u02b9\u02bb\u02bc\u02bd\u02c8\u00b4`\u2039\u203a\u275b\u275c", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb\u301d\u301e\u301f\u275d\u275e", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u2e3a\u2e3b\ufe31\ufe32\ufe58\ufe63", "-")
)


@lru_cache(maxsize=65_536)
def comparable(text: str) -> str:
    """The form in which texts are compared: compatibility form (NFKC), straight quotes and dashes, case folded, nothing invisible, one space
    between words.

    >>> comparable("O\u2019Rourke\u00a0\u2013  Cafe\u0301")
    "o'rourke - café"
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text).translate(_STRAIGHT)).translate(_STRAIGHT)
        text = unicodedata.normalize("NFKC", text.casefold())
    return " ".join(text.casefold().split())


def normalize_answer(text: str) -> str:
    """Lower case, ASCII punctuation deleted, articles removed, white space collapsed.

    >>> normalize_answer("The  Beatles'")
    'beatles'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def answer_words(text: str) -> str:
    """`answer_key`, but empty for an answer without content, such as an article."""
    return normalize_answer(comparable(text))


@lru_cache(maxsize=65_536)
def answer_key(text: str) -> str:
    """The key by which answers are compared for display: the normalised comparable text, or the comparable text if normalisation leaves
    nothing ("The", "?!").

    >>> answer_key("The Beatles"), answer_key("The"), answer_key("1914\u20131918") == answer_key("1914-1918")
    ('beatles', 'the', True)
    """
    return answer_words(text) or comparable(text)


def equal_for_display(a: str, b: str) -> bool:
    """
    >>> equal_for_display("O\u2019Rourke", "O'Rourke"), normalize_answer("O\u2019Rourke") == normalize_answer("O'Rourke")
    (True, False)
    """
    return answer_key(a) == answer_key(b)


def answer_keys(aliases: Iterable[str]) -> frozenset[str]:
    """The keys of one answer's aliases: two answers are the same if they share one.

    >>> sorted(answer_keys(["The Beatles", "beatles!", "Fab Four"]))
    ['beatles', 'fab four']
    """
    return frozenset(key for alias in aliases if (key := answer_key(alias)))


def question_key(text: str) -> str:
    """The key by which questions are compared: the comparable text without punctuation.

    >>> question_key("Who won  the U.S. Open ?") == question_key("who won the u s open")
    True
    >>> question_key("Who made C?") == question_key("Who made C++?")
    False
    """
    return " ".join(_SEPARATORS.sub(" ", comparable(text)).split())


# ---------------------------------------------------------------- names

# Letters of other scripts that look like a Latin one: Cyrillic, Greek, Armenian, and variants of Latin letters.
_LOOKS = str.maketrans(
    dict(zip("АВЕЅІЈКМНОРСТУХЗҺԌԚԜӀҮ", "ABESIJKMHOPCTYX3HGQWIY", strict=True))
    | dict(zip("аеорсухіјѕһԁԛԝкмтвнгзӏүԍ", "aeopcyxijshdqwkmtbhr3lyg", strict=True))
    | dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ", "ABEZHIKMNOPTYXCJ", strict=True))
    | dict(zip("αβγεικνορτυχωϲϳ", "abyeikvoptuxwcj", strict=True))
    | dict(zip("ՍՕՏԼաոսօցհյզ", "UOSLwnuoghjq", strict=True))
    | dict(zip("ıɩɪɑɡʋƖ", "iiiagvI", strict=True))
)
_UPRIGHT = str.maketrans("I|", "ll")


def stored_name(text: str) -> str:
    """A name as it is stored: NFC, without invisible and direction-changing characters, and without white space at its ends.

    >>> stored_name("Jose\u0301\u200b\u202e ") == "Jos\u00e9"
    True
    """
    return text.strip() if text.isascii() else unicodedata.normalize("NFC", _INVISIBLE.sub("", text)).strip()


@lru_cache(maxsize=65_536)
def name_shapes(name: str) -> frozenset[str]:
    """What a name looks like: two names that share a shape are taken for one another (a part of UTS #39's skeletons; case is ignored).

    >>> name_shapes("Ann") & name_shapes("\u0410nn") != frozenset(), name_shapes("Bill") & name_shapes("BiII") != frozenset()
    (True, True)
    >>> name_shapes("Ann") & name_shapes("Anna")
    frozenset()
    """
    plain = unicodedata.normalize("NFKC", name).translate(_LOOKS)
    return frozenset(comparable(shape) for shape in (plain, plain.translate(_UPRIGHT)))


def confusable_name(name: str, others: Iterable[str]) -> str:
    """The first of the other names that looks like this one without being it; "" if there is none."""
    shapes = name_shapes(name)
    return next((other for other in others if other != name and shapes & name_shapes(other)), "")


# ---------------------------------------------------------------- words


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


def _answer_tokens(text: str) -> list[str]:
    return word_tokens(answer_words(text))


def overlapping(a: str, b: str) -> bool:
    """True if the words of one answer are a contiguous part of the other's (equal ones included)."""
    x, y = _answer_tokens(a), _answer_tokens(b)
    return contains_tokens(x, y) or contains_tokens(y, x)


def shares_words(answer: str, others: Iterable[str]) -> bool:
    """True if the answer equals, contains or is contained in one of the others, unless a numeral at the end tells them apart.

    >>> shares_words("Robert Wise", ["director Robert Wise"]), shares_words("Shining II", ["The Shining"])
    (True, False)
    """
    return any(overlapping(answer, other) and not _numbered_apart(answer, other) for other in others)


def _numbered_apart(a: str, b: str) -> bool:
    """True if one is the other and a numeral: a sequel, a monarch, a version."""
    short, long = sorted((_answer_tokens(a), _answer_tokens(b)), key=len)
    return bool(short) and long[:-1] == short and short[-1].isalpha() and bool(_NUMERAL.fullmatch(long[-1]))


def content_words(text: str) -> list[str]:
    return [w for w in word_tokens(text) if w not in STOPWORDS]


def split_words(text: str) -> list[str]:
    """Words separated by white space; longer ones are cut every CHUNK_CHARS characters."""
    return [word[i : i + CHUNK_CHARS] for word in text.split() for i in range(0, len(word), CHUNK_CHARS)]


def chunk_length(tokens: Sequence[str], start: int = 0, size: int = 100) -> int:
    """The number of words in the chunk from `start`: at most `size` words and CHUNK_CHARS characters including spaces; at least 1."""
    total = -1
    for n, word in enumerate(tokens[start : start + size]):
        total += len(word) + 1
        if n and total > CHUNK_CHARS:
            return n
    return min(size, len(tokens) - start)


def chunk_words(text: str, size: int = 100) -> Iterator[str]:
    """Consecutive chunks of at most `size` words and CHUNK_CHARS characters; longer words are cut.  The last chunk may be shorter."""
    tokens = split_words(text)
    start = 0
    while start < len(tokens):
        end = start + chunk_length(tokens, start, size)
        yield " ".join(tokens[start:end])
        start = end


def find_spans(text: str, answer: str) -> list[tuple[int, int]]:
    """Character spans of `text` whose words are those of `answer`, ignoring case, punctuation between words and white space."""
    words = word_tokens(answer)
    matches = list((_ASCII_TOKEN if text.isascii() else _TOKEN).finditer(text))
    tokens = [unicodedata.normalize("NFC", m.group()).lower() for m in matches]
    n = len(words)
    if not n:
        return []
    return [(matches[i].start(), matches[i + n - 1].end()) for i in range(len(tokens) - n + 1) if tokens[i : i + n] == words]


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


def listed(n: int, noun: str) -> str:
    """ "1 passage", "3,000 passages"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
