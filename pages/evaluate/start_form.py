"""Start an evaluation, watch it, resume one that stopped, and store run folders made elsewhere."""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from core.datasets import LAYOUTS, load
from core.errors import InputError, StorageError
from core.evaluation.folder import RunState, run_states
from core.evaluation.judges import CHOICES
from core.evaluation.plan import EvaluationPlan
from core.systems import choice_of
from core.text import listed, time_text
from pages.session import background as jobs
from pages.session import shared
from pages.session.actions import action, say
from pages.session.evaluations import SUFFIXES, folder_for, question_file, question_files, run_and_store
from pages.session.systems import COVERAGE_HELP, MAX_PASSAGES, ready_systems
from pages.session.uploads import safe_names
from pages.ui.formatting import duration
from pages.ui.markup import escape, full_label
from storage.results.run_folders import ImportedRun, import_run

if TYPE_CHECKING:
    pass

KINDS = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".gz")


# ---------------------------------------------------------------- starting


def form() -> None:
    files = question_files()
    settings = shared.settings()
    systems, corpora = ready_systems(shared.systems(), settings.system), shared.light_engine().library.names()
    if not files:
        st.info("There is no question file. Upload one below, or run: python -m core download ambignq-light")
        return
    with st.form("evaluate.start", border=True):
        inputs, numbers, labels = st.columns(3)
        with inputs:
            st.selectbox("System", systems, format_func=choice_of, key="evaluate.new.system")
            st.selectbox("Questions", list(files), key="evaluate.new.questions")
            _layout("File layout", "evaluate.new.layout")
            start = corpora.index(settings.corpus) if settings.corpus in corpora else 0
            st.selectbox(
                "Corpus",
                corpora,
                index=start if corpora else None,
                key="evaluate.new.corpus",
                help="Not used when every question has its own passages.",
            )
        with numbers:
            st.number_input("Maximum questions (0 = all)", min_value=0, value=0, key="evaluate.new.limit")
            st.number_input(
                "Passages to read", min_value=1, max_value=MAX_PASSAGES, value=_default_top_k(), key="evaluate.new.top_k"
            )
            st.number_input("Random seed for intervals", value=0, step=1, key="evaluate.new.seed")
        with labels:
            st.text_input("Run name", key="evaluate.new.label", max_chars=120)
            st.selectbox("Grounding judge", ["automatic", *CHOICES], format_func=str.capitalize, key="evaluate.new.judge")
            st.text_input("Tags", key="evaluate.new.tags", max_chars=300, placeholder="training questions=100, ablation=none")
        st.toggle(
            "Disambiguated questions",
            value=False,
            key="evaluate.new.clarify",
            help="Slower. Needed for F1 bleu and F1 edit-f1.",
        )
        st.toggle("Check what the corpus covers", value=True, key="evaluate.new.check_coverage", help=COVERAGE_HELP)
        st.toggle("Save traces", value=True, key="evaluate.new.traces", help="Lets you see each step of each question later.")
        st.form_submit_button("Start evaluation", on_click=_start, icon=":material/play_arrow:", type="primary")


def _layout(label: str, key: str) -> None:
    st.selectbox(
        label,
        [None, *LAYOUTS],
        format_func=lambda name: name or "recognised",
        key=key,
        help="For a file that can be read in two ways, such as a flat list of answers: choose how it is meant.",
    )


def _default_top_k() -> int:
    return min(shared.settings().top_k, MAX_PASSAGES)


@action("run evaluations")
def _start() -> None:
    state = st.session_state
    path = question_file(str(state["evaluate.new.questions"]))
    layout = state["evaluate.new.layout"]
    load(path, layout)  # an error in it is reported now, with its line
    judge, top_k = str(state["evaluate.new.judge"]), int(state["evaluate.new.top_k"])
    plan = EvaluationPlan(
        questions=str(path),
        layout=layout,
        system=str(state["evaluate.new.system"]),
        corpus=state["evaluate.new.corpus"],
        limit=int(state["evaluate.new.limit"]) or None,
        top_k=None if top_k == _default_top_k() else top_k,  # unchanged: the system's own default, at most the whole corpus
        clarify=bool(state["evaluate.new.clarify"]),
        check_coverage=bool(state["evaluate.new.check_coverage"]),
        judge=judge if judge in CHOICES else None,
        seed=int(state["evaluate.new.seed"]),
        traces=bool(state["evaluate.new.traces"]),
        tags=tags(str(state["evaluate.new.tags"] or "")),
    )
    begin(plan, folder_for(shared.settings().runs_dir, plan), str(state["evaluate.new.label"] or "").strip())


def tags(text: str) -> dict[str, object]:
    """ "a=1, b=x" as a dict; numbers and true or false are converted.  Raises InputError.

    >>> tags("training questions=100, zero-shot=true, ablation=none")
    {'training questions': 100.0, 'zero-shot': True, 'ablation': 'none'}
    """
    values: dict[str, object] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = (x.strip() for x in part.partition("="))
        if not equals or not name or not value:
            raise InputError(f"the tag '{part[:60]}' has no value; write name=value, separated by commas")
        try:
            values[name] = float(value)
        except ValueError:
            values[name] = {"true": True, "false": False}.get(value.lower(), value)
    return values


