"""Ambiscope's app: `python3 run.py app`.

The server imports this file for `app`; Streamlit then runs it as a script for each visitor.
"""

from __future__ import annotations

import streamlit as st

if __name__ != "__main__":
    from pages import _server

    app = st.App(__file__, middleware=_server.middleware())
else:
    from core.settings import ROOT
    from pages import _admission, _shared, _signin

    # a file, as Streamlit's own icons for a browser's tab come from another host
    st.set_page_config(page_title="Ambiscope", page_icon=str(ROOT / "pages" / "icon.svg"), layout="wide")
    page = _shared.navigation()
    try:
        with _admission.noted():
            _signin.gate()
    except Exception as error:  # whatever it is: who is here is not known
        _shared.show_error(error)
        st.info("Ambiscope shows nothing until it can read from its database who may do what.")
        st.stop()
    _admission.warn()
    with _shared.inside_app():
        page.run()
