"""Explore's sidebar: corpus, system, options, recent predictions; and setting it to a stored prediction's options."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from core import types as t
from core.errors import AmbiscopeError
from core.systems import choice_of, entry_of, is_bundled, mechanism_only, options_of, passages_to_read
from core.systems.base.options import Options
from core.text import listed
from core.trace import from_json
from pages.explore.runner import Plan
from pages.session import shared
from pages.session.systems import COVERAGE_HELP, MAX_PASSAGES, ready_systems
from pages.ui.markup import escape, short

RECENT_QUESTIONS = 12

VALUE_LABELS = {
    "none": "None",
    "by generator": "Default",
    "default": "Default",
    "conservative": "Conservative: fewer clusters",
    "question and answer": "Question and answer",
    "question": "Question only",
    "verified": "Keep if verified",
    "keep": "Keep",
    "drop": "Drop",
    "decides": "One cluster per answer",
    "ignored": "By embeddings only",
}
HELP = {
    "clustering": "Conservative needs more interpretations per cluster, and merges clusters that are close together.",
    "embed": "What to embed: the disambiguated question with its answer, or the question only.",
    "unclustered": "What happens to an interpretation unlike any other. Keep if verified: only when a second look at its passage supports it. "
    "Default: keep if verified; with a language model, drop.",
    "same_answer": "Whether interpretations with the same answer always form one cluster, or embeddings alone decide.",
}
LABELS = {
    "clustering": "Clustering",
    "embed": "Embed",
    "unclustered": "Unclustered interpretations",
    "same_answer": "Equal answers",
}


@dataclass(frozen=True)
class Choices:
    corpus: str
    sides: tuple[tuple[str, Options], ...]  # system and options; two when comparing; none when no system is ready

    def plans(self, question: t.Question) -> list[Plan]:
        return [Plan(question, system, self.corpus, options) for system, options in self.sides]


class _Fields:
    """Draws the fields of the sidebar, marks the changed ones, and can reset them."""

    def __init__(self) -> None:
        self.changed: dict[str, Any] = {}  # key -> its default

    def draw(
        self, widget: Callable[..., Any], label: str, *args: Any, key: str, default: Any, words: str = "", **kw: Any
    ) -> Any:
        """A widget that keeps its value for the session.  `words`: the default in words."""
        value = widget(label, *args, key=key, persist_state="session", **kw)
        if st.session_state.get(key, default) != default:
            self.changed[key] = default
            st.caption(f":orange[:material/edit: Default: {escape(words or default)}]")
        return value

    def toggle(self, label: str, key: str, default: bool = False, help: str | None = None) -> bool:
        return bool(self.draw(st.toggle, label, default, key=key, default=default, words="on" if default else "off", help=help))

    def reset_button(self) -> None:
        if self.changed:
            st.button(
                f"Reset {listed(len(self.changed), 'changed setting')}",
                key="explore.reset",
                icon=":material/restart_alt:",
                on_click=st.session_state.update,
                args=(self.changed,),
            )


def _top_k_key(system: str, prefix: str, bound: int) -> str:
    """The key of the number of passages to read, one for each corpus, because a number set for a large corpus may be too high
    for a small one."""
    key = f"{prefix}.top_k.{system}" if entry_of(system).passages else f"{prefix}.top_k"
    return key if bound == MAX_PASSAGES else f"{key}.{bound}"


def _system(label: str, names: list[str], prefix: str, fields: _Fields) -> str:
    """The choice of a system, with a note about it.  `names`: the first is the default."""
    settings = shared.settings()
    key = f"{prefix}.system"
    current = st.session_state.get(key) or names[0]
    bundled = all(map(is_bundled, (settings.answerer, settings.reader, settings.seq2seq)))
    system = str(
        fields.draw(
            st.selectbox,
            label,
            names,
            key=key,
            default=names[0],
            words=names[0],
            format_func=partial(choice_of, bundled=bundled),
            help=escape(f"{current}: {entry_of(current).summary}."),
        )
    )
    entry = entry_of(system)
    if bundled and (reason := mechanism_only(system)):
        st.caption(f"Mechanism only: {escape(reason)}.")
    if entry.missing and not (settings.lm_url or settings.lm_local):
        st.caption(f"{escape(entry.missing[:1].upper() + entry.missing[1:])}.")
    if bundled and entry.expect:
        st.caption(entry.expect)
    return system


def _options(system: str, suffix: str, prefix: str, passages: int, fields: _Fields) -> Options:
    """The options of a chosen system.  `suffix`: for their labels if two systems are compared.  `passages`: the number in the
    corpus, 0 if unknown."""
    settings = shared.settings()
    bound = min(passages or MAX_PASSAGES, MAX_PASSAGES)
    default = min(passages_to_read(system, settings.top_k), bound)
    top_k = fields.draw(
        st.number_input,
        f"Passages to read{suffix}",
        min_value=1,
        max_value=bound,
        value=default,
        key=_top_k_key(system, prefix, bound),
        default=default,
        help=f"The corpus has {passages:,} passages." if passages else None,
    )
    default = min(settings.max_answers, 50)
    max_answers = fields.draw(
        st.number_input, f"Maximum answers{suffix}", 1, 50, default, key=f"{prefix}.max_answers", default=default
    )
    stop_above = None
    if fields.toggle(
        f"Custom stopping threshold{suffix}",
        f"{prefix}.stopping",
        help='Off: the run stops when "no further answer" is more probable than every candidate. On: it stops when the probability of '
        '"no further answer", written [EOI] in the paper, is above your threshold.',
    ):
        stop_above = st.slider(
            f'Stop when "no further answer" is above{suffix}',
            0.0,
            1.0,
            0.5,
            0.05,
            key=f"{prefix}.stop_above",
            persist_state="session",
        )
    clarify = fields.toggle(
        f"Rewritten questions{suffix}",
        f"{prefix}.clarify",
        True,
        help="Rewrites the question for each answer, then asks it again to check.",
    )
    label = f"Check what the corpus covers{suffix}"
    check_coverage = fields.toggle(label, f"{prefix}.check_coverage", True, help=COVERAGE_HELP)
    extra = _choices(system, prefix, fields)
    return Options(int(top_k), int(max_answers), stop_above, clarify, check_coverage, extra)


def restore(predictions: Sequence[t.Prediction]) -> None:
    """Sets the sidebar to the options of these predictions, one or two to compare.  Fields of a corpus or system that no longer
    exists don't change."""
    state, corpus = st.session_state, predictions[0].system.corpus
    if corpus in shared.light_engine().library.names():
        state["explore.corpus"] = corpus
    bound = min(shared.passages_of(corpus) or MAX_PASSAGES, MAX_PASSAGES)
    state["explore.compare"] = len(predictions) > 1
    for prefix, info in zip(("explore.first", "explore.second"), (p.system for p in predictions)):
        if info.name not in ready_systems(shared.systems(), shared.settings().system):
            continue
        options, rows = made_with(info), options_of(info.name).rows()
        state[f"{prefix}.system"] = info.name
        state[_top_k_key(info.name, prefix, bound)] = min(options.passages, bound)
        state[f"{prefix}.max_answers"] = options.max_answers
        state[f"{prefix}.stopping"] = options.stop_above is not None
        if options.stop_above is not None:
            state[f"{prefix}.stop_above"] = options.stop_above
        state[f"{prefix}.clarify"], state[f"{prefix}.check_coverage"] = options.clarify, options.check_coverage
        state.update({f"{prefix}.{info.name}.{r.name}": options.extra.get(r.name, r.values[0]) for r in rows if r.in_menu})


