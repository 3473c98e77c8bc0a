"""The keys of Annotate, each written only here: forms take them as shortcuts, and legends and the glossary describe them.

Keys are letters but C and R, which are Streamlit's own, digits, the slash, and Ctrl+Enter (pages/ui/keyboard.py).
"""

from __future__ import annotations

from core.annotating.labels import LABELS
from pages.ui.keyboard import SUBMIT

Keys = tuple[tuple[str, str], ...]  # a key and its effect, in the order of legends

UNDO, SKIP, REOPEN, SEARCH = "U", "K", "Z", "/"
EVERYWHERE: Keys = ((UNDO, "undo"), (SKIP, "skip"), (SUBMIT, "submit, continue, next stage"))
REOPENING: Keys = ((REOPEN, "reopen the last item"),)
SEARCHING: Keys = ((SEARCH, "search (Enter: to the first result, Esc: back to the form)"),)

NO_ANSWER, SINGLE_ANSWER, SEVERAL_ANSWERS, ADD = "1", "2", "3", "P"
WRITING: Keys = (
    (f"{NO_ANSWER}–{SEVERAL_ANSWERS}", "no answer, a single answer, several answers"),
    (ADD, "add an answer"),
)

ACCEPT, ACCEPT_ALL, READ, REJECT = "A", "L", "E", "X"
SUGGESTIONS: Keys = ((ACCEPT, "accept the suggestion"), (ACCEPT_ALL, "accept all of them"), (READ, "read its passage"))
REJECTING: Keys = ((REJECT, "reject the suggestion"),)  # while writing; a validator adds it, or leaves it

BACK = "B"
READING: Keys = ((BACK, "back to the results"),)

SELECT, COMBINE, SEPARATE, DELETE = "123456789", "M", "S", "X"
VALIDATION: Keys = (
    (f"{SELECT[0]}–{SELECT[-1]}", "select an answer"),
    (COMBINE, "combine the selected"),
    (SEPARATE, "separate the selected"),
    (DELETE, "delete the selected"),
)

ANSWER_LABELS = {label: str(number) for number, label in enumerate(LABELS, 1)}
FITS, STILL_AMBIGUOUS, CHANGES_MEANING = "7", "8", "9"
SET_A, SET_B, EQUAL_SETS = "A", "B", "E"
ALL_OTHERS, NEXT, PREVIOUS = "L", "N", "P"
COMPARING: Keys = ((SET_A, "set A is better"), (SET_B, "set B"), (EQUAL_SETS, "equally good"))
JUDGING: Keys = (
    (f"1–{len(LABELS)}", ", ".join(LABELS)),
    (f"{FITS}–{CHANGES_MEANING}", "question fits, still ambiguous, changes the meaning"),
    (ALL_OTHERS, "all others correct"),
    (NEXT, "next answer"),
    (PREVIOUS, "previous"),
)
