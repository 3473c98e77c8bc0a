"""Questions of a project, from a file or pasted from a spreadsheet: formats, and an upload that is kept until it is used."""

from __future__ import annotations

import streamlit as st

from core.errors import InputError
from core.text import listed
from core.types import ReferenceQuestion
from pages.session import shared
from pages.session.uploads import Uploaded
from pages.ui.markup import escape
from storage.exchange.imports.question_files import SUFFIXES, questions_to_annotate
from storage.records.projects import ItemsReport

LAYOUTS = (
    "Formats: text with one question per line (.txt); a table (.csv) whose first row names the columns `question` and perhaps `id`, `domain`, "
    "`assignee` and `gold` (the right answer of a gold item, its aliases separated by `|`); JSON Lines or a JSON list whose rows have "
    "`question` (`id` and `passages` are "
    "optional, and `answers` must be in all rows or in none); AmbigNQ. Each may be compressed (.gz). Annotation needs no answers."
)
PASTED = "pasted rows"  # what an error calls them


def uploader(key: str) -> None:
    """The upload field and its file, which is kept because a field that isn't drawn for a while, or is drawn again, forgets its
    file."""
    uses = int(st.session_state.get(f"{key}.used", 0))
    field = f"{key}.{uses}" if uses else key  # another one after each file that was used: a field cannot be emptied otherwise
    st.file_uploader(
        "Question file",
        type=list(SUFFIXES),
        max_upload_size=shared.settings().max_upload_mb,
        key=field,
        on_change=_keep,
        args=(key, field),
    )
    st.text_area(
        "Or paste rows from a spreadsheet, with the names of the columns",
        key=_pasted_field(key),
        height=100,
        placeholder="question\tassignee\nWho played the Joker?\tAnn",
        persist_state="session",
    )
    st.caption(LAYOUTS)
    file = uploaded_file(key)
    if file is not None and st.session_state.get(field) is None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/attach_file: {escape(file.name)} :gray[uploaded]")
            st.button("Remove file", key=f"{key}.remove", type="tertiary", on_click=discard, args=(key,))


def _pasted_field(key: str) -> str:
    return f"{key}.pasted.{int(st.session_state.get(f'{key}.used', 0))}"


def _keep(key: str, field: str) -> None:
    """Callback."""
    st.session_state[f"{key}.kept"] = st.session_state.get(field)


def uploaded_file(key: str) -> Uploaded | None:
    file: Uploaded | None = st.session_state.get(f"{key}.kept")
    return file


def discard(key: str) -> None:
    """Callback, also called after the file was used."""
    st.session_state.pop(f"{key}.kept", None)
    st.session_state[f"{key}.used"] = int(st.session_state.get(f"{key}.used", 0)) + 1


def questions(key: str, otherwise: str = "") -> list[ReferenceQuestion]:
    """The questions of the uploaded file or of the pasted rows.  `otherwise`: end of the error if there are none.

    Raises RejectedRowsError with the wrong rows by line, else FormatError, InputError.
    """
    file, pasted = uploaded_file(key), str(st.session_state.get(_pasted_field(key)) or "")
    if file is not None and pasted.strip():
        raise InputError("a file is selected, and rows are pasted: remove one of them")
    if pasted.strip():
        return questions_to_annotate(pasted.encode("utf-8", "replace"), PASTED)
    if file is None:
        raise InputError(f"no file is selected; choose a question file, or paste rows{otherwise}")
    return questions_to_annotate(bytes(file.getbuffer()), file.name)


def summary(report: ItemsReport) -> str:
    """Plain text, not escaped."""
    parts = [f"{listed(report.added, 'question')} added"]
    if report.known:
        parts.append(f"{report.known:,} already in the project or listed twice")
    if report.linked:
        parts.append(f"{report.linked:,} stored predictions linked")
    text = "; ".join(parts) + "."
    if report.unmatched:
        names = ", ".join(f"\u201c{question[:60]}\u201d" for question in report.unmatched[:3])
        text += (
            f" No system gave a right answer to {listed(len(report.unmatched), 'gold question')} ({names}): check the answers."
        )
    return text
