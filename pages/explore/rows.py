"""An answer as one row: text, probability, distinction from the others, source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from core import types as t
from core.text import answer_key, content_words, probability_text, question_key
from pages.explore.share import questions_of, source_of
from pages.ui.markup import NO_BREAK, additions, escape, meter, short

NAME_CHARS, CELL_CHARS = 90, 60


def distinction(prediction: t.Prediction, answer: t.Answer) -> str:
    """The difference of an answer from the others, in a few words; empty if unknown.  If the answer has a question of its own,
    a label that its question lacks would contradict it, so the new words of the question are used."""
    clarification = prediction.clarification_of(answer.text)
    label = clarification.label if clarification else ""
    question = next(iter(questions_of(prediction, answer)), "")
    if question and not set(content_words(label)) <= set(content_words(question)):
        label = ""
    return label or additions(prediction.question.text, question)


def meanings(prediction: t.Prediction, answers: Iterable[str]) -> dict[str, str]:
    """answer -> its own question, of those `answers` that have one that no other has and that was not refuted when it was asked again; empty
    unless there are two: other sets are lists, about whose items nobody needs to be asked."""
    wanted, questions = set(answers), dict[str, str]()
    for answer in prediction.answers:
        c, question = prediction.clarification_of(answer.text), next(iter(questions_of(prediction, answer)), "")
        if question and answer.text in wanted and (c is None or c.passed or not c.returned):
            questions[answer.text] = question
    counts = Counter(map(question_key, questions.values()))
    own = {answer: question for answer, question in questions.items() if counts[question_key(question)] == 1}
    return own if len(own) > 1 else {}


def source(prediction: t.Prediction, answer: t.Answer) -> str:
    """The title of the passage that an answer was read from, and the number of further ones."""
    titles = list(dict.fromkeys(source_of(prediction, e.passage_id) for e in answer.evidence))
    more = f" and {len(titles) - 1} more" if len(titles) > 1 else ""
    return short(titles[0], CELL_CHARS) + more if titles else "no passage"


def row(prediction: t.Prediction, answer: t.Answer, is_struck: bool = False, badge: str = "") -> str:
    """Markdown with text, probability, distinction and source. style.css puts the four side by side if there is room."""
    mark = "~~" if is_struck else "**"
    added = {answer_key(a) for a in prediction.question.added}
    chance = f"{probability_text(answer.probability, prediction.system.is_calibrated)} {meter(answer.probability)}"
    if answer.pinned:
        chance = "added by you" if answer_key(answer.text) in added else "kept"
    cells = [f":small[{chance}{badge and ' ' + badge}]"]
    cells += [
        f":small[{escape(x) or NO_BREAK}]"
        for x in (short(distinction(prediction, answer), CELL_CHARS), source(prediction, answer))
    ]
    return " ".join([f"{mark}{escape(short(answer.text, NAME_CHARS))}{mark}", *cells])