def made_with(info: t.SystemInfo) -> Options:
    """A prediction's options, or the defaults if another program's settings aren't options.  If its corpus now has fewer
    passages, all of them."""
    try:
        options = from_json(Options, info.settings)
    except AmbiscopeError:
        options = Options()
    size = shared.passages_of(info.corpus) if info.corpus else 0
    return dataclasses.replace(options, top_k=size) if size and options.passages > size else options


def _choices(system: str, prefix: str, fields: _Fields) -> dict[str, str]:
    """A selection for each option of the system that has a few named values.  Returns those that differ from the default."""
    changed = dict[str, str]()
    is_clustered = entry_of(system).view == "interpretations"
    with st.expander("Clustering", icon=":material/bubble_chart:") if is_clustered else st.container():
        for name, values in ((row.name, row.values) for row in options_of(system).rows() if row.in_menu):
            value = fields.draw(
                st.selectbox,
                LABELS.get(name, name.replace("_", " ").capitalize()),
                values,
                format_func=lambda value: VALUE_LABELS.get(value, value),
                key=f"{prefix}.{system}.{name}",
                default=values[0],
                words=VALUE_LABELS.get(values[0], values[0]),
                help=HELP.get(name),
            )
            if value and value != values[0]:
                changed[name] = value
    return changed


def sidebar() -> Choices:
    settings, statuses = shared.settings(), shared.systems()
    names = shared.light_engine().library.names()
    if not names:
        st.sidebar.warning("There is no corpus yet. Upload one on the Corpora page.")
    fields = _Fields()
    with st.sidebar:
        reset_place = st.container()
        start = names.index(settings.corpus) if settings.corpus in names else 0
        default = names[start] if names else None
        corpus = fields.draw(
            st.selectbox, "Corpus", names, index=start if names else None, key="explore.corpus", default=default
        )
        ready = ready_systems(statuses, settings.system)
        systems = {"explore.first": _system("System", ready, "explore.first", fields)} if ready else {}
        if ready and fields.toggle("Compare with a second system", "explore.compare"):
            others = sorted(ready, key=lambda name: name == systems["explore.first"])  # the default: another one than the first
            systems["explore.second"] = _system("Second system", others, "explore.second", fields)
        count = shared.passages_of(str(corpus))
        sides: list[tuple[str, Options]] = []
        for (prefix, system), suffix in zip(systems.items(), ("", " (second system)")):
            st.subheader(f"Settings of {escape(system)}{suffix}", anchor=False)
            sides.append((system, _options(system, suffix, prefix, count, fields)))
        with reset_place:
            fields.reset_button()
        unavailable = [s for s in statuses if not s.ready]
        if unavailable:
            with st.expander(f"{listed(len(unavailable), 'system')} not available"):
                for status in unavailable:
                    st.markdown(f"**{escape(status.name)}**: {escape(status.summary)}")
                    st.caption(f"Needs {escape(', '.join(status.needs))}. {escape(status.why_not)}")
        recent()
    return Choices(str(corpus or ""), tuple(sides))


def recent() -> None:
    """Links to stored predictions, newest first."""
    with st.expander("Recent predictions", icon=":material/history:"):
        text = st.text_input("Search the questions", key="explore.filter", max_chars=200)
        try:
            rows = shared.store().predictions.recent_predictions(RECENT_QUESTIONS, text=text.strip())
        except AmbiscopeError as error:
            shared.show_error(error)
            return
        if not rows:
            st.caption("No matches." if text.strip() else "None yet. Ask a question to make one.")
        for row in rows:
            st.page_link(
                "pages/explore/page.py",
                label=escape(short(row.question, 60)),
                help=escape(f"{row.system} over {row.corpus}: {short(', '.join(row.answers) or 'no answer', 120)}"),
                query_params={"prediction": row.id},
            )
