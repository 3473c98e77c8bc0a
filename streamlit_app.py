"""Ambiscope's app: `python3 run.py app`.

The server imports this file for `app`; Streamlit then runs it as a script for each session.
"""

from __future__ import annotations

import streamlit as st

if __name__ != "__main__":
    from starlette.middleware import Middleware
    from streamlit.runtime.pages_manager import PagesManager

    from pages.server import server
    from pages.server.tab_icon import TabIcon

    # The pages are those of st.navigation: otherwise a server's first session, by a direct link, would look for a file of `pages/`.
    PagesManager.uses_pages_directory = False

    def show_error(error: Exception) -> bool:
        """Shows the error of a callback or a fragment, which Streamlit runs outside of the script below."""
        from pages.session import actions  # late: the server starts without the pages

        return actions.show_uncaught(error)

    app = st.App(__file__, middleware=[*server.middleware(), Middleware(TabIcon)], on_script_error=show_error)
else:
    from core.settings import ROOT
    from pages.frame import brand, notices, tour
    from pages.server import admission
    from pages.session import actions, registered, shared, sign_in

    st.set_page_config(layout="wide", initial_sidebar_state=brand.SIDEBAR_WIDTH)  # before the navigation, which draws a sidebar
    page = shared.navigation()
    brand.name(page)
    st.html(ROOT / "pages" / "ui" / "style.css")
    try:
        admission.run_gate(sign_in.gate)
    except Exception as error:  # whatever it is: who is here is not known
        shared.show_error(error)
        st.info("Ambiscope shows nothing until it can read people's permissions from its database.")
        st.stop()
    admission.warn()
    notices.draw()
    registered.warn()
    tour.draw(page.url_path)
    actions.show_outcome()
    try:
        page.run()
    except Exception as error:  # the page is at fault, not the frame around it
        shared.show_error(error)
    brand.footer()
