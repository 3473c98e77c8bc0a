"""The comments on an item, for those who work on it and for managers."""

from __future__ import annotations

import streamlit as st

from pages.annotate import place
from pages.session.actions import reported
from pages.ui.markup import escape
from storage.annotation.comments import MAX_COMMENT_CHARS


def draw(item: str, user: str) -> None:
    thread = place.store().comments.comments(item, user)
    field = f"comments.{item}.{user}.text"  # another person in the same tab starts with an empty one
    with st.expander(f"Comments ({len(thread)})", icon=":material/forum:", key=f"comments.{item}"):
        for comment in thread:
            head = f"**{escape(comment.person)}** :gray[{comment.role} · {comment.created.astimezone():%Y-%m-%d %H:%M}]"
            st.markdown("  \n".join([head, *(escape(line) for line in comment.text.splitlines() if line.strip())]))
        st.text_area(
            "Comment",
            key=field,
            max_chars=MAX_COMMENT_CHARS,
            height=80,
            help="For everybody who works on this item. While you write or judge, you see your own comments and those of validators and "
            "managers; those of other annotators after you submit. Ask about the task here, and leave answers to the form.",
        )
        st.button(
            "Add comment", key=f"comments.{item}.add", icon=":material/add_comment:", on_click=_add, args=(item, user, field)
        )


@reported
def _add(item: str, user: str, field: str) -> None:
    place.store().comments.comment(item, user, str(st.session_state.get(field) or ""))
    st.session_state[field] = ""
