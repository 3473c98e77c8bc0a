"""Ambiscope's app: `python3 run.py app`."""

from __future__ import annotations

import streamlit as st

from core.errors import AmbiscopeError
from pages import _shared, _signin

st.set_page_config(page_title="Ambiscope", page_icon=":material/alt_route:", layout="wide")
page = _shared.navigation()
try:
    _signin.gate()
except AmbiscopeError as error:
    _shared.show_error(error)
    st.stop()
with _shared.inside_app():
    page.run()
