"""An answer as one row: text, probability, distinction from the others, source."""

from __future__ import annotations

from core import types as t
from core.text import answer_key
from pages.explore.share import questions_of, source_of
from pages.ui.formatting import percent
from pages.ui.markup import NO_BREAK, additions, escape, meter, short

NAME_CHARS, CELL_CHARS = 90, 60


def distinction(prediction: t.Prediction, answer: t.Answer) -> str:
    """The difference of an answer from the others, in a few words; empty where unknown."""
    clarification = prediction.clarification_of(answer.text)
    if clarification and clarification.label:
        return clarification.label
    return next((additions(prediction.question.text, q) for q in questions_of(prediction, answer)), "")


def source(prediction: t.Prediction, answer: t.Answer) -> str:
    """Title of the passage that an answer was read from, and the number of further ones."""
    titles = list(dict.fromkeys(source_of(prediction, e.passage_id) for e in answer.evidence))
    more = f" and {len(titles) - 1} more" if len(titles) > 1 else ""
    return short(titles[0], CELL_CHARS) + more if titles else "no passage"


def row(prediction: t.Prediction, answer: t.Answer, is_struck: bool = False, badge: str = "") -> str:
    """Markdown: text, probability, distinction, source; style.css puts the four beside one another where there is room."""
    mark = "~~" if is_struck else "**"
    added = {answer_key(a) for a in prediction.question.added}
    chance = f"{percent(answer.probability)} {meter(answer.probability)}"
    if answer.pinned:
        chance = "added by you" if answer_key(answer.text) in added else "kept by you"
    cells = [f":small[{chance}{badge and ' ' + badge}]"]
    cells += [
        f":small[{escape(x) or NO_BREAK}]"
        for x in (short(distinction(prediction, answer), CELL_CHARS), source(prediction, answer))
    ]
    return " ".join([f"{mark}{escape(short(answer.text, NAME_CHARS))}{mark}", *cells])
