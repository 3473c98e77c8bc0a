"""A browser tab's open item: the form with its undo, the draft in the store, opened passages, the time spent."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import streamlit as st

from core.annotating import generation, groups, judging
from core.annotating.aliases import join_aliases, without_unseen
from core.annotating.history import History
from core.errors import AmbiscopeError, ConflictError, FormatError
from core.text import clock_text
from core.trace import from_json, to_json
from core.types import Passage, RetrievedPassage
from pages.session import place, shared
from pages.ui.markup import escape
from storage.records.annotation import (
    Draft,
    DraftConflictError,
    GenerationWork,
    JudgingSheet,
    Suggestion,
    Task,
    ValidationInput,
    ValidationWork,
)
from storage.records.enumerations import WorkStage
from storage.records.projects import Project, ProjectItem
from storage.shipped.practice import PracticeFeedback

IDLE_SECONDS = 120.0  # a longer pause counts as this much
MAX_FIELD_CHARS = 2_000
WORK_KEY = "annotate.work"
FORMS: Mapping[str, Any] = {"generation": generation.GenerationForm, "validation": groups.Sheet, "judging": judging.JudgingForm}


@dataclass
class Work:
    """`history.now` is a core.annotating form (or sheet).  `nonce` changes when fields must be filled again."""

    project: Project
    task: Task
    item: ProjectItem
    history: History[Any]
    user: str
    suggestions: tuple[Suggestion, ...] = ()
    source: ValidationInput | None = None
    sheet: JudgingSheet | None = None
    version: int = 0  # of the stored draft
    saved: datetime | None = None
    nonce: int = 0
    seconds_spent: float = 0.0
    last_action: float = field(default_factory=time.monotonic)
    opened_ids: set[str] = field(default_factory=set)
    has_tried: bool = False  # a submission was refused: errors are shown from now on
    problem: Exception | None = None
    refresh: bool = False  # a fragment asks for the whole page
    # on the screen
    cleaned: str = ""  # key of the field that was cleaned last
    query: str = ""
    results: list[RetrievedPassage] | None = None
    reading: Passage | None = None
    seen_passages: dict[str, Passage] = field(default_factory=dict)  # by id, for their titles
    includes_predictions: bool = False  # those of the item's predictions are among them
    current: int = 0  # position of the answer that the keys judge
    selected: set[int] = field(default_factory=set)  # positions of answers

    @property
    def stage(self) -> WorkStage:
        return self.task.stage

    @property
    def form(self) -> Any:
        return self.history.now

    def key(self, *parts: object) -> str:
        """The key of a widget.  It changes after undo, so that the field shows the form's value."""
        user = f"{zlib.crc32(self.user.encode()):08x}"  # another person in the same tab starts with empty fields
        return ".".join(["work", self.task.item[:12], self.stage, user, str(self.nonce), *map(str, parts)])

    def _call(self, do: Callable[..., None], *args: object) -> None:
        """Callback: shows an error that `do` raises on purpose with the form."""
        try:
            do(self, *args)
        except AmbiscopeError as error:
            self.problem = error

    def button(self, label: str, parts: tuple[object, ...], do: Callable[..., None], *args: object, **look: Any) -> None:
        """`parts`: the parts of its key.  When pressed, `do` gets this work and `args`.  `look`: Streamlit's other options."""
        st.button(label, key=self.key(*parts), on_click=self._call, args=(do, *args), **look)

    def field(
        self, label: str, parts: tuple[object, ...], text: str, do: Callable[..., None], *args: object, **look: Any
    ) -> None:
        """A text field that starts with `text` and is read while somebody types: `do` gets this work, `args` and the text.

        Filled the first time it is drawn; afterwards the browser's text is kept."""
        key = self.key(*parts)
        st.session_state.setdefault(key, text)
        options = {"max_chars": MAX_FIELD_CHARS, "live": "500ms", **look}

        def changed() -> None:
            typed = str(st.session_state.get(key) or "")
            text = without_unseen(typed)
            if text != typed:
                st.session_state[key], self.cleaned = text, key
            self._call(do, *args, text)

        st.text_input(label, key=key, on_change=changed, **options)
        if self.cleaned == key:
            st.caption(":blue[:material/cleaning_services: Tabs and invisible characters were removed from the pasted text.]")

    def count_time(self) -> float:
        now = time.monotonic()
        self.seconds_spent += min(IDLE_SECONDS, now - self.last_action)
        self.last_action = now
        return self.seconds_spent

    def body(self) -> dict[str, Any]:
        body = {"form": to_json(self.form), "seconds": round(self.seconds_spent, 1)}
        return body if self.source is None else {**body, "sources": to_json(self.source.sources)}


def current() -> Work | None:
    work = st.session_state.get(WORK_KEY)
    return work if isinstance(work, Work) else None


def close() -> None:
    st.session_state.pop(WORK_KEY, None)


def begin(project: Project, task: Task, user: str) -> Work:
    """Opens a leased task with its draft.  Raises the store's errors."""
    store, stage = place.store(), task.stage
    item = store.items.get_item(task.item, user)
    source: ValidationInput | None = None
    if stage == "validation":
        source = store.reviews.validation_input(task.item, user)
        form: Any = groups.union(source.question, source.annotations)
    else:
        form = judging.JudgingForm() if stage == "judging" else generation.GenerationForm()
    work = Work(project, task, item, History(form), user, source=source)
    if stage == "judging":
        work.sheet = store.reviews.judging_sheet(task.item, user)
    elif "generation" in project.stages:
        work.suggestions = store.submissions.suggestions(task.item, user)
    draft = store.drafts.find_draft(task.item, user, stage)
    if draft is not None:
        work.version, work.saved = draft.version, draft.saved
        _load(work, draft.body)
        sources = work.body().get("sources")
        if draft.body.get("sources", sources) != sources:
            work.history.change(form)
            work.problem = ConflictError(
                "an annotation changed after you began: this is the new list; Undo restores the earlier one"
            )
    work.opened_ids = set(store.drafts.interactions(task.item, user, stage).viewed_passage_ids)
    st.session_state[WORK_KEY] = work
    return work


