"""The comments on an item, for those who work on it and for managers."""

from __future__ import annotations

import streamlit as st

from core.text import listed, time_text
from pages.session import place
from pages.session.actions import reported
from pages.ui.markup import escape, full_label, short
from storage.annotation.comments import MAX_COMMENT_CHARS
from storage.annotation.waiting import mentions
from storage.records.projects import Comment, Thread


def draw(item: str, user: str) -> None:
    """An item's comments, expanded if some are unread.  Comments drawn expanded are marked read."""
    thread = place.store().comments.thread(item, user)
    open_key = f"comments.{item}.{user}.open"
    if thread.unread:
        st.session_state[open_key] = True
    label = f"Comments ({len(thread.comments)}{f', {thread.unread} new' if thread.unread else ''})"
    with st.expander(label, icon=":material/forum:", key=open_key, on_change="rerun") as box:
        _thread(item, user, thread)
    if thread.unread and box.open:
        place.store().comments.mark_read(item, user)


def draw_new(project: str, user: str) -> None:
    """A project's threads with new comments.  They stay on the page until it is left, because an answer may take a while."""
    shown: dict[str, None] = st.session_state.setdefault(f"comments.new.{project}.{user}", {})
    for work in place.store().waiting.of_person(user):
        if work.project == project:
            shown |= dict.fromkeys(work.items)
    for item in shown:
        with st.container(border=True):
            st.markdown(f"**{escape(short(place.store().items.get_item(item, user).question, 300))}**")
            draw(item, user)


def _thread(item: str, user: str, thread: Thread) -> None:
    for comment in thread.comments:
        _comment(item, user, comment)
    if thread.hidden:
        st.button(
            f"Show {listed(thread.hidden, 'comment')} of other annotators",
            key=f"comments.{item}.show",
            icon=":material/visibility:",
            on_click=_show,
            args=(item, user),
        )
        st.caption("After that your own work on this item is final: you cannot reopen or change it.")
    field = f"comments.{item}.{user}.text"  # another person in the same tab starts with an empty one
    st.text_area(
        "Comment",
        key=field,
        max_chars=MAX_COMMENT_CHARS,
        height=80,
        placeholder="@Name tells somebody",
        help="For everybody who works on this item. You see your own comments and those of validators and managers, and other "
        "annotators' once your own work on it is done. Ask about the task here, and leave answers to the form.",
    )
    st.button("Add comment", key=f"comments.{item}.add", icon=":material/add_comment:", on_click=_add, args=(item, user, field))


def _comment(item: str, user: str, comment: Comment) -> None:
    badge = f" :green-badge[resolved by {escape(comment.resolved_by)}]" if comment.resolved_by else ""
    badge += " :orange-badge[for you]" if mentions(comment.text, user) else ""
    head = f"**{escape(comment.person)}** :gray[{comment.role} · {time_text(comment.created)}]{badge}"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("  \n".join([head, *(escape(line) for line in comment.text.splitlines() if line.strip())]), width="stretch")
        if comment.person == user or place.store().may("see others' work"):
            word = "Reopen" if comment.resolved_by else "Resolve"
            st.button(
                full_label(word, f"the comment of {comment.person}: {comment.text}"),
                key=f"comments.{item}.resolve.{comment.id}",
                type="tertiary",
                icon=":material/undo:" if comment.resolved_by else ":material/check_circle:",
                on_click=_resolve,
                args=(comment, user),
            )


@reported
def _add(item: str, user: str, field: str) -> None:
    place.store().comments.comment(item, user, str(st.session_state.get(field) or ""))
    st.session_state[field] = ""


@reported
def _resolve(comment: Comment, user: str) -> None:
    place.store().comments.resolve(comment.id, user, not comment.resolved_by)


@reported
def _show(item: str, user: str) -> None:
    place.store().blindness.show_item(item, user)
