"""Ambiscope's app: `python3 run.py app`."""

from __future__ import annotations

import streamlit as st

from core.errors import AmbiscopeError
from pages import _shared

st.set_page_config(page_title="Ambiscope", page_icon=":material/alt_route:", layout="wide")
page = _shared.navigation()
try:
    st.session_state.setdefault("annotator", _shared.settings().annotator)
except AmbiscopeError as error:
    _shared.show_error(error)
    st.stop()
# before the page: a run that is being drawn lasts, and a field that is not drawn loses its value
st.sidebar.text_input("Your name", key="annotator", max_chars=60, help="Verdicts are kept under this name.")
with _shared.inside_app():
    page.run()
