"""Name and version on every page."""

from __future__ import annotations

import pytest
from annotate_helpers import fine
from page_helpers import Open, texts

from core import __version__
from pages.frame import brand
from pages.session import shared


@pytest.mark.parametrize("page", shared.PAGES)
def test_every_page_launches_with_the_version(open_app: Open, page: str) -> None:
    app = fine(open_app(page))
    assert __version__.rpartition(".")[0] in app.button(key=brand.CHANGELOG).label


def test_the_version_leads_to_what_is_new(open_app: Open) -> None:
    app = open_app()
    app.button(key=brand.CHANGELOG).click().run()
    assert not app.exception
    assert "Keep a Changelog" in texts(app)