def _load(work: Work, body: Mapping[str, Any]) -> None:
    """The form of a draft, or of the last submission if the draft can't be read."""
    try:
        work.history = History(from_json(FORMS[work.stage], body["form"]))
        work.seconds_spent = float(body.get("seconds", 0.0))
    except (FormatError, KeyError, TypeError, ValueError):
        if not _from_submission(work):
            work.problem = FormatError("the stored draft has an unknown format and can't be shown; your next save replaces it")


def _from_submission(work: Work) -> bool:
    """The form of the last submission, if another program than this page made it.  Else False."""
    submissions = place.store().submissions.submission_history(work.task.item, work.user, work.stage, work.user)
    if not submissions:
        return False
    content = submissions[-1].content
    if isinstance(content, GenerationWork):
        form: Any = generation.from_annotation(content.annotation)
    elif isinstance(content, ValidationWork):
        form = groups.union(work.task.question, [("", content.annotation)])
    else:
        answers = {judging.unit_key(a.prediction_id, a.position): a for a in content.answers}
        form = judging.JudgingForm(
            {key: a.verdict for key, a in answers.items()},
            {key: a.question for key, a in answers.items() if a.question},
            {key: a.note for key, a in answers.items() if a.note},
            "\n".join(join_aliases((m.text, *m.aliases)) for m in content.missing),
            content.preference,
            content.note,
            {key: a.errors for key, a in answers.items() if a.errors},
        )
    work.history = History(form)
    return True


# ---------------------------------------------------------------- changing and saving


def change(work: Work, form: Any, typed: str = "", redraw: bool = False) -> None:
    """Applies a changed form and saves it.  `typed`: the field that was typed into.  `redraw`: fields are filled again."""
    work.count_time()
    if work.history.change(form, typed):
        if redraw:
            work.nonce += 1
        save(work)


def attempt(work: Work, make: Callable[[], Any], redraw: bool = True, typed: str = "") -> None:
    """`change` with the result of `make`.  Raises as `make`."""
    work.problem = None
    change(work, make(), typed, redraw)


def save(work: Work) -> None:
    """Stores the draft at once.  A failure stays on the screen until a save succeeds."""
    try:
        draft = place.store().drafts.save_draft(work.task.item, work.user, work.stage, work.body(), work.version)
    except AmbiscopeError as error:
        work.problem = error
        return
    work.version, work.saved, work.problem = draft.version, draft.saved, None


def undo(work: Work) -> None:
    """Callback."""
    work.count_time()
    if work.history.undo():
        work.nonce += 1
        work.selected.clear()
        save(work)


def keep_mine(work: Work) -> None:
    """Callback after a conflict: stores this window's draft over the other's."""
    if isinstance(work.problem, DraftConflictError):
        work.version = work.problem.theirs.version if work.problem.theirs else 0
        save(work)


def take_theirs(work: Work) -> None:
    """Callback after a conflict: loads the other window's draft into this one.  Undo brings this one's back."""
    if isinstance(work.problem, DraftConflictError) and work.problem.theirs is not None:
        theirs, mine = work.problem.theirs, work.history
        work.problem = None
        _load(work, theirs.body)
        mine.change(work.history.now)
        work.history = mine
        work.version, work.saved = theirs.version, theirs.saved
        work.nonce += 1


def show_problem(work: Work, lines: Callable[[Work, Any], list[str]]) -> None:
    """The error, with both sides of a conflict to choose from.  `lines`: a form as text."""
    error = work.problem
    if error is None:
        return
    if not isinstance(error, DraftConflictError):
        shared.show_error(error)
        return
    time_saved = clock_text(error.theirs.saved) if error.theirs else "never"
    st.warning(
        f"This draft was changed in another window (saved {time_saved}). Which one do you want to keep?",
        icon=":material/sync_problem:",
    )
    mine, theirs = lines(work, work.form), _lines_of(work, error.theirs, lines)
    for column, (name, shown, other) in zip(st.columns(2), (("This window", mine, theirs), ("Other window", theirs, mine))):
        with column:
            st.markdown(f"**{name}**")
            marked = (escape(line) if line in other else f":orange-background[{escape(line)}]" for line in shown)
            st.markdown("  \n".join(marked) or ":gray[nothing]")
    st.caption("What differs is marked.")
    with st.container(horizontal=True):
        work.button("Keep this window's draft", ("mine",), keep_mine)
        work.button("Use the other draft", ("theirs",), take_theirs, disabled=error.theirs is None)


def _lines_of(work: Work, draft: Draft | None, lines: Callable[[Work, Any], list[str]]) -> list[str]:
    try:
        return lines(work, from_json(FORMS[work.stage], draft.body["form"])) if draft else []
    except (FormatError, KeyError, TypeError):
        return ["in an unknown format"]


@dataclass(frozen=True)
class Feedback:
    """Shown after a practice item until the person continues or goes to another stage."""

    item: str
    stage: WorkStage
    question: str
    content: Any
    feedback: PracticeFeedback
