"""The names that plugins register and the plugins that don't work, for the people who run the installation."""

from __future__ import annotations

import streamlit as st

from core import plugins
from core.errors import AmbiscopeError
from core.metrics import METRICS
from core.plugins import Plugin
from core.registry import problems
from core.retrieval.readers import READERS
from core.systems import SYSTEMS
from pages.session import shared
from pages.ui.markup import escape
from storage.exchange.exports.formats import FORMATS

REGISTRIES = (SYSTEMS, METRICS, READERS, FORMATS)


def listed() -> list[Plugin]:
    """Every registered name of a plugin, and every file that registers none."""
    return [*plugins.broken_files(), *(p for registry in REGISTRIES for p in registry.plugins())] if plugins.exist() else []


def warn() -> None:
    """Names the plugins that don't work, on every page of people who see Health.  Everything else works without them."""
    try:
        failures = problems(*REGISTRIES) if plugins.exist() and shared.store().may("back up") else []
    except AmbiscopeError:  # of the store: the page itself says so
        return
    if failures:
        st.warning("\n\n".join(map(escape, failures)), icon=":material/extension_off:")
