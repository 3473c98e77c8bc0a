"""The work that a browser tab has open: the form with its undo, the draft in the store, what was opened, the time spent."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import streamlit as st

from core.annotating import generation, groups, judging
from core.annotating.aliases import join_aliases
from core.annotating.history import History
from core.errors import AmbiscopeError, FormatError
from core.trace import from_json, to_json
from core.types import Passage, RetrievedPassage
from pages.annotate import place
from pages.session import shared
from pages.ui.markup import escape
from storage.records.annotation import (
    DraftConflictError,
    GenerationWork,
    JudgingSheet,
    Suggestion,
    Task,
    ValidationInput,
    ValidationWork,
)
from storage.records.enumerations import WorkStage
from storage.records.projects import Item, Project
from storage.shipped.practice import PracticeFeedback

IDLE_SECONDS = 120.0  # a longer pause counts as this much
MAX_FIELD_CHARS = 2_000
KEY = "annotate.work"
FORMS: Mapping[str, Any] = {"generation": generation.Form, "validation": groups.Sheet, "judging": judging.Form}


@dataclass
class Work:
    """`history.now` is a core.annotating form (or sheet).  `nonce` changes when fields must be filled anew."""

    project: Project
    task: Task
    item: Item
    history: History[Any]
    who: str
    suggestions: tuple[Suggestion, ...] = ()
    source: ValidationInput | None = None
    sheet: JudgingSheet | None = None
    version: int = 0  # of the stored draft
    saved: datetime | None = None
    nonce: int = 0
    spent: float = 0.0
    touched: float = field(default_factory=time.monotonic)
    opened: set[str] = field(default_factory=set)
    tried: bool = False  # a submission was refused: errors are shown from now on
    problem: Exception | None = None
    refresh: bool = False  # a fragment asks for the whole page
    # what is on the screen
    query: str = ""
    results: list[RetrievedPassage] | None = None
    reading: Passage | None = None
    known: dict[str, Passage] = field(default_factory=dict)  # passages met so far, for their titles
    looked: bool = False  # those of the item's predictions are among them
    current: int = 0
    chosen: set[int] = field(default_factory=set)

    @property
    def stage(self) -> WorkStage:
        return self.task.stage

    @property
    def form(self) -> Any:
        return self.history.now

    def key(self, *parts: object) -> str:
        """Of a widget; a new one after undo, so that the field shows what the form says."""
        whose = f"{zlib.crc32(self.who.encode()):08x}"  # another person in the same tab starts with empty fields
        return ".".join(["work", self.task.item[:12], self.stage, whose, str(self.nonce), *map(str, parts)])

    def button(self, label: str, parts: tuple[object, ...], do: Callable[..., None], *args: object, **look: Any) -> None:
        """`parts`: of its key; pressed, `do` gets this work and `args`; `look`: Streamlit's other options."""
        st.button(label, key=self.key(*parts), on_click=do, args=(self, *args), **look)

    def field(
        self, label: str, parts: tuple[object, ...], text: str, do: Callable[..., None], *args: object, **look: Any
    ) -> None:
        """A text field that begins with `text` and is taken over while somebody types: `do` gets this work, `args` and the text.

        Filled the first time it is drawn; afterwards what is typed in the browser counts."""
        key = self.key(*parts)
        st.session_state.setdefault(key, text)
        options = {"max_chars": MAX_FIELD_CHARS, "live": "500ms", **look}
        st.text_input(label, key=key, on_change=lambda: do(self, *args, str(st.session_state.get(key) or "")), **options)

    def count_time(self) -> float:
        now = time.monotonic()
        self.spent += min(IDLE_SECONDS, now - self.touched)
        self.touched = now
        return self.spent

    def body(self) -> dict[str, Any]:
        return {"form": to_json(self.form), "seconds": round(self.spent, 1)}


def current() -> Work | None:
    work = st.session_state.get(KEY)
    return work if isinstance(work, Work) else None


def close() -> None:
    st.session_state.pop(KEY, None)


def _empty(work_stage: WorkStage, source: ValidationInput | None) -> Any:
    if source is not None:
        return groups.union(source.question, source.annotations)
    return judging.Form() if work_stage == "judging" else generation.Form()


def begin(project: Project, task: Task, who: str) -> Work:
    """Opens a leased task with its draft.  Raises the store's errors."""
    store = place.store()
    stage = task.stage
    item = store.items.get_item(task.item, who)
    source = store.reviews.validation_input(task.item, who) if stage == "validation" else None
    work = Work(project, task, item, History(_empty(stage, source)), who, source=source)
    if stage != "judging" and "generation" in project.stages:
        work.suggestions = store.submissions.suggestions(task.item, who)
    if stage == "judging":
        work.sheet = store.reviews.judging_sheet(task.item, who)
    draft = store.drafts.find_draft(task.item, who, stage)
    if draft is not None:
        work.version, work.saved = draft.version, draft.saved
        _take(work, draft.body)
    work.opened = set(store.drafts.interactions(task.item, who, stage).viewed_passage_ids)
    st.session_state[KEY] = work
    return work


