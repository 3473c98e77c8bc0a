"""Text of others is drawn as itself."""

from __future__ import annotations

import re
import string

from hypothesis import given, settings
from hypothesis import strategies as some

from pages.ui.markup import JOINER, around, changes, chart_text, distinct, escape, highlighted, short, without_pictures

CHARACTERS = some.text(some.sampled_from(string.punctuation + " abw:.@/<->\n\t1é漢"), max_size=60) | some.text(max_size=60)


def rendered(markdown: str) -> str:
    """The text as CommonMark shows it, with every punctuation character escaped; fails on a bare one."""
    without = re.sub(r"\\([!-/:-@\[-`{-~])", lambda m: chr(0xE000 + ord(m[1])), markdown)
    assert not re.search(r"[!-/:-@\[-`{-~]", without), markdown
    return re.sub("[\ue021-\ue07e]", lambda m: chr(ord(m[0]) - 0xE000), without).replace(JOINER, "")


def visible(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]", " ", text.replace(JOINER, "")))


@settings(max_examples=300, derandomize=True)
@given(CHARACTERS.filter(lambda s: not re.search("[\ue000-\uf8ff]", s)))
def test_plain_text_has_no_bare_punctuation_and_reads_as_it_was(text: str) -> None:
    assert rendered(escape(text)) == visible(text)


@given(some.text(some.sampled_from("![]()\\`<>&#;:\n\u2060 ab"), max_size=40))
def test_markdown_without_pictures_reads_as_it_was_and_begins_none(text: str) -> None:
    without = without_pictures(text)
    assert "![" not in without
    assert without.replace(JOINER, "") == text.replace(JOINER, "")


# what Streamlit's Markdown applies to finished text, where a backslash does not help (its StreamlitMarkdown bundle and the
# packages remark-emoji and mdast-util-gfm-autolink-literal)
LATE = [
    r":\+1:|:-1:|:[\w-]+:",
    r"(?:^|\s)(?:<->|->|<-|--|>=|<=|~=)(?:\s|$)",
    r"(?i)https?://|www(?=\.)[-.\w]+",
    r"[-.\w+]+@[-\w]+\.[-\w]+",
]


@settings(max_examples=300, derandomize=True)
@given(some.text(some.sampled_from(":ab<->=~ .@/w1+"), max_size=30))
def test_nothing_late_matches_in_any_text(text: str) -> None:
    shown = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escape(text))
    for pattern in LATE:
        assert not re.search(pattern, shown), (text, shown, pattern)


@settings(max_examples=100, derandomize=True)
@given(
    some.text(some.characters(codec="ascii"), max_size=50),
    some.lists(some.tuples(some.integers(-3, 55), some.integers(-3, 55))),
)
def test_highlighting_loses_no_character(text: str, spans: list[tuple[int, int]]) -> None:
    bare = re.sub(r":orange-background\[\*\*(.*?)\*\*\](?!\\)", r"\1", highlighted(text, spans))
    assert re.sub(r"\s+", "", rendered(bare)) == re.sub(r"\s+", "", visible(text))


def test_spans_and_changes_are_marked() -> None:
    assert highlighted("Natalie Wood sang", [(0, 12)]) == ":orange-background[**Natalie Wood**] sang"
    assert highlighted("a:\n  b: 1", [(5, 6)]) == "a\\:  \n\u00a0\u00a0:orange-background[**b**]\\: 1"
    assert changes("Who won?", "Who won in 1961?") == "Who won :green-background[**in 1961**]\\?"
    assert changes("the movie?", "the film?") == "the :red-background[~~movie~~] :green-background[**film**]\\?"
    assert changes("same?", "same?") == "same\\?"
    assert changes("a [b](c)?", "a [d](c)?") == "a \\[:red-background[~~b~~] :green-background[**d**]\\]\\(c\\)\\?"


def test_surroundings_keep_the_marked_words() -> None:
    shown = around("word " * 100 + "Natalie Wood" + " word" * 100, [(500, 512)], width=30)
    assert re.fullmatch(r"… (word )*:orange-background\[\*\*Natalie Wood\*\*\]( word)* …", shown)
    assert len(shown) < 150


def test_short_and_chart_text() -> None:
    assert short("one two three four", 9) == "one two…"
    assert short("abc", 3) == "abc"
    assert chart_text("<b>x</b> & y") == "&lt;b&gt;x&lt;/b&gt; &amp; y"


def test_texts_that_would_be_cut_to_the_same_are_whole() -> None:
    texts = {
        "a": "who played Maria in 1961",
        "b": "who played Maria in 2021",
        "c": "who sang",
        "d": "who  sang",
        "e": "when was it",
    }
    options = distinct(texts, 12)
    assert len(set(options.values())) == len(texts)
    assert (options["a"], options["c"], options["e"]) == (texts["a"], "who sang (c)", "when was it")
