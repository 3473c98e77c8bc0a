"""The health page: what is shown, the backup button, and that secrets stay hidden."""

from __future__ import annotations

from pathlib import Path

import pytest
from annotate_helpers import fine
from page_helpers import Open, button, texts
from storage_samples import noted_exports
from streamlit.testing.v1 import AppTest

from pages.health import installation as health
from storage.store import Store

pytestmark = pytest.mark.usefixtures("light")


def last_backup(app: AppTest) -> str:
    return next(m.value for m in app.metric if m.label == "Last backup")


def test_launches_and_backs_up(open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBISCOPE_LM_KEY", "sk-very-secret")
    app = fine(open_app("health"))
    assert last_backup(app) == "never"
    everything = texts(app) + "".join(str(d.value) for d in app.dataframe)
    assert "sk-very-secret" not in everything
    versions, settings = (d.value for d in app.dataframe)
    assert {"Python", "streamlit"} <= set(versions["Component"])
    row = settings[settings["Variable"] == "AMBISCOPE_LM_KEY"].iloc[0]
    assert (row["Value"], row["Source"]) == (health.HIDDEN, "set")
    fine(button(app, "Back up now").click().run())
    (record,) = noted_exports(store)
    assert record.format == "backup"
    assert Path(record.file).exists()
    assert last_backup(app) == "just now"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql+pg8000://ann:pw@db.example:5432/a?x=secret", "postgresql+pg8000://ann:…@db.example:5432/a?…"),
        ("sqlite:////home/x/a.db", "sqlite:////home/x/a.db"),
        ("http://127.0.0.1:8123/v1", "http://127.0.0.1:8123/v1"),
        ("", ""),
    ],
)
def test_addresses_without_passwords(url: str, shown: str) -> None:
    assert health.without_password(url) == shown


def test_age() -> None:
    ages = {None: "never", 5: "just now", 61: "1 minute ago", 7300: "2 hours ago", 90000: "1 day ago", 200000: "2 days ago"}
    assert {seconds: health.age(seconds) for seconds in ages} == ages
