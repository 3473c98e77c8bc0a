"""Questions of the page tests, and functions that read a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlit.testing.v1 import AppTest

from pages.session.background import jobs_of

Open = Callable[..., AppTest]  # of the fixtures `open_app` and `annotate`
QUESTION = "Who played Maria in West Side Story?"
ANSWERS = ("Natalie Wood", "Rachel Zegler", "Carol Lawrence")
ROWS = [
    ("p1", "West Side Story (1961 film)", "Natalie Wood played Maria in the film directed by Robert Wise."),
    ("p2", "West Side Story (2021 film)", "Rachel Zegler played Maria in the remake by Steven Spielberg."),
    ("p3", "West Side Story (musical)", "Carol Lawrence created the role of Maria on Broadway in 1957."),
    ("p4", "Basalt", "Basalt is a dark volcanic rock that forms when lava cools quickly."),
]
TIMEOUT = 180  # seconds: of a test that waits for what never comes, on a machine that has much else to do


def tsv(rows: list[tuple[str, str, str]]) -> str:
    return "id\ttext\ttitle\n" + "".join(f"{i}\t{text}\t{title}\n" for i, title, text in rows)


def texts(app: AppTest) -> str:
    """Everything that is drawn as text, without the escapes."""
    kinds: list[Any] = [app.header, app.subheader, app.markdown, app.caption, app.error, app.warning, app.info, app.success]
    return "\n".join(str(e.value) for kind in kinds for e in kind).replace("\\", "").replace("\u2060", "")


def ask(app: AppTest, question: str = QUESTION) -> AppTest:
    app.text_input(key="explore.question").set_value(question)
    return button(app, "Ask").click().run()


def ended(app: AppTest, kind: str) -> AppTest:
    """The page when the jobs of this kind that it started have ended."""
    jobs = list(jobs_of(kind).values())
    assert all(job.wait(TIMEOUT) for job in jobs)
    return app.run() if jobs else app


def built(app: AppTest) -> AppTest:
    return ended(app, "builds")


def start_build(app: AppTest, name: str, *files: tuple[str, bytes]) -> AppTest:
    """Uploads files on the Corpora page, and starts to build."""
    app.text_input(key="corpora.name").set_value(name)
    app.file_uploader[0].set_value([(file, content, "text/plain") for file, content in files])
    return button(app, "Upload and build").click().run()


def upload(app: AppTest, name: str, *files: tuple[str, bytes]) -> AppTest:
    return built(start_build(app, name, *files))


def button(app: AppTest, label: str) -> Any:
    """The first one with this label, without what is only read aloud of it."""
    buttons = [b for b in app.button if b.label.replace("\\", "").partition(" *")[0] == label]
    assert buttons, f"no button '{label}' among {[b.label for b in app.button]}"
    return buttons[0]
