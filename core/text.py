"""Comparison of texts, token overlap, finding answers in text, and word chunking.

Two comparisons decide whether two answers are the same (docs/metrics.md has examples of each):
- `normalize_answer` scores: AmbigQA's script, letter by letter, for which 1.5 is 15.  Metrics and nothing else;
- `answer_key` compares: what people see and select, agreement, duplicates, training targets and exports.  It ignores how an answer is
  written and keeps what carries meaning: decimal points, signs, ratios, exponents.  `question_key` does the same for questions.
`overlapping` asks whether one answer contains the other's words, `find_spans` and `mentions` where a text contains an answer, both with
numerals and names such as "C++" in one piece.

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
from datetime import UTC, date, datetime
from functools import lru_cache

import regex

from core.types import Evidence, RetrievedPassage

_PUNCTUATION = str.maketrans("", "", string.punctuation)
PASSAGE_WORDS = 100  # of a passage, in corpora, pasted texts and training: DPR, section 4.1
CHUNK_CHARS = 1500  # a chunk of 100 words has about 600; scripts without spaces would make one endless word
ARTICLES = frozenset({"a", "an", "the"})
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ーｰﾞﾟ\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"  # written without spaces between words
_CHARACTER = rf"[[\p{{L}}\p{{N}}]&&[{_UNSPACED}]]\p{{M}}*"  # combining marks stay with their letter
_WORD = rf"[[\p{{L}}\p{{N}}_]--[{_UNSPACED}]][[\p{{L}}\p{{N}}\p{{M}}_\u200c\u200d]--[{_UNSPACED}]]*"
_ASCII_TOKEN = re.compile(r"\w+", re.ASCII)
_TOKEN = regex.compile(rf"{_WORD}|{_CHARACTER}", regex.V1)
_NUMERAL = re.compile(r"[2-9]|x{0,3}(?:i{1,3}|i?v|vi{1,3}|ix|x)", re.IGNORECASE)
_UNSPACED_RUN = regex.compile(rf"(?:{_CHARACTER})+", regex.V1)
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
    | {"\u2044": "/", "\u2215": "/", "\u2236": ":", "\u266f": "#"}
)


_UNITS = regex.compile("[\u3371-\u33df]")  # units in one character
# Characters whose compatibility form loses what they mean: raised and lowered digits, and fractions
_MARKED = regex.compile("(?P<raised>[⁰¹²³⁴-⁾]+|ⁿ(?!ᵈ))|(?P<lowered>[₀-₎]+)|[¼½¾⅐-⅟↉]")


def _spelled(unit: regex.Match[str]) -> str:
    """
    >>> _UNITS.sub(_spelled, "\u33a1") == "m\u00b2"
    True
    """
    _, *codes = unicodedata.decomposition(unit.group()).split()
    return "".join(chr(int(code, 16)) for code in codes)


def _in_line(marks: regex.Match[str]) -> str:
    """An exponent as "^2", an index after a digit as "_2", a fraction as "1/2" with a space after a whole number."""
    text, before = marks.group(), marks.string[max(0, marks.start() - 1) : marks.start()]
    if marks["raised"]:
        return f"^{text}" if before.isalnum() or before in tuple(")]") else text
    if marks["lowered"]:
        return f"_{text}" if before.isdecimal() else text
    return f" {text}" if before.isdecimal() else text


@lru_cache(maxsize=65_536)
def comparable(text: str) -> str:
    """The form in which texts are compared: compatibility form (NFKC) with exponents and fractions in line, straight quotes and dashes, case
    folded, nothing invisible, one space between words.

    >>> comparable("O\u2019Rourke\u00a0\u2013  Cafe\u0301"), comparable("10\u00b2 \uff2b\uff4d"), comparable("1\u00bd")
    ("o'rourke - café", '10^2 km', '1 1/2')
    """
    if not text.isascii():
        text = _MARKED.sub(_in_line, _UNITS.sub(_spelled, _INVISIBLE.sub("", text)))
        text = unicodedata.normalize("NFKC", text.translate(_STRAIGHT)).translate(_STRAIGHT)
        text = unicodedata.normalize("NFKC", text.casefold())
    return " ".join(text.casefold().split())


def normalize_answer(text: str) -> str:
    """Lower case, ASCII punctuation deleted, articles removed, white space collapsed.

    >>> normalize_answer("The  Beatles'"), normalize_answer("1.5") == normalize_answer("15")
    ('beatles', True)
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


