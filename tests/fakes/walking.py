"""A walk over the app by somebody who presses, types, chooses and uploads anything: what walks share with their test.

`draw(options)` makes every choice, so that Hypothesis can shrink a walk and `random.Random.choice` can repeat one by its seed.
"""

from __future__ import annotations

import datetime
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

from pages.session import shared

PAGES = tuple(shared.PAGES)
UNEXPECTED = "An unexpected error occurred"
TEXTS = (
    "",
    "Who played Maria in West Side Story?",
    "Where did the musical open?",
    "Natalie Wood | Wood",
    "Rachel Zegler",
    "Who played it in 1961? → Natalie Wood\nWho played it in 2021? → Rachel Zegler",
    "small",
    "starter",
    "new-corpus",
    "me",
    "Ada",
    "a long password",
    "another long password",
    "a=1, b=x",
    "https://issuer.example subject",
    "<script>window.hacked=1</script>",
    "[x](javascript:1) **b** :red[r] $x$ `c` :smile:",
    "../../../../etc/passwd",
    "..\\..\\windows\\win.ini",
    "CON",
    "a\x00b",
    "\u202egnp.exe",
    "e\u0301\ufeff\u200b\U0001f600",
    "%s %n {0} {who} ${x}",
    "' OR 1=1; DROP TABLE question; --",
    "nan",
    "0" * 500,
    "word " * 3000,
)
NUMBERS = (0, 1, 2, 7, 50, 10**6, -1)
DAYS = (None, datetime.date(1970, 1, 1), datetime.date(2024, 12, 31), datetime.date(2026, 2, 28))
FILES = (
    ("plain.txt", b"Natalie Wood played Maria.\nRachel Zegler played Maria in 2021."),
    ("table.tsv", b"id\ttext\ttitle\np1\tNatalie Wood played Maria.\tFilm\n"),
    ("rows.jsonl", b'{"question": "Who?", "answers": [["a"]]}\n{"text": "A passage of words.", "title": "T"}\n'),
    ("questions.json", b'[{"question": "Who played Maria?", "answers": [["Natalie Wood"]]}]'),
    ("report.json", b'{"rows": [], "scores": {}, "intervals": {}, "provenance": {}, "timings": {}}'),
    ("broken.json", b'{"a": [1, 2'),
    ("deep.json", b"[" * 50_000),
    ("bomb.jsonl.gz", gzip.compress(b"0" * 5_000_000)),
    ("empty.txt", b""),
    ("broken.pdf", b"%PDF-1.7\n1 0 obj << /Type /Catalog >>"),
    ("../../evil.md", b"# Title\ntext"),
    ("CON.txt", b"\xff\xfe\x00binary"),
    ("ü" * 120 + ".json", b"[]"),
)
ADDRESSES = (
    {},
    {"prediction": "0" * 32},
    {"prediction": "../../etc/passwd", "other": "x' OR 1=1"},
    {"project": "\x00", "stage": "nonsense", "item": "<b>"},
    {"me": "Ada"},
    {"me": "x" * 5000},
    {"stage": "validation"},
)


@dataclass
class Walk:
    """`draw`: chooses one of several options; `steps`: what was done so far."""

    open_app: Callable[..., AppTest]
    draw: Callable[[Sequence[Any]], Any]
    steps: list[str] = field(default_factory=list)

    def go(self, length: int) -> None:
        """Raises AssertionError with the whole walk where a page raised, or said that an unexpected error occurred."""
        address = self.draw(ADDRESSES)
        page = self.draw(PAGES)
        self._note(f"open {page} {address}")
        app = self._checked(lambda: self.open_app(page, **address))
        for _ in range(length):
            app = self._checked(self._action(app))

    def _action(self, app: AppTest) -> Callable[[], AppTest]:
        kinds = {
            "page": [None],
            "press": [b for b in app.button if not b.disabled],
            "type": [w for w in (*app.text_input, *app.text_area) if not w.disabled],
            "choose": [
                w for w in (*app.selectbox, *app.radio, *app.button_group, *app.multiselect) if w.options and not w.disabled
            ],
            "tick": [w for w in (*app.checkbox, *app.toggle) if not w.disabled],
            "number": [w for w in (*app.number_input, *app.slider) if not w.disabled],
            "day": [w for w in app.date_input if not w.disabled],
            "turn": list(app.pagination),
            "upload": list(app.file_uploader),
        }
        # pressing is what has effects: the other fields are only set in between
        weights = [k for k, widgets in kinds.items() if widgets for _ in range({"press": 5, "type": 2, "upload": 2}.get(k, 1))]
        kind = self.draw(weights)

        def run(widget: Any) -> AppTest:
            """A browser sends the fields of a form with its button."""
            return app if getattr(widget, "form_id", "") else widget.run()

        widget = self.draw(kinds[kind])
        label = "" if widget is None else f"{getattr(widget, 'label', '')!r:.60} {widget.key or ''}"
        if kind == "page":
            page = self.draw(PAGES)
            self._note(f"go to {page}")
            return lambda: app.switch_page(f"pages/{page}/page.py").run()
        if kind == "press":
            self._note(f"press {label}")
            return lambda: widget.click().run()
        if kind == "choose":
            option = self.draw(widget.options)
            self._note(f"choose {option!r:.60} {label}")
            return lambda: run(choose(widget, option))
        value = self._value(kind, widget)
        self._note(f"{kind} {value!r:.60} {label}")
        return lambda: run(widget.set_value(value))

    def _value(self, kind: str, widget: Any) -> Any:
        """A value that a browser would let a person enter."""
        if kind == "upload":
            files = [f for f in FILES if f[0].endswith(tuple(widget.allowed_type))]
            return (*self.draw(files), "application/octet-stream")
        if kind == "tick":
            return not widget.value
        if kind == "number":
            number = self.draw(NUMBERS)
            number = number if widget.min is None else max(widget.min, number)
            number = number if widget.max is None else min(widget.max, number)
            return float(number) if isinstance(widget.min, float) or isinstance(widget.max, float) else int(number)
        if kind == "day":
            day = self.draw(DAYS)
            return None if day is None else min(max(day, widget.min), widget.max)
        if kind == "turn":
            return self.draw(range(1, widget.num_pages + 1))
        return self.draw(TEXTS)[: widget.max_chars or None]

    def _note(self, step: str) -> None:
        self.steps.append(step)

    def _checked(self, act: Callable[[], AppTest]) -> AppTest:
        try:
            app = act()
        except Exception as error:
            raise AssertionError(self._with_steps(f"{type(error).__name__}: {error}")) from error
        wrong = [f"{e.message}\n{''.join(e.stack_trace)}" for e in app.exception]
        wrong += [e.value for e in app.error if UNEXPECTED in e.value]
        assert not wrong, self._with_steps("\n".join(wrong))
        return app

    def _with_steps(self, problem: str) -> str:
        return f"{problem}\nafter:\n  " + "\n  ".join(self.steps)


def choose(widget: Any, option: str) -> Any:
    """Chooses by what is shown, as a browser does: AppTest wants the value behind it, which a list of options does not have."""
    state = WidgetState(id=widget.id)
    if widget.type in ("button_group", "multiselect"):
        state.string_array_value.data[:] = [option]
    else:
        state.string_value = option
    plain = type(widget)
    widget.__class__ = type(plain.__name__, (plain,), {"_widget_state": property(lambda self: state)})
    widget._value = option  # as one that was set: AppTest leaves unset ones of a form alone
    return widget
