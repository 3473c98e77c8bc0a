"""Plugins on pages: what works is offered like ours, what does not is named to the people who run the installation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from annotate_helpers import fine
from page_helpers import Open, texts
from plugin_files import plugin

from core.settings import ROOT

__all__ = ["plugin"]

SYSTEM = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8").partition("# my_systems.py\n")[2].partition("```")[0]


@pytest.fixture
def plugins(plugin: Callable[..., Path]) -> None:
    plugin("raise RuntimeError('no [such](x) library')\n", "broken.py")
    plugin(SYSTEM, "my_systems.py")


@pytest.mark.usefixtures("corpus", "plugins")
def test_a_system_is_offered_and_a_failure_named(open_app: Open) -> None:
    app = fine(open_app())
    assert [option for box in app.selectbox for option in box.options if "titles of passages" in option]
    (warning,) = [w.value for w in app.warning if "RuntimeError" in w.value]
    assert warning.startswith("plugin file broken")
    assert "[such](x)" not in warning  # text of a plugin is no markup


@pytest.mark.usefixtures("light", "plugins")
def test_health_lists_every_plugin(open_app: Open) -> None:
    app = fine(open_app("health"))
    (table,) = [d.value for d in app.dataframe if "Kind" in d.value]
    assert set(zip(table["Kind"], table["Name"], table["From"], strict=True)) == {
        ("Plugin file", "broken.py", "broken.py"),
        ("System", "titles", "my_systems.py"),
    }
    states = dict(zip(table["Name"], table["State"], strict=True))
    assert (states["titles"], states["broken.py"].startswith("RuntimeError")) == ("works", True)


@pytest.mark.usefixtures("ann", "light", "plugins")
def test_an_annotator_is_not_bothered(open_app: Open) -> None:
    app = fine(open_app("annotate"))
    assert "RuntimeError" not in texts(app)