_SIGNS = regex.compile(
    r"([\p{P}+<=>\^`|~]+)"
)  # what a key leaves out unless it carries meaning; signs of currencies are parts of words
_NAME_SIGNS = frozenset("#&@")  # that questions keep: "R&B"
# Digits in groups of three, with one kind of separator throughout
_GROUPED = regex.compile(
    r"(?<!\p{Nd}|\p{Nd}[.,'])(?!0)\p{Nd}{1,3}(?:(?:,\p{Nd}{3})+(?!,?\p{Nd})|(?:'\p{Nd}{3})+(?!'?\p{Nd}))"
    r"|(?<!\p{Nd}|\p{Nd}[.,])(?!0)\p{Nd}{1,3}(?:[\u00a0\u2007\u2009\u202f]\p{Nd}{3})+(?!\p{Nd})"
)
# Spaces inside one value: 1914 - 1918, 3 : 1, 40 %, $ 40, > 5
_INNER_SPACE = regex.compile(
    r"(?<=\p{Nd}) (?=[-/:×*+^=<>] \p{Nd})|(?<=\p{Nd} [-/:×*+^=<>]) (?=\p{Nd})|(?<=\p{Nd}) (?=[%‰٪])|(?<=[\p{Sc}<>≤≥±]) (?=\p{Nd})"
)


def _ungrouped(text: str) -> str:
    """The text with "10000" for "10,000"."""
    return str(_GROUPED.sub(lambda m: "".join(c for c in m.group() if c.isdecimal()), text))


def _is_number(character: str) -> bool:
    return character.isdecimal() or unicodedata.category(character) == "Sc"


def _before_numeral(signs: str) -> str:
    """The meaningful signs at the start of a numeral: a comparison, a minus, and the decimal point of a numeral without a whole
    part."""
    rest = signs if signs.endswith("..") else signs.removesuffix(".")
    minus = "-" if rest.endswith("-") and not rest.endswith("--") else ""
    comparison = next((c for c in ("<=", ">=", "<", ">") if c in rest), "")
    sign = "±" if minus and "+" in rest else comparison + minus
    return sign + ("0." if rest != signs else "")


def _meaningful(before: str, signs: str, after: str, *, is_first: bool) -> str:
    """The signs that carry meaning between two parts of a word, which are empty at its ends.  `is_first`: `before` begins the word."""
    if not before:
        starts_numeral = after[:1].isdecimal() or (after[1:2].isdecimal() and _is_number(after[0]))
        return _before_numeral(signs) if starts_numeral else ""
    if after and _is_number(before[-1]) and _is_number(after[0]):
        return signs  # 3.11, 2-1, 3:1, 9/11, 5%-10%
    if "^" in signs:
        return "^" + ("-" if signs.endswith("-") else "+" if signs.endswith("+") and not after else "")
    if after[:1].isdecimal() and signs == "-" and before[-1] == "e" and before[-2:-1].isdecimal():
        return signs  # 1e-5
    if after and signs == "/":
        return signs  # m/s
    if not after and is_first and len(before) < 3 and before.isalpha() and signs[0] in "-*":
        return signs[0]  # the blood group O-, the grade A*
    length = len(signs) - len(signs.lstrip("+#%‰٪" if _is_number(before[-1]) else "+#"))
    return signs[:length]  # C++, F#, 18+, 40%


