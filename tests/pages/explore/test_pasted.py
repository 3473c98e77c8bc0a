"""A question about pasted text: what is read, what is refused, and what a stored prediction keeps."""

from __future__ import annotations

import time
from contextlib import suppress

import people
import pytest
from page_helpers import ANSWERS, QUESTION, ROWS, Open, ask
from streamlit.testing.v1 import AppTest

from core.errors import InputError
from core.settings import Settings
from pages.explore import pasted
from pages.session import to_explore
from storage.store import Store

TEXT = "\n".join(f"# {title}\n{text}\n" for _, title, text in ROWS)


def paste(app: AppTest, text: str, question: str = QUESTION) -> AppTest:
    app.toggle(key=to_explore.SWITCH).set_value(True).run()
    app.text_area(key=to_explore.TEXT).set_value(text)
    return ask(app, question)


def test_pasted_text_is_read_without_a_corpus_and_kept_with_the_prediction(open_app: Open, store: Store) -> None:
    app = paste(open_app(), TEXT)
    assert not app.exception
    (row,) = store.predictions.recent_predictions(5)
    stored = store.predictions.get_prediction(row.id).prediction
    assert [a.text for a in stored.answers] == list(ANSWERS)
    assert stored.system.corpus == ""
    assert [(p.title, p.text) for p in stored.question.passages or ()] == [(title, text) for _, title, text in ROWS]
    # another person opens the link, and can ask the same text again
    linked = open_app(prediction=row.id)
    assert linked.text_area(key=to_explore.TEXT).value.split() == TEXT.split()
    assert linked.toggle(key=to_explore.SWITCH).value is True


def test_pasted_text_is_read_also_after_signing_in_again(corpus: str, open_app: Open, store: Store) -> None:
    mia = people.manager(store)
    app = people.sign_in(open_app(), mia)
    app.toggle(key=to_explore.SWITCH).set_value(True).run()
    app.text_area(key=to_explore.TEXT).set_value(TEXT)
    store.people.sign_out_everywhere(mia)
    people.sign_in(ask(app), mia)
    (row,) = store.predictions.recent_predictions(5)
    assert store.predictions.get_prediction(row.id).prediction.question.passages
    assert app.toggle(key=to_explore.SWITCH).value is True


@pytest.mark.parametrize("text", ["", " \n ", "# only a title\n", "# ***\n---\n", "word " * 200_000], ids=lambda t: t[:8])
def test_text_that_cannot_be_read_is_refused_and_stays_in_the_box(open_app: Open, store: Store, text: str) -> None:
    app = paste(open_app(), text)
    assert len(app.error) == 1
    assert not app.exception
    assert not store.predictions.recent_predictions(5)
    assert app.text_area(key=to_explore.TEXT).value == text
    assert app.text_input(key="explore.question").value == QUESTION


@pytest.mark.parametrize(
    "filler", ["# " + " " * 40_000 + "\nx", " " * 200_000, "# \t" * 50_000, "[" * 200_000, "a" * 200_000, "#" * 200_000]
)
def test_no_text_holds_the_interpreter(settings: Settings, filler: str) -> None:
    start = time.process_time()  # of this process: what reads the text is another
    with suppress(InputError):
        pasted.passages_of(f"{filler}\n")
    assert time.process_time() - start < 1


def test_titles_of_pasted_text() -> None:
    passages = pasted.passages_of("Before.\n#no title\n## One  \nText.\n\n# \n#\tTwo #2\nMore.\n")
    assert [(p.title, p.text) for p in passages] == [("", "Before. #no title"), ("One", "Text. #"), ("Two #2", "More.")]


def test_passages_are_cut_as_those_of_a_corpus(settings: Settings) -> None:
    passages = pasted.passages_of(f"before\n# One\n{'word ' * 150}\n## Two\r\n\x00last\n")
    assert [(p.title, len(p.text.split())) for p in passages] == [("", 1), ("One", 100), ("One", 50), ("Two", 1)]
    assert len({p.id for p in passages}) == len(passages)
    with pytest.raises(InputError):
        pasted.passages_of(f"# {'t' * 400}\ntext")


def test_a_corpus_that_is_opened_from_its_page_is_asked_instead_of_pasted_text(open_app: Open, corpus: str) -> None:
    app = paste(open_app(), TEXT)
    app.switch_page("pages/corpora/page.py").run()
    app.button(key="corpora.ask").click().run()
    assert not app.exception
    assert not app.session_state[to_explore.SWITCH]
