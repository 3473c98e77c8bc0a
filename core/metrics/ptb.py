"""Penn Treebank tokens as coco-caption makes them for captions, in pure Python.

Source: the conventions of the Penn Treebank (Marcus et al. 1993) as `PTBTokenizer` of Stanford CoreNLP 3.4.1 applies them when
coco-caption calls it (`-preserveLines -lowerCase`, punctuation tokens dropped).  Written from that program's behaviour, not from its
rules: compared as a black box on the 27,666 distinct questions of AmbigNQ (the figure is in the tests' docstring).  Known differences: emoticons
other than the most common, and white space inside telephone numbers.

At each position the longest matching rule wins, the earlier one on a tie, as in a generated lexer.
"""

from __future__ import annotations

import re
import unicodedata

# What coco-caption drops.  Brackets are in its list as -LRB-, but -lowerCase has made them -lrb-: they stay, as they do there.
PUNCTUATION = frozenset(
    ["''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", ".", "?", "!", ",", ":", "-", "--", "...", ";"]
)

_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u0670\u0900-\u0903\u093a-\u094f\u0b80-\u0bff\u0e31-\u0e4e"
_SMALL = "²³¹⁰⁴-⁹₀-₉¼-¾⅐-⅞"  # superscripts, subscripts and fractions stand alone
_L = rf"(?:[^\W\d_{_SMALL}]|[{_MARKS}])"  # a letter, or a mark upon one
_A = rf"(?:[^\W_{_SMALL}]|[{_MARKS}])"  # a letter or a digit
_APOS = r"['’\u0092]"
_WORD = rf"{_L}{_A}*(?:[.!?]{_L}{_A}*)*"  # P!nk, hello.world
_HYPHENATED = rf"{_A}+(?:\.{_A}+)*\.?(?:[-_](?:[dDlL]{_APOS})?{_A}+(?:\.{_L}{_A}*)*)+\.?"
_NUMBER = r"[-+]?\d*(?:[.,:]?\d)+"
_ENDS_WORD = r"(?![^\W_])"

_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_REPLACED = {
    "…": "...", "–": "--", "—": "--", "―": "--", "‘": "`", "’": "'", "“": "``", "”": "''", "«": "``", "»": "''", "‹": "`", "›": "'",
    "€": "$", "£": "#", "¢": "cents", "¤": "$", "½": "1/2", "¼": "1/4", "¾": "3/4", "⅓": "1/3", "⅔": "2/3",
    "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": "''", "&nbsp;": "", "&apos;": "'",
}  # fmt: skip

# Words of two tokens: the part before the cut is the group that matched.
_TWO = re.compile(
    rf"(?:(?:(can)not|(gim)me|(gon)na|(got)ta|(lem)me|(wan)na|(more){_APOS}n|({_APOS}t)is|({_APOS}t)was)(?![-'’_][^\W_])"
    rf"|({_L}+?)n{_APOS}t){_ENDS_WORD}",
    re.IGNORECASE,
)

_RULES = [
    re.compile(pattern)
    for pattern in (
        r"https?://[^\s\"<>|(){}]+[^\s\"<>|.!?(){},-]",
        r"(?:www\.)?[A-Za-z]\w*(?:\.\w+)*\.(?:com|net|org|edu)\b(?:/[^\s\"<>|().,?!]+)*",
        r"[\w.]+@[\w-]+(?:\.[\w-]+)*",
        r"[@#][A-Za-z]\w*",
        r"</?[A-Za-z][^<>]*>|&(?:amp|lt|gt|quot|nbsp|apos);|&#\d+;",
        rf"{_APOS}(?:[msdMSD]|re|ve|ll|RE|VE|LL){_ENDS_WORD}",
        rf"{_APOS}(?:em|n{_APOS}?|til|till|cause|\d\ds?){_ENDS_WORD}",
        # names and words with an inner apostrophe
        rf"[A-HJ-XZdlno]{_APOS}(?!(?:re|ve|ll|RE|VE|LL){_ENDS_WORD}){_L}{{2,}}(?:-{_L}+)*",
        rf"{_L}+[aeiouAEIOU]{_APOS}(?!(?:re|ve|ll|RE|VE|LL|[SDM]){_ENDS_WORD})[aeiouA-Z]{_L}*",
        rf"(?i:ev{_APOS}ry|nor{_APOS}easter|li{_APOS}l|e{_APOS}er|c{_APOS}mon|ol{_APOS}){_ENDS_WORD}",
        r"[A-Z]+(?:&[A-Z]+)+",
        rf"(?:{_L}\.)+(?:{_L}(?!{_L}))?",
        _WORD,
        _HYPHENATED,
        rf"{_A}+(?:/{_A}*{_L}{_A}*)+|{_L}{_A}*(?:/{_A}+)+",
        rf"{_L}+(?:/{_L}+)+(?:-{_L}+)+",
        r"\d+⁄\d+",
        _NUMBER,
        r"\d+(?:-\d+)+(?:/\d+)?|\d+(?:/\d+)+",
        rf"\d+(?:[.,/]\d+)*(?:-{_L}+)+",
        rf"\d+{_L}{_A}*",
        r"\(\d{3}\)(?= ?\d{3}[- ]\d{4}\b)",  # the area code of a telephone number
        r"[:;]-?[()]",
        r"[?!]+|\.\.+|-+|_+|\*+|``|''",
        rf"{_A}+",
        r"\S",
    )
]


def tokens(sentence: str) -> list[str]:
    """Lower-case tokens, punctuation included.

    >>> tokens("Who doesn't like the U.S.-based band (1990)?")
    ['who', 'does', "n't", 'like', 'the', 'u.s.-based', 'band', '-lrb-', '1990', '-rrb-', '?']
    """
    parts: list[str] = []
    position = 0
    while position < len(sentence):
        if sentence[position].isspace() or unicodedata.category(sentence[position]) == "Cf":  # nor invisible characters
            position += 1
            continue
        two = _TWO.match(sentence, position)
        if two:
            boundary = max(two.end(i) for i in range(1, _TWO.groups + 1))
            parts += [sentence[position:boundary], sentence[boundary : two.end()]]
            position = two.end()
            continue
        end = max(match.end() for rule in _RULES if (match := rule.match(sentence, position)))
        parts.append(sentence[position:end])
        position = end
    return [lowered for token in parts if (lowered := _lowered(token))]


def _lowered(token: str) -> str:
    if token in _REPLACED:
        return _REPLACED[token]
    if any(bracket in token for bracket in _BRACKETS) and not token.startswith("http"):
        token = "".join(_BRACKETS.get(c, c) for c in token)
    return token.lower().replace("’", "'").replace("\u0092", "'")


def caption_tokens(sentence: str) -> list[str]:
    """The tokens that coco-caption keeps.

    >>> caption_tokens("When did 'The Office' end?")
    ['when', 'did', 'the', 'office', 'end']
    """
    return [token for token in tokens(sentence.replace("\n", " ")) if token not in PUNCTUATION]