def _key(text: str, *, is_question: bool) -> str:
    """The comparable text without signs that carry no meaning: deleted in an answer, a space in a question."""
    words = []
    for word in _INNER_SPACE.sub("", _ungrouped(comparable(text if text.isascii() else _ungrouped(text)))).split():
        parts = _SIGNS.split(word)  # text, signs, text, ..., text
        first = 0 if parts[0] else 2  # the first that has text, where any has
        for i in range(1, len(parts), 2):
            signs = _meaningful(parts[i - 1], parts[i], parts[i + 1], is_first=i - 1 == first)
            if is_question and not signs:
                signs = "".join(c if c in _NAME_SIGNS else " " for c in parts[i])
            parts[i] = signs
        words.append("".join(parts))
    words = " ".join(words).split()
    if not is_question:
        words = _without_articles(words)
    key = " ".join(words)
    # what was left out may have parted a letter from its mark, or a numeral from its sign
    return str(_INNER_SPACE.sub("", key if key.isascii() else unicodedata.normalize("NFKC", key)))


def _without_articles(words: list[str]) -> list[str]:
    """The words without articles.  An article at the end stays, because it isn't one ("Vitamin A", "The")."""
    end = len(words)
    while end and words[end - 1] in ARTICLES:
        end -= 1
    return [*(w for w in words[:end] if w not in ARTICLES), *words[end:]]


@lru_cache(maxsize=65_536)
def answer_key(text: str) -> str:
    """The key by which answers are compared: the comparable text without articles and meaningless signs, or just the comparable
    text if nothing else remains ("?!").  A final article stays, because it isn't one ("Vitamin A", "The").

    >>> answer_key("The Beatles"), answer_key("The"), answer_key("1914\u20131918") == answer_key("1914 - 1918")
    ('beatles', 'the', True)
    >>> [answer_key(a) for a in ("1.5 million", "C++", "-40", "10\u00b2", "10,000", "U.S.", "40 %", "$5", "Hepatitis A")]
    ['1.5 million', 'c++', '-40', '10^2', '10000', 'us', '40%', '$5', 'hepatitis a']
    """
    return _key(text, is_question=False) or comparable(text)


def answer_words(text: str) -> str:
    """`answer_key`, but empty for an answer without content, such as an article or signs alone."""
    key = answer_key(text)
    return key if key not in ARTICLES and any(c.isalnum() for c in key) else ""


def answer_keys(aliases: Iterable[str]) -> frozenset[str]:
    """The keys of one answer's aliases: two answers are the same if they share one.

    >>> sorted(answer_keys(["The Beatles", "beatles!", "Fab Four"]))
    ['beatles', 'fab four']
    """
    return frozenset(key for alias in aliases if (key := answer_key(alias)))


@lru_cache(maxsize=65_536)
def question_key(text: str) -> str:
    """The key by which questions are compared: the comparable text without punctuation that carries no meaning.

    >>> question_key("Who won  the U.S. Open ?") == question_key("who won the u s open")
    True
    >>> question_key("Who made C?") == question_key("Who made C++?"), question_key("Is it 1.5?") == question_key("Is it 1 5?")
    (False, False)
    """
    return _key(text, is_question=True)


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
    """The shapes of a name.  Two names that share a shape can be mistaken for each other (a part of UTS #39's skeletons; case
    is ignored).

    >>> name_shapes("Ann") & name_shapes("\u0410nn") != frozenset(), name_shapes("Bill") & name_shapes("BiII") != frozenset()
    (True, True)
    >>> name_shapes("Ann") & name_shapes("Anna")
    frozenset()
    """
    plain = unicodedata.normalize("NFKC", name).translate(_LOOKS)
    return frozenset(comparable(shape) for shape in (plain, plain.translate(_UPRIGHT)))


def confusable_name(name: str, others: Iterable[str]) -> str:
    """The first of the other names that looks like this one without being equal; "" if there is none."""
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


