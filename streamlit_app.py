"""Ambiscope's app: `python3 run.py app`."""

from __future__ import annotations

import streamlit as st

from pages import _shared, _signin

st.set_page_config(page_title="Ambiscope", page_icon=":material/alt_route:", layout="wide")
page = _shared.navigation()
try:
    _signin.gate()
except Exception as error:  # whatever it is: who is here is not known
    _shared.show_error(error)
    st.info("Ambiscope shows nothing until it can read from its database who may do what.")
    st.stop()
with _shared.inside_app():
    page.run()
