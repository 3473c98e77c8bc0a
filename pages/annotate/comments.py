"""The thread of comments below an item, where it is worked on and where it is managed."""

from __future__ import annotations

import streamlit as st

from pages.annotate import place
from pages.session.actions import reported
from pages.ui.markup import escape
from storage.annotation.comments import MAX_COMMENT_CHARS


def draw(item: str, who: str) -> None:
    found = place.store().comments.comments(item, who)
    field = f"comments.{item}.{who}.text"  # another person in the same tab starts with an empty one
    with st.expander(f"Comments ({len(found)})", icon=":material/forum:", key=f"comments.{item}"):
        for comment in found:
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
            "Add comment", key=f"comments.{item}.add", icon=":material/add_comment:", on_click=_add, args=(item, who, field)
        )


@reported
def _add(item: str, who: str, field: str) -> None:
    place.store().comments.comment(item, who, str(st.session_state.get(field) or ""))
    st.session_state[field] = ""