_KEY_TOKEN = regex.compile(rf"{_CHARACTER}|(?:(?!{_CHARACTER})\S)+", regex.V1)


@lru_cache(maxsize=65_536)
def _answer_tokens(text: str) -> tuple[str, ...]:
    """The words of an answer's key, numerals with their signs; a character of a script without spaces is a word."""
    key = answer_words(text)
    words = key.split() if key.isascii() else _KEY_TOKEN.findall(key)
    return tuple(word for word in words if any(c.isalnum() for c in word))


def overlapping(a: str, b: str) -> bool:
    """True if the words of one answer are a contiguous part of the other's (equal ones included).

    >>> overlapping("1.5 million tonnes", "1.5 million"), overlapping("1.5 million", "5 million"), overlapping("C++", "C")
    (True, False, False)
    """
    return _contains(a, b) or _contains(b, a)


def _contains(answer: str, part: str) -> bool:
    words = _answer_tokens(part)
    if contains_tokens(_answer_tokens(answer), words):
        return True
    # an article at the end of the part ("in the") is one inside the answer ("in the town")
    return (
        bool(words)
        and words[-1] in ARTICLES
        and contains_tokens(word_tokens(comparable(answer)), word_tokens(comparable(part)))
    )


def shares_words(answer: str, others: Iterable[str]) -> bool:
    """True if the answer equals, contains or is contained in one of the others, unless a final numeral distinguishes them.

    >>> shares_words("Robert Wise", ["director Robert Wise"]), shares_words("Shining II", ["The Shining"])
    (True, False)
    """
    return any(overlapping(answer, other) and not _numbered_apart(answer, other) for other in others)


def _numbered_apart(a: str, b: str) -> bool:
    """True if one is the other followed by a numeral, such as a sequel, a monarch or a version."""
    short, long = sorted((_answer_tokens(a), _answer_tokens(b)), key=len)
    return bool(short) and long[:-1] == short and short[-1].isalpha() and bool(_NUMERAL.fullmatch(long[-1]))


def content_words(text: str) -> list[str]:
    return [w for w in word_tokens(text) if w not in STOPWORDS]


def split_words(text: str) -> list[str]:
    """Words separated by white space; longer ones are cut every CHUNK_CHARS characters."""
    return [word[i : i + CHUNK_CHARS] for word in text.split() for i in range(0, len(word), CHUNK_CHARS)]


def chunk_length(tokens: Sequence[str], start: int = 0, size: int = PASSAGE_WORDS) -> int:
    """The number of words in the chunk from `start`: at most `size` words and CHUNK_CHARS characters including spaces; at least 1."""
    total = -1
    for n, word in enumerate(tokens[start : start + size]):
        total += len(word) + 1
        if n and total > CHUNK_CHARS:
            return n
    return min(size, len(tokens) - start)


def chunk_words(text: str) -> Iterator[str]:
    """Consecutive chunks of at most PASSAGE_WORDS words and CHUNK_CHARS characters; longer words are cut.  The last chunk may be shorter."""
    tokens = split_words(text)
    start = 0
    while start < len(tokens):
        end = start + chunk_length(tokens, start)
        yield " ".join(tokens[start:end])
        start = end


# A word of a text as it is looked for: numerals in one piece with their minus, points and exponents, names with their signs.  Signs that
# a text may leave out or spell (%, $, the dash of a range) are words of their own.
_MINUS = r"[-\u2012\u2013\u2212]"
_RAISED = r"[⁰¹²³⁴-⁹]"
_FOUND = regex.compile(
    rf"(?:(?:(?<=^|[\s(\[\{{\"'“‘<>=~≈≤≥\p{{Sc}}]){_MINUS}(?=\p{{Sc}}?\.?\p{{Nd}})\p{{Sc}}?)?(?:(?<![\w.])\.(?=\p{{Nd}}))?{_WORD}"
    rf"(?:(?:(?<=\p{{Nd}})[.,'’:/٫·](?=\p{{Nd}})|(?<=\p{{Nd}}[eE]){_MINUS}(?=\p{{Nd}})|\^{_MINUS}?(?=\w)|⁻(?={_RAISED})){_WORD})*"
    r"(?:(?<=\p{L})(?:\+\+|[\#♯]|\+(?!\w)))?)"
    rf"|{_CHARACTER}|(?<=\p{{Nd}})(?:\s[-–—−]\s|[-–—−])(?=\p{{Nd}})|[%‰٪]|\p{{Sc}}|(?<=\p{{Nd}})\+(?!\w)|[<>≤≥±](?=\s?\p{{Sc}}?\p{{Nd}})",
    regex.V1,
)


