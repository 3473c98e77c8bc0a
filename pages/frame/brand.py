"""Name, mark and version, on every page."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from core import __version__
from core.settings import ROOT
from pages.frame import glossary as sheet
from pages.server.tab_icon import ICON
from pages.session import background as jobs
from pages.session import shared

LIGHT, DARK = ("#1f2937", "#0068c9"), ("#f3f4f6", "#60b4ff")  # letters and mark on a light and on a dark page
CHANGELOG = "brand.changelog"
SIDEBAR_WIDTH = 340  # pixels: the names of systems fit


def name(page: StreamlitPage) -> None:
    """The page's title in the browser tab, and the logo."""
    st.set_page_config(page_title=f"{page.title} · Ambiscope")
    logo = Path(__file__).with_name("logo.svg").read_text(encoding="utf-8")
    for light, dark in zip(LIGHT, DARK, strict=True) if st.context.theme.type == "dark" else ():
        logo = logo.replace(light, dark)
    st.logo(logo, size="large", icon_image=ICON)


@st.dialog("What's new", width="large")
def _changelog() -> None:
    """Our own text, shown as it is."""
    st.markdown((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n")[2])


def footer() -> None:
    """The end of the sidebar: running jobs, and the version with its change log."""
    with st.sidebar:
        running = sum(not job.done for *_, job in jobs.all_jobs())
        if running:
            st.page_link("pages/jobs/page.py", label=f"{running} running: see Jobs", icon=shared.PAGES["jobs"][1])
        is_open = sheet.draw()
        label = f"Ambiscope {__version__.rpartition('.')[0]} · What's new"
        pressed = st.button(label, key=CHANGELOG, type="tertiary", icon=":material/new_releases:")
        if pressed and not is_open:  # two quick clicks may come together, and Streamlit opens one dialog per run
            _changelog()
        sheet.listen()
