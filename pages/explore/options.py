"""The sidebar of the explore page: what to run over what, and recent predictions; and setting it to what made a prediction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import types as t
from core.engine import SystemStatus
from core.errors import AmbiscopeError
from core.systems import SYSTEMS, choice_of, entry_of, is_bundled, options_of, passages_to_read, title_of
from core.systems.base.options import Options
from core.text import listed
from pages.explore.runner import Plan
from pages.session import shared
from pages.ui.markup import escape, short

MAX_PASSAGES = 200
RECENT = 12
COVERAGE_HELP = "Refuses answers whose document does not mention the names, numbers, years and quoted titles of the question."

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
    "Default: keep if verified, or keep all with a language model.",
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


def ready_systems(statuses: Sequence[SystemStatus], default: str) -> list[str]:
    """Names to choose from, the default first; a hidden system can be chosen only by being the setting."""
    names = [s.name for s in statuses if s.ready]
    if default not in [s.name for s in statuses]:
        names.insert(0, default)
    return sorted(names, key=lambda name: name != default)


class _Fields:
    """The fields of the sidebar: marks those that were changed, and knows how to set them back."""

    def __init__(self) -> None:
        self.changed: dict[str, Any] = {}  # key -> its default

    def draw(
        self, widget: Callable[..., Any], label: str, *args: Any, key: str, default: Any, words: str = "", **kw: Any
    ) -> Any:
        """A widget that keeps its value for the session.  `words`: the default as people read it."""
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
                on_click=_reset,
                args=(self.changed,),
            )


def _reset(changed: dict[str, Any]) -> None:
    st.session_state.update(changed)


def _read_key(system: str, prefix: str, bound: int) -> str:
    """Of the number of passages: what was set for a large corpus may be too much for a small one."""
    key = f"{prefix}.top_k.{system}" if SYSTEMS[system].passages else f"{prefix}.top_k"
    return key if bound == MAX_PASSAGES else f"{key}.{bound}"


def _side(
    label: str, mark: str, names: list[str], prefix: str, passages: int, fields: _Fields, read: DeltaGenerator
) -> tuple[str, Options]:
    """One system with its options.  `mark`: after their names, where two systems are compared; `passages`: how many the corpus has, 0 if not
    known; `read`: where it is said how many of them are read."""
    settings = shared.settings()
    key = f"{prefix}.system"
    shown = st.session_state.get(key) or names[0]
    about = f"{shown}: {entry_of(shown).summary}."
    bundled = all(map(is_bundled, (settings.answerer, settings.reader, settings.seq2seq)))
    system = str(
        fields.draw(
            st.selectbox,
            label,
            names,
            key=key,
            default=names[0],
            words=choice_of(names[0]),
            format_func=partial(choice_of, bundled=bundled),
            help=escape(about),
        )
    )
    entry = SYSTEMS[system]
    if bundled and entry.mechanism_only:
        st.caption(f"Mechanism only: {escape(entry.mechanism_only)}.")
    if entry.missing and not (settings.lm_url or settings.lm_local):
        st.caption(f"{escape(entry.missing[:1].upper() + entry.missing[1:])}.")
    if bundled and entry.expect:
        st.caption(entry.expect)
    bound = min(passages or MAX_PASSAGES, MAX_PASSAGES)
    usual = min(passages_to_read(system, settings.top_k), bound)
    with read:
        k = fields.draw(
            st.number_input,
            f"Passages to read{mark}",
            min_value=1,
            max_value=bound,
            value=usual,
            key=_read_key(system, prefix, bound),
            default=usual,
            help=f"The corpus has {passages:,} passages." if passages else None,
        )
    usual = min(settings.max_answers, 50)
    max_answers = fields.draw(
        st.number_input, f"Maximum answers{mark}", 1, 50, usual, key=f"{prefix}.max_answers", default=usual
    )
    above = None
    if fields.toggle(
        f"Custom stopping threshold{mark}",
        f"{prefix}.stopping",
        help='Off: the run stops when "no further answer" is more probable than every candidate. On: it stops when the probability of '
        '"no further answer", written [EOI] in the paper, is above your threshold.',
    ):
        above = st.slider(
            f'Stop when "no further answer" is above{mark}',
            0.0,
            1.0,
            0.5,
            0.05,
            key=f"{prefix}.stop_above",
            persist_state="session",
        )
    clarify = fields.toggle(
        f"Rewritten questions{mark}",
        f"{prefix}.clarify",
        True,
        help="Rewrites the question for each answer, then asks it again to check.",
    )
    check_coverage = fields.toggle(f"Check what the corpus covers{mark}", f"{prefix}.check_coverage", True, help=COVERAGE_HELP)
    extra = _choices(system, prefix, fields)
    return system, Options(int(k), int(max_answers), above, clarify, check_coverage, extra)


def restore(stored: Sequence[t.Prediction]) -> None:
    """Sets the sidebar to what made these predictions, one or two to compare; what is not here any more is left as it is."""
    state, corpus = st.session_state, stored[0].system.corpus
    if corpus in shared.light_engine().library.names():
        state["explore.corpus"] = corpus
    bound = min(shared.passages_of(corpus) or MAX_PASSAGES, MAX_PASSAGES)
    state["explore.compare"] = len(stored) > 1
    for prefix, info in zip(("explore.first", "explore.second"), (p.system for p in stored)):
        if info.name not in ready_systems(shared.systems(), shared.settings().system):
            continue
        options = made_with(info)
        above, own = options.stop_above, options_of(info.name).rows()
        state[f"{prefix}.system"] = info.name
        state[_read_key(info.name, prefix, bound)] = min(options.passages, bound)
        state[f"{prefix}.max_answers"] = options.max_answers
        state[f"{prefix}.stopping"] = above is not None
        if above is not None:
            state[f"{prefix}.stop_above"] = above
        state[f"{prefix}.clarify"], state[f"{prefix}.check_coverage"] = options.clarify, options.check_coverage
        state.update({f"{prefix}.{info.name}.{r.name}": options.extra.get(r.name, r.values[0]) for r in own if r.in_menu})


def made_with(info: t.SystemInfo) -> Options:
    """The options of a prediction; where its corpus holds fewer passages by now, all of them."""
    known = {f.name for f in dataclasses.fields(Options)}
    options = Options(**{k: v for k, v in info.settings.items() if k in known})
    size = shared.passages_of(info.corpus) if info.corpus else 0
    return dataclasses.replace(options, top_k=size) if size and options.passages > size else options


def _choices(system: str, prefix: str, fields: _Fields) -> dict[str, str]:
    """A selection for each option of the system that has a few named values; those left at their default are not passed on."""
    chosen = dict[str, str]()
    clustered = SYSTEMS[system].view == "interpretations"
    with st.expander("Clustering", icon=":material/bubble_chart:") if clustered else st.container():
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
                chosen[name] = value
    return chosen


def sidebar() -> Choices:
    settings, statuses = shared.settings(), shared.systems()
    names = shared.light_engine().library.names()
    if not names:
        st.sidebar.warning("There is no corpus yet. Upload one on the Corpora page.")
    fields = _Fields()
    with st.sidebar:
        reset = st.container()
        st.subheader("What to read", anchor=False)
        start = names.index(settings.corpus) if settings.corpus in names else 0
        default = names[start] if names else None
        corpus = fields.draw(
            st.selectbox, "Corpus", names, index=start if names else None, key="explore.corpus", default=default
        )
        read = st.container()
        count = shared.passages_of(str(corpus))
        ready = ready_systems(statuses, settings.system)
        sides: list[tuple[str, Options]] = []
        if ready:
            st.subheader("How to answer", anchor=False)
            sides.append(_side("System", "", ready, "explore.first", count, fields, read))
            st.subheader("Compare", anchor=False)
            if fields.toggle("Compare with a second system", "explore.compare"):
                second = _side("Second system", " (second system)", ready, "explore.second", count, fields, st.container())
                sides.append(second)
        with reset:
            fields.reset_button()
        waiting = [s for s in statuses if not s.ready]
        if waiting:
            with st.expander(f"{listed(len(waiting), 'system')} not available"):
                for status in waiting:
                    st.markdown(f"**{escape(title_of(status.name))}**: {escape(status.summary)}")
                    st.caption(f"Needs {escape(', '.join(status.needs))}. {escape(status.why_not)}")
        recent()
    return Choices(str(corpus or ""), tuple(sides))


def recent() -> None:
    """Links to stored predictions, the newest first."""
    with st.expander("Recent predictions", icon=":material/history:"):
        text = st.text_input("Search the questions", key="explore.filter", max_chars=200)
        try:
            rows = shared.store().predictions.recent_predictions(RECENT, text=text.strip())
        except AmbiscopeError as error:
            shared.show_error(error)
            return
        if not rows:
            st.caption("No matches." if text.strip() else "None yet. Ask a question to make one.")
        for row in rows:
            st.page_link(
                "pages/explore/page.py",
                label=escape(short(row.question, 60)),
                help=escape(f"{title_of(row.system)} over {row.corpus}: {short(', '.join(row.answers) or 'no answer', 120)}"),
                query_params={"prediction": row.id},
            )