@lru_cache(maxsize=65_536)
def _form(word: str) -> str:
    form = _ungrouped(comparable(word))
    return f"0{form}" if form[:1] == "." else form.replace("-.", "-0.") if form[:2] == "-." else form


def compared_words(text: str) -> tuple[str, ...]:
    """The words of a text in the form in which `find_spans` compares them.

    >>> compared_words("From \u221240 to 10,000")
    ('from', '-40', 'to', '10000')
    """
    return _words_in(text)[0]


@lru_cache(maxsize=1024)
def _words_in(text: str) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    """The words of a text in the form in which they are compared, and the characters of each."""
    matches = list(_FOUND.finditer(text))
    return tuple(_form(m.group()) for m in matches), tuple(m.span() for m in matches)


def find_spans(text: str, answer: str) -> list[tuple[int, int]]:
    """Character spans of `text` whose words are those of `answer`, ignoring case, other punctuation between words and white space.

    >>> [find_spans(text, "5 million") for text in ("some 5 million", "15 million", "1.5 million")]
    [[(5, 14)], [], []]
    >>> find_spans("of 10,000 tiles", "10000"), find_spans("from -40 to C++", "40"), find_spans("from -40 to C++", "C")
    ([(3, 9)], [], [])
    """
    words, (forms, places) = compared_words(answer), _words_in(text)
    n = len(words)
    if not n or not set(words) <= set(forms):
        return []
    return [(places[i][0], places[i + n - 1][1]) for i in range(len(forms) - n + 1) if forms[i : i + n] == words]


def mentions(text: str, aliases: Iterable[str]) -> bool:
    """True if some alias occurs in the text, as `find_spans` finds it."""
    return any(find_spans(text, alias) for alias in aliases)


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
    """The reason why a text can't be stored or shown, or None.  `line`: a single line, which may not contain control characters
    either.

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


def date_text(day: date) -> str:
    """A date in the form of every page, message and command.  Files have ISO dates.

    >>> date_text(date(2026, 1, 31))
    '2026-01-31'
    """
    return f"{day:%Y-%m-%d}"


def clock_text(moment: datetime) -> str:
    """The time of day, in the zone of this machine."""
    return f"{moment.astimezone():%H:%M:%S}"


def time_text(moment: datetime, *, utc: bool = False, seconds: bool = False) -> str:
    """Date and time in the zone of this machine, or in UTC, which it then names.

    >>> time_text(datetime(2026, 1, 31, 14, 5, tzinfo=UTC), utc=True)
    '2026-01-31 14:05 UTC'
    """
    moment = moment.astimezone(UTC if utc else None)
    return f"{date_text(moment)} {moment:%H:%M}{f':{moment:%S}' if seconds else ''}{' UTC' if utc else ''}"


def percent(value: float) -> str:
    return "<1%" if 0 < value < 0.01 else f"{value:.0%}"


def probability_text(value: float, is_calibrated: bool) -> str:
    """A system's probability in percent if it is calibrated, else as a plain score.

    >>> probability_text(0.942, True), probability_text(0.942, False), probability_text(0.001, False)
    ('94%', '0.94', '<0.01')
    """
    if is_calibrated:
        return percent(value)
    return "<0.01" if 0 < value < 0.01 else f"{value:.2f}"
