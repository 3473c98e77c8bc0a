"""Connections: the language model, with a test; and the service, with a line to call it."""

from __future__ import annotations

import json
import shlex
from urllib.parse import urlsplit

import streamlit as st

from core.models.language.loading import (
    NoLanguageModelError,
    language_model_needed,
    load_language_generator,
    require_language_model,
)
from core.models.language.roles import Run
from core.types import ModelCalled, Passage
from pages.session import shared
from pages.session.actions import action
from pages.ui.formatting import seconds
from pages.ui.markup import escape

TEST = "connections.tested"
QUESTION = "Where is the Eiffel Tower?"
PASSAGE = Passage("test", "Eiffel Tower", "The Eiffel Tower is in Paris, on the Champ de Mars.")
EXAMPLE = "Who directed A Star Is Born?"


@action("back up")
def _test() -> None:
    """Callback: one question over one passage, answered by a JSON object."""
    st.session_state.pop(TEST, None)
    settings = shared.settings()
    generator, run = load_language_generator(settings), Run.of(settings.lm_timeout)
    answer = generator.answer(QUESTION, [PASSAGE], run)
    st.session_state[TEST] = (generator.name, answer, run.calls[-1])


def show_test(name: str, answer: str | None, call: ModelCalled) -> None:
    if call.error:
        st.error(f"{escape(name)} failed: {escape(call.error)}", icon=":material/error:")
    else:
        st.success(f"{escape(name)} answered {escape(answer or 'nothing')}, in JSON as asked.", icon=":material/check:")
    with st.container(horizontal=True):
        st.metric("Time", seconds(call.seconds))
        st.metric("Prompt tokens", call.prompt_tokens)
        st.metric("Reply tokens", call.completion_tokens)
    if call.warning:
        st.warning(escape(call.warning), icon=":material/warning:")


def language_model() -> None:
    settings = shared.settings()
    st.subheader("Language model", divider="gray", anchor=False)
    st.markdown(
        "Optional. `ambigprompt-lm`, `dtv`, `rac` and their variants need one. `verdict` and `refuel` use it where it is configured, "
        "and it can grade interpretations on Evaluate."
    )
    if advice := language_model_needed(settings):
        st.info(f"{escape(advice[:1].upper() + advice[1:])}, then restart the app.", icon=":material/info:")
        try:
            require_language_model(settings)
        except NoLanguageModelError:
            return
        model = "the small decoder that comes with Ambiscope, with 135 M parameters"
    elif settings.lm_url:
        model = f"`{escape(settings.lm_model or 'the first model for chats')}` at {escape(urlsplit(settings.lm_url).netloc or settings.lm_url)}"
    else:
        model = f"`{escape(settings.lm_local)}` on this machine"
    st.markdown(f"In use: {model}")
    st.button("Test it", key="connections.test", on_click=_test, icon=":material/play_arrow:")
    if test := st.session_state.get(TEST):
        show_test(*test)


def service() -> None:
    settings = shared.settings()
    st.subheader("Service", divider="gray", anchor=False)
    st.markdown("`python -m core serve` answers questions over HTTP: the app, scripts and other programs can share one engine.")
    address = settings.engine_url or f"http://{settings.serve_host}:{settings.serve_port}"
    st.markdown(f"Address: {escape(address)}{' (this app asks it, too)' if settings.engine_url else ''}")
    latest = shared.store().predictions.recent_predictions(1)
    question = json.dumps({"question": latest[0].question if latest else EXAMPLE}, ensure_ascii=False)
    key = " -H 'Authorization: Bearer YOUR-KEY'" if settings.serve_key or settings.engine_key else ""
    st.code(f"curl {shlex.quote(f'{address}/v1/ask')}{key} --json {shlex.quote(question)}", language=None, wrap_lines=True)
    st.caption("With the latest question that was asked here. Other calls: docs/service.md.")


def main() -> None:
    st.header("Connections", anchor=False)
    shared.store().allow("back up")
    language_model()
    service()


main()
