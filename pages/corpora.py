"""Corpora: list them, look into one, search it, upload and build a new one, delete one."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.errors import AmbiscopeError, InputError
from core.retrieval.library import STARTER, CorpusInfo
from core.retrieval.readers import READERS
from pages.app import shared
from pages.app.actions import action
from pages.app.figures import seconds
from pages.app.markup import plain
from pages.background import jobs
from pages.corpus import builds as corpus_builds
from pages.runs.trace import draw_found

PAGE = 25  # passages a page of the table
LOOK_EVERY = 0.2  # seconds
MODES = ("hybrid", "dense", "bm25")


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.0f} kB"


def table(found: list[CorpusInfo], names: list[str]) -> None:
    rows = [
        {
            "Name": c.name,
            "Passages": c.passages,
            "State": "complete" if c.complete else "not complete",
            "Encoder": c.encoder,
            "Index": c.index_kind,
            "Size": megabytes(c.size_bytes),
            "Built": c.built[:16].replace("T", " "),
            "Read from": c.source,
        }
        for c in found
    ]
    if STARTER in names and STARTER not in [c.name for c in found]:
        rows.append({"Name": STARTER, "State": "built at its first use"})
    if rows:
        st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", alt="The corpora of this installation")
    else:
        st.info("There is no corpus yet: upload files below.")


# ---------------------------------------------------------------- looking into one


def passages(name: str) -> None:
    corpus = shared.engine().corpus(name)
    pages = max(1, -(-len(corpus) // PAGE))
    page = st.pagination(pages, key=f"corpora.page.{name}") if pages > 1 else 1
    rows = corpus.passages((page - 1) * PAGE, PAGE)
    st.dataframe(
        pd.DataFrame({"id": [p.id for p in rows], "title": [p.title for p in rows], "text": [p.text for p in rows]}),
        hide_index=True,
        width="stretch",
        column_config={"id": st.column_config.TextColumn(width="small"), "text": st.column_config.TextColumn(width="large")},
        alt=f"Passages {(page - 1) * PAGE + 1} to {(page - 1) * PAGE + len(rows)} of {len(corpus)}",
    )
    st.caption(f"Passages {(page - 1) * PAGE + 1} to {(page - 1) * PAGE + len(rows)} of {len(corpus):,}")


def search(name: str) -> None:
    settings = shared.settings()
    with st.form(f"corpora.search.{name}", border=False):
        st.text_input("Search for", key="corpora.query", max_chars=settings.max_question_chars)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            start = MODES.index(settings.retriever)
            mode = st.selectbox("Mode", MODES, index=start, key="corpora.mode", width=160)
            k = st.number_input("Passages", min_value=1, max_value=100, value=10, key="corpora.k", width=160)
            st.form_submit_button("Search", icon=":material/search:", type="primary")
    query = " ".join(str(st.session_state.get("corpora.query") or "").split())
    if not query:
        return
    found = shared.engine().corpus(name).search(query, int(k), mode)
    if not found:
        st.info("No passage shares a word with this. Try the mode dense or hybrid.")
    draw_found(found)


@action("delete corpora", "corpora.error")
def _delete(name: str) -> None:
    typed = str(st.session_state.get(f"corpora.typed.{name}") or "").strip()
    if typed != name:
        raise InputError(f"'{typed[:80]}' is not the name '{name}'; nothing was deleted")
    build = corpus_builds.running().get(name)
    if build is not None and not build.done:
        raise InputError(f"corpus '{name}' is being built; stop that first")
    engine = shared.light_engine()
    engine.forget(name)
    engine.library.delete(name)
    corpus_builds.discard(shared.settings().home, name)
    corpus_builds.running().pop(name, None)
    st.session_state["corpora.said"] = f"Corpus '{name}' is deleted."


def delete(name: str) -> None:
    if name == STARTER:
        st.caption("The starter corpus comes with Ambiscope: when deleted, it is built again at its next use.")
    with st.form(f"corpora.delete.{name}", border=False):
        st.text_input(f"Type {plain(name)} to delete it with its index", key=f"corpora.typed.{name}", max_chars=80)
        st.form_submit_button("Delete this corpus", icon=":material/delete:", on_click=_delete, args=(name,))
    st.caption("Predictions made over it stay, with the passages that they show.")


def incomplete(name: str) -> None:
    st.warning(f"Corpus {plain(name)} is not complete: its build was interrupted, or runs in another process.")
    uploads = corpus_builds.kept(shared.settings().home, name)
    if uploads:
        upload = uploads[-1]
        st.caption(f"Its files are kept: {plain(', '.join(upload.originals.values()))}")
        if shared.store().may("build corpora"):
            st.button(
                "Go on building", icon=":material/play_arrow:", on_click=_go_on, args=(upload,), key=f"corpora.resume.{name}"
            )
    else:
        st.caption("Give the same files under the same name again to go on, or delete it.")


def look(found: list[CorpusInfo], names: list[str]) -> None:
    every = list(dict.fromkeys([*names, *(c.name for c in found)]))
    if not every:
        return
    chosen = st.selectbox("Look into", every, key="corpora.chosen")
    info = next((c for c in found if c.name == chosen), None)
    build = corpus_builds.running().get(chosen)
    if info is not None and not info.complete:
        if build is None or build.done:
            incomplete(chosen)
        if shared.store().may("delete corpora"):
            delete(chosen)
        return
    draws = {"Passages": passages, "Search": search}
    if shared.store().may("delete corpora"):
        draws["Delete"] = delete
    for tab, draw in zip(st.tabs(list(draws)), draws.values()):
        with tab:
            try:
                draw(chosen)
            except AmbiscopeError as error:  # a damaged corpus can still be deleted
                shared.show_error(error)


# ---------------------------------------------------------------- uploading and building


@action("build corpora", "corpora.error")
def _go_on(upload: corpus_builds.Upload) -> None:
    corpus_builds.running()[upload.corpus] = corpus_builds.Build(shared.engine(), upload)


@action("build corpora", "corpora.error")
def _upload() -> None:
    """Callback of the form."""
    name = str(st.session_state.get("corpora.name") or "").strip()
    files = st.session_state.get("corpora.files") or []
    st.session_state.pop("corpora.error", None)
    if not name:
        raise InputError("the corpus has no name; give it one of a-z, 0-9, '_' and '-'")
    if not files:
        raise InputError("no file was chosen; choose at least one")
    running = corpus_builds.running().get(name)
    if running is not None and not running.done:
        raise InputError(f"corpus '{name}' is being built already; wait until it has finished")
    corpus_builds.running()[name] = corpus_builds.Build(
        shared.engine(), corpus_builds.keep(shared.settings().home, name, files)
    )


def upload_form() -> None:
    settings = shared.settings()
    st.subheader("Add a corpus", divider="gray")
    st.markdown(
        f"Files of {', '.join(f'`{s}`' for s in READERS)}; at most {settings.max_upload_mb} MB each, "
        f"{settings.max_upload_lines:,} lines, {settings.max_upload_pages:,} PDF pages. Tables have the columns id, text and title; "
        "JSON lines the fields `text` and, where known, `id` and `title`. Longer texts are cut into passages of 100 words."
    )
    with st.form("corpora.upload"):
        st.text_input("Name of the new corpus", key="corpora.name", max_chars=64, placeholder="my-corpus")
        st.file_uploader(
            "Files",
            type=["tsv", "gz", "jsonl", "txt", "md", "pdf"],
            accept_multiple_files=True,
            max_upload_size=settings.max_upload_mb,
            key="corpora.files",
        )
        st.form_submit_button("Upload and build", type="primary", icon=":material/upload:", on_click=_upload)


def show_report(build: corpus_builds.Build) -> None:
    name = plain(build.name)
    if jobs.ended(build):
        return
    report = build.report
    if report is None:
        return
    count = f"{report.passages:,} passage{'' if report.passages == 1 else 's'}"
    st.success(f"Corpus {name} is ready: {count} in {seconds(report.seconds)}.", icon=":material/check:")
    if report.rejected_total:
        originals = build.upload.originals
        left = "1 row was" if report.rejected_total == 1 else f"{report.rejected_total:,} rows were"
        shown = "" if report.rejected_total == len(report.rejected) else f"; the first {len(report.rejected)} of them"
        st.warning(f"{left} left out{shown}:")
        rows = [(originals.get(r.file, r.file), r.unit, r.number, r.reason) for r in report.rejected]
        st.dataframe(
            pd.DataFrame(rows, columns=["file", "unit", "number", "reason"]),
            hide_index=True,
            width="stretch",
            alt="Rejected rows with the reason",
        )


def watch() -> None:
    """Progress of running builds, reports of finished ones.  Goes on after an interruption: the work is done elsewhere."""
    if running := jobs.going("builds"):
        bars = {name: jobs.bar("builds", name, build) for name, build in running.items()}
        while going := jobs.going("builds"):
            for name in bars.keys() & going.keys():
                jobs.show(bars[name], name, going[name])
            next(iter(going.values())).wait(LOOK_EVERY)
        st.rerun()
    for name, build in list(corpus_builds.running().items()):
        show_report(build)
        jobs.close_button("builds", name)


def main() -> None:
    st.header("Corpora")
    st.markdown(
        "A corpus is a set of passages with an index to search them by. Questions are answered from one corpus at a time."
    )
    if said := st.session_state.pop("corpora.said", None):
        st.success(plain(said), icon=":material/check:")
    if error := st.session_state.pop("corpora.error", None):
        shared.show_error(error)
    found, names = shared.corpora(), shared.light_engine().library.names()
    table(found, names)
    above = st.container()
    look(found, names)
    if shared.store().may("build corpora"):
        upload_form()
    with above:
        watch()


shared.enter("corpora")
try:
    main()
except AmbiscopeError as error:
    shared.show_error(error)