def _take(work: Work, body: Mapping[str, Any]) -> None:
    try:
        work.history = History(from_json(FORMS[work.stage], body["form"]))
        work.spent = float(body.get("seconds", 0.0))
    except (FormatError, KeyError, TypeError, ValueError):
        if not _from_submission(work):
            work.problem = FormatError(
                "the stored draft has an unknown format and cannot be shown; what you save now replaces it"
            )


def _from_submission(work: Work) -> bool:
    """The form that gives what was submitted last, where another program than this page submitted it."""
    sent = place.store().submissions.submission_history(work.task.item, work.who, work.stage, work.who)
    if not sent:
        return False
    content = sent[-1].content
    if isinstance(content, GenerationWork):
        form: Any = generation.from_annotation(content.annotation)
    elif isinstance(content, ValidationWork):
        form = groups.union(work.task.question, [("", content.annotation)])
    else:
        form = judging.Form(
            {judging.unit_key(a.prediction_id, a.position): a.verdict for a in content.answers},
            {judging.unit_key(a.prediction_id, a.position): a.question for a in content.answers if a.question},
            {judging.unit_key(a.prediction_id, a.position): a.note for a in content.answers if a.note},
            "\n".join(join_aliases((m.text, *m.aliases)) for m in content.missing),
            content.preference,
            content.note,
            {judging.unit_key(a.prediction_id, a.position): a.errors for a in content.answers if a.errors},
        )
    work.history = History(form)
    return True


# ---------------------------------------------------------------- changing and saving


def change(work: Work, form: Any, typed: str = "", redraw: bool = False) -> None:
    """Takes a changed form and saves it.  `typed`: the field that was typed into; `redraw`: fields are filled anew."""
    work.count_time()
    if work.history.change(form, typed):
        if redraw:
            work.nonce += 1
        save(work)


def attempt(work: Work, make: Callable[[], Any], redraw: bool = True, typed: str = "") -> None:
    """`change` with what `make` returns; an error that it raises is shown instead."""
    work.problem = None
    try:
        form = make()
    except AmbiscopeError as error:
        work.problem = error
        return
    change(work, form, typed, redraw)


def save(work: Work) -> None:
    """Stores the draft at once.  A failure stays on the screen until a save succeeds."""
    try:
        draft = place.store().drafts.save_draft(work.task.item, work.who, work.stage, work.body(), work.version)
    except AmbiscopeError as error:
        work.problem = error
        return
    work.version, work.saved, work.problem = draft.version, draft.saved, None


def undo(work: Work) -> None:
    """Callback."""
    work.count_time()
    if work.history.undo():
        work.nonce += 1
        work.chosen.clear()
        save(work)


def keep_mine(work: Work) -> None:
    """Callback: after a conflict, this window's draft over the other's."""
    if isinstance(work.problem, DraftConflictError):
        work.version = work.problem.theirs.version if work.problem.theirs else 0
        save(work)


def take_theirs(work: Work) -> None:
    """Callback: after a conflict, the other window's draft into this one; undo brings this one's back."""
    if isinstance(work.problem, DraftConflictError) and work.problem.theirs is not None:
        theirs = work.problem.theirs
        mine = work.history
        work.problem = None
        _take(work, theirs.body)
        taken = work.history.now
        work.history = mine
        work.history.change(taken)
        work.version, work.saved = theirs.version, theirs.saved
        work.nonce += 1


def show_problem(work: Work) -> None:
    """What went wrong, with both sides of a conflict to choose from."""
    error = work.problem
    if error is None:
        return
    if not isinstance(error, DraftConflictError):
        shared.show_error(error)
        return
    when = f"{error.theirs.saved:%H:%M:%S} UTC" if error.theirs else "never"
    st.warning(
        f"This draft was changed in another window (saved {when}). Which one do you want to keep?",
        icon=":material/sync_problem:",
    )
    left, right = st.columns(2)
    for side, name, form in (
        (left, "This window", work.body()["form"]),
        (right, "Other window", (error.theirs.body if error.theirs else {})),
    ):
        with side:
            st.caption(name)
            st.markdown(escape("; ".join(texts_of(form))[:1000]) or ":gray[nothing]")
    with st.container(horizontal=True):
        work.button("Keep this window's draft", ("mine",), keep_mine)
        work.button("Use the other draft", ("theirs",), take_theirs, disabled=error.theirs is None)


def texts_of(value: Any) -> list[str]:
    """The words in a draft, for showing two side by side."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, Mapping):
        return [text for v in value.values() for text in texts_of(v)]
    if isinstance(value, (list, tuple)):
        return [text for v in value for text in texts_of(v)]
    return []


def saved_line(work: Work) -> str:
    if work.saved is None:
        return "Saved as you type"
    return f"Draft saved {work.saved.astimezone():%H:%M:%S}"


@dataclass(frozen=True)
class Feedback:
    """What is shown after a practice item, until the person goes on."""

    question: str
    content: Any
    feedback: PracticeFeedback
