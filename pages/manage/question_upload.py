"""Question files of a project: formats, and an upload that is kept until it is used."""

from __future__ import annotations

import streamlit as st

from core.errors import InputError
from core.text import listed
from core.types import ReferenceQuestion
from pages.corpora import builds
from pages.session import shared
from pages.ui.markup import escape
from storage.exchange.imports.question_files import SUFFIXES, questions_to_annotate
from storage.records.projects import ItemsReport

LAYOUTS = (
    "Formats: text with one question per line (.txt); JSON Lines or a JSON list whose rows have `question` (`id` and `passages` are "
    "optional, and `answers` must be in all rows or in none); AmbigNQ. Each may be compressed (.gz). Annotation needs no answers."
)


def uploader(key: str) -> None:
    """The field, and the file uploaded with it: a field that is not drawn for a while, or drawn again, forgets its file."""
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
    st.caption(LAYOUTS)
    file = uploaded_file(key)
    if file is not None and st.session_state.get(field) is None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/attach_file: {escape(file.name)} :gray[uploaded]")
            st.button("Remove file", key=f"{key}.remove", type="tertiary", on_click=discard, args=(key,))


def _keep(key: str, field: str) -> None:
    """Callback."""
    st.session_state[f"{key}.kept"] = st.session_state.get(field)


def uploaded_file(key: str) -> builds.Uploaded | None:
    file: builds.Uploaded | None = st.session_state.get(f"{key}.kept")
    return file


def discard(key: str) -> None:
    """Callback, and after the file was used."""
    st.session_state.pop(f"{key}.kept", None)
    st.session_state[f"{key}.used"] = int(st.session_state.get(f"{key}.used", 0)) + 1


def questions(key: str, otherwise: str = "") -> list[ReferenceQuestion]:
    """The questions of the uploaded file.  `otherwise`: end of the error where there is none.

    Raises RejectedRowsError with the wrong rows by line, else FormatError, InputError.
    """
    file = uploaded_file(key)
    if file is None:
        raise InputError(f"no file is selected; choose a question file{otherwise}")
    return questions_to_annotate(bytes(file.getbuffer()), file.name)


def summary(report: ItemsReport) -> str:
    """Plain text, not escaped."""
    parts = [f"{listed(report.added, 'question')} added"]
    if report.known:
        parts.append(f"{report.known:,} already in the project or listed twice")
    if report.linked:
        parts.append(f"{report.linked:,} stored predictions linked")
    return "; ".join(parts) + "."