def begin(plan: EvaluationPlan, folder: Path, label: str = "") -> None:
    """Starts or resumes a run.  Raises InputError if a run in this folder is in progress, NotAllowedError."""
    shared.store().allow("run evaluations")
    engine, store = shared.engine(), shared.servers_store()
    stopped = "the evaluation was stopped; its answers are kept, and you can resume it"

    def work(job: jobs.BackgroundJob) -> tuple[ImportedRun, Sequence[str]]:
        def progress(done: int, total: int) -> None:
            job.share, job.stage = done / total if total else None, f"{done:,} of {total:,} questions"

        return run_and_store(job, plan, engine, store, folder, progress, label)

    job = jobs.BackgroundJob(work, label or folder.name, "loading the model and the questions", stopped, subject=(plan, label))
    jobs.begin("evaluations", folder.name, job)


# ---------------------------------------------------------------- watching


def watch() -> None:
    """Running evaluations, and reports on those that ended."""
    for job in jobs.reports("evaluations", _resume):
        run, problems = job.result
        words = f"{escape(job.title)} is stored: {listed(run.n, 'question')} in {duration(job.seconds)}."
        st.success(words, icon=":material/check:")
        for problem in problems:
            st.warning(escape(problem), icon=":material/warning:")


@action("run evaluations")
def _resume(name: str) -> None:
    folder = shared.settings().runs_dir / name
    if (job := jobs.jobs_of("evaluations").get(name)) is not None:
        begin(job.subject[0], folder, job.subject[1])
        return
    state = next((s for s in run_states(folder.parent) if s.name == name), None)
    begin(EvaluationPlan.from_json(state.about if state else {}), folder)


# ---------------------------------------------------------------- run folders


@action("run evaluations")
def _store_folder(name: str) -> None:
    imported = import_run(shared.store().evaluations, shared.settings().runs_dir / name)
    words = "stored" if imported.new else "already stored"
    say(f"{name}: {words}, {imported.system}, {listed(imported.n, 'question')}.")


def folders() -> None:
    """Run folders of the command line under AMBISCOPE_HOME: to store, or to resume."""
    running = jobs.running("evaluations")
    states = [s for s in run_states(shared.settings().runs_dir) if s.name not in running]
    if not states:
        st.caption("There are no run folders. `python -m core evaluate --out FOLDER` creates one.")
        return
    for state in states[:30]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{escape(state.name)}** {escape(_described(state))}")
            label, act, icon = "Resume", _resume, ":material/play_arrow:"
            if state.finished is not None:
                label, act, icon = "Store", _store_folder, ":material/save:"
            key = f"evaluate.{label.lower()}.{state.name}"
            st.button(full_label(label, state.name), key=key, on_click=act, args=(state.name,), icon=icon)
    if len(states) > 30:
        st.caption(f"{len(states) - 30} older folders are not shown. Store one with: python -m storage import-evaluation NAME")


def _described(state: RunState) -> str:
    system = state.about.get("system") or "a run"
    if state.finished is not None:
        return f"{system}, finished {time_text(state.finished)}"
    return f"{system}, stopped after {state.rows:,}{f' of {state.total:,}' if state.total else ''} questions"


def upload() -> None:
    """A question file, checked before it is kept."""
    limit = shared.settings().max_upload_mb
    with st.form("evaluate.upload.questions", border=False, clear_on_submit=True):
        st.file_uploader(f"Question file (up to {limit} MB)", type=SUFFIXES, max_upload_size=limit, key="evaluate.upload.file")
        _layout("Layout of this file", "evaluate.upload.layout")
        st.form_submit_button("Save question file", on_click=_keep, icon=":material/upload:")


@action("run evaluations")
def _keep() -> None:
    file = st.session_state.get("evaluate.upload.file")
    if file is None:
        raise InputError("no file is selected; choose one first")
    limit = shared.settings().max_upload_mb
    if file.size > limit * 1_000_000:
        raise InputError(f"the file is {file.size / 1e6:.0f} MB; the limit is {limit} MB (AMBISCOPE_MAX_UPLOAD_MB)")
    home = shared.settings().home
    draft = home / "uploads" / uuid.uuid4().hex
    (name,) = safe_names([file.name], KINDS)
    try:
        draft.mkdir(parents=True)
        (draft / name).write_bytes(file.getbuffer())
        count = len(load(draft / name, st.session_state.get("evaluate.upload.layout")))
        target = _target(draft / name, home / "questions")
        target.parent.mkdir(parents=True, exist_ok=True)
        (draft / name).replace(target)
        say(f"{target.name}: {listed(count, 'question')} saved.")
    except OSError as error:
        raise StorageError(f"the upload cannot be written ({error.strerror or error}); free some space") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _target(file: Path, folder: Path) -> Path:
    """The path for an upload: its name, with part of its digest if another file has that name.  Files are never replaced,
    because a resumed run reads its file again."""
    body, target = file.read_bytes(), folder / file.name
    if not target.is_file() or target.read_bytes() == body:
        return target
    stem, dot, suffixes = file.name.partition(".")
    return folder / f"{stem}-{hashlib.sha256(body).hexdigest()[:8]}{dot}{suffixes}"
