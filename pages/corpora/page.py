"""Corpora: list, inspect and search them, upload and build a new one, delete one."""

from __future__ import annotations

import streamlit as st

from core.errors import AmbiscopeError, InputError
from core.retrieval import wikipedia
from core.retrieval.build import BuildReport
from core.retrieval.corpus import PassageStore
from core.retrieval.library import STARTER, CorpusInfo, CorpusLibrary
from core.retrieval.readers import uploaded
from core.retrieval.starter import coverage
from core.text import PASSAGE_WORDS, listed
from pages.corpora import builds as corpus_builds
from pages.session import background as jobs
from pages.session import shared
from pages.session.actions import action, say
from pages.session.to_explore import open_explore
from pages.ui.formatting import local_time, seconds
from pages.ui.markup import escape
from pages.ui.tables import table
from pages.ui.trace import document_of, draw_passages, draw_text

PASSAGES_PER_PAGE = 25  # passages per page of the table
NEIGHBOURS = 2  # passages before and after one that is shown in its document
MAX_TOPICS = 12  # of the starter corpus, that are listed by name
MODES = ("hybrid", "dense", "bm25")


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.0f} kB"


def overview(corpora: list[CorpusInfo], names: list[str]) -> None:
    rows = [
        {
            "Name": c.name,
            "Passages": c.passages,
            "State": "complete" if c.complete else "search by words only" if c.by_words_only else "incomplete",
            "Encoder": c.encoder,
            "Index": c.index_kind,
            "Size": megabytes(c.size_bytes),
            "Built": local_time(c.built),
            "Source": c.source,
        }
        for c in corpora
    ]
    if STARTER in names and STARTER not in [c.name for c in corpora]:
        rows.append({"Name": STARTER, "State": "built when first used"})
    if rows:
        table(rows, "Corpora of this installation")
    else:
        st.info("There is no corpus yet. Add one above.")


# ---------------------------------------------------------------- one corpus


def passages(name: str) -> None:
    corpus = shared.engine().corpus(name)
    pages = max(1, -(-len(corpus) // PASSAGES_PER_PAGE))
    page = st.pagination(pages, key=f"corpora.page.{name}") if pages > 1 else 1
    rows = corpus.passages((page - 1) * PASSAGES_PER_PAGE, PASSAGES_PER_PAGE)
    caption = (
        f"Passages {(page - 1) * PASSAGES_PER_PAGE + 1} to {(page - 1) * PASSAGES_PER_PAGE + len(rows)} of {len(corpus):,}"
    )
    columns = {"ID": st.column_config.TextColumn(width="small"), "Text": st.column_config.TextColumn(width="large")}
    table([{"ID": p.id, "Title": p.title, "Text": p.text} for p in rows], caption, columns=columns)
    st.caption(caption)


def in_document(name: str, passage_id: str) -> None:
    """The passage that the address names, between its neighbours in the same document."""
    store = shared.engine().corpus(name).store
    if not isinstance(store, PassageStore):  # of a service, which has no passage by its place
        return
    if (row := store.row_of(passage_id)) is None:
        st.warning(f"Corpus {escape(name)} has no passage {escape(passage_id)}; it was built again since.")
        return
    first = max(0, row - NEIGHBOURS)
    neighbours = list(enumerate(store.passages(first, 2 * NEIGHBOURS + 1), first))
    document = document_of(passage_id)
    with st.container(border=True, key="corpora.document"):
        st.caption(f"**{escape(document or passage_id)}** in {escape(name)}")
        for number, passage in neighbours:
            if number == row or (document and document_of(passage.id) == document):
                mark = ":material/arrow_right: " if number == row else ""
                st.markdown(f"{mark}**{escape(passage.title)}** :small[{escape(passage.id)}]")
                draw_text(passage.text)


def search(name: str) -> None:
    settings = shared.settings()
    with st.form(f"corpora.search.{name}", border=False):
        st.text_input("Search the passages", key="corpora.query", max_chars=settings.max_question_chars)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            start = MODES.index(settings.retriever)
            mode = st.selectbox("Search mode", MODES, index=start, key="corpora.mode", width=160)
            k = st.number_input("Passages to show", min_value=1, max_value=100, value=10, key="corpora.k", width=160)
            st.form_submit_button("Search", icon=":material/search:", type="primary")
    query = " ".join(str(st.session_state.get("corpora.query") or "").split())
    if not query:
        return
    matches = shared.engine().corpus(name).search(query, int(k), mode)
    if not matches:
        st.info("No passage has any of these words. Try other words, or dense or hybrid search.")
    draw_passages(matches)


@action("delete corpora")
def _delete(name: str) -> None:
    typed = str(st.session_state.get(f"corpora.typed.{name}") or "").strip()
    if typed != name:
        raise InputError(f"'{typed[:80]}' is not the corpus name '{name}'; nothing was deleted")
    jobs.check_free("builds", name)
    engine = shared.light_engine()
    engine.forget(name)
    engine.library.delete(name)
    corpus_builds.discard_uploads(shared.settings().home, name)
    jobs.jobs_of("builds").pop(name, None)
    say(f"Corpus '{name}' was deleted.")


def delete(name: str) -> None:
    if name == STARTER:
        st.caption("The starter corpus comes with Ambiscope. If you delete it, it is built again when it is next used.")
    with st.form(f"corpora.delete.{name}", border=False):
        st.text_input(f"Type {name} to delete this corpus and its index", key=f"corpora.typed.{name}", max_chars=80)
        st.form_submit_button("Delete corpus", icon=":material/delete:", on_click=_delete, args=(name,))
    st.caption("Predictions made with it are kept, with the passages they show.")


def starter_topics() -> None:
    """The starter corpus's topics, with questions to ask."""
    topics = coverage(shared.settings().starter_dir)
    if not topics:
        return
    first = ", ".join(list(topics)[:MAX_TOPICS])
    st.caption(
        f"{sum(map(len, topics.values()))} example questions on {escape(first)} and {len(topics) - MAX_TOPICS} more topics."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        topic = st.selectbox("Topic", list(topics), format_func=str.capitalize, key="corpora.topic", width=220)
        question = st.selectbox("Example question", topics.get(str(topic), []), key="corpora.example")
        if st.button("Ask", key="corpora.example.ask", icon=":material/send:") and question:
            open_explore(str(question), corpus=STARTER)


def incomplete(name: str) -> None:
    st.warning(f"Corpus {escape(name)} is incomplete. Its build was interrupted, or is running in another process.")
    if name == wikipedia.NAME:
        st.caption("To resume, choose Add Simple English Wikipedia above.")
        return
    uploads = corpus_builds.pending_uploads(shared.settings().home, name)
    if uploads:
        upload = uploads[-1]
        st.caption(f"Its files were kept: {escape(', '.join(upload.originals.values()))}")
        if shared.store().may("build corpora"):
            st.button(
                "Resume building", icon=":material/play_arrow:", on_click=_resume, args=(upload,), key=f"corpora.resume.{name}"
            )
    else:
        st.caption("To resume, upload the same files under the same name. Otherwise, delete it.")


def inspect_corpus(corpora: list[CorpusInfo], names: list[str]) -> None:
    all_names = list(dict.fromkeys([*names, *(c.name for c in corpora)]))
    if not all_names:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("Corpus", all_names, key="corpora.chosen")
        if name in names and st.button("Ask it", key="corpora.ask", icon=":material/alt_route:", type="primary"):
            open_explore(corpus=name)
    if name in [c.name for c in corpora if not c.complete] and name not in jobs.running("builds"):
        incomplete(name)
    if name == STARTER and name in names:
        starter_topics()
    draws = {"Passages": passages, "Search": search} if name in names else {}
    if shared.store().may("delete corpora") and not shared.light_engine().remote_notice:
        draws["Delete"] = delete
    for tab, draw in zip(st.tabs(list(draws)), draws.values()) if draws else ():
        with tab:
            try:
                draw(name)
            except AmbiscopeError as error:  # a damaged corpus can still be deleted
                shared.show_error(error)


# ---------------------------------------------------------------- uploading and building


def _library() -> CorpusLibrary:
    """This machine's library.  If corpora are elsewhere, the forms aren't drawn."""
    library = shared.engine().library
    assert isinstance(library, CorpusLibrary)
    return library


@action("build corpora")
def _resume(upload: corpus_builds.Upload) -> None:
    jobs.begin("builds", upload.corpus, corpus_builds.build(shared.engine(), upload))


@action("build corpora")
def _upload(files_key: str) -> None:
    """Callback of the form, which is emptied once the build has started."""
    name = str(st.session_state.get("corpora.name") or "").strip()
    files = st.session_state.get(files_key) or []
    if not name:
        raise InputError("the corpus has no name; enter one made of a-z, 0-9, '_' and '-'")
    if not files:
        raise InputError("no file is selected; choose at least one")
    _library().digest(name)  # refuses an invalid name before anything is stored
    jobs.check_free("builds", name)
    upload = corpus_builds.save_upload(shared.settings().home, name, files)
    jobs.begin("builds", name, corpus_builds.build(shared.engine(), upload))
    st.session_state["corpora.name"] = ""
    st.session_state["corpora.uploads"] = st.session_state.get("corpora.uploads", 0) + 1


@action("build corpora")
def _add_wikipedia() -> None:
    jobs.begin("builds", wikipedia.NAME, corpus_builds.build_wikipedia(_library()))


def add_form(complete: set[str]) -> None:
    """The form at the top of the page: files to upload, and a corpus to download."""
    settings = shared.settings()
    st.subheader("Add a corpus")
    files_key = f"corpora.files{st.session_state.get('corpora.uploads', '')}"  # a new one is empty
    with st.form("corpora.upload"):
        st.text_input("Corpus name", key="corpora.name", max_chars=64, placeholder="my-corpus")
        st.file_uploader(
            f"Files, or a zip of a folder (up to {settings.max_upload_mb} MB each)",
            type=sorted({suffix.rpartition(".")[2] for suffix in uploaded()}),
            accept_multiple_files=True,
            max_upload_size=settings.max_upload_mb,
            key=files_key,
            help=f"{', '.join(f'`{s}`' for s in uploaded())}, each of at most {settings.max_upload_lines:,} lines and "
            f"{settings.max_upload_pages:,} PDF pages. Tables need the columns `id`, `text` and `title`; JSON Lines need the field `text`. "
            f"Documents are split into passages of about {PASSAGE_WORDS} words.",
        )
        st.form_submit_button("Upload and build", type="primary", icon=":material/upload:", on_click=_upload, args=(files_key,))
    if wikipedia.NAME not in complete | jobs.running("builds").keys():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"No documents at hand? Simple English Wikipedia has {wikipedia.COST}.", width="stretch")
            st.button(
                "Add Simple English Wikipedia", key="corpora.wikipedia", on_click=_add_wikipedia, icon=":material/download:"
            )


def show_report(build: jobs.BackgroundJob) -> None:
    if jobs.show_failure(build):
        return
    report: BuildReport = build.result
    count = listed(report.passages, "passage")
    st.success(f"Corpus {escape(build.title)} is ready: {count} in {seconds(report.seconds)}.", icon=":material/check:")
    for warning in report.warnings:
        st.warning(escape(warning), icon=":material/translate:")
    if report.others_total:
        with st.expander(f"Other files, not read: {report.others_total:,}"):
            table([{"File": r.file, "Why": r.reason} for r in report.others], "Files that were not read")
    if report.rejected_total:
        originals = build.subject.originals if build.subject else {}
        skipped = "1 row was" if report.rejected_total == 1 else f"{report.rejected_total:,} rows were"
        extent = "" if report.rejected_total == len(report.rejected) else f"; here are the first {len(report.rejected)}"
        st.warning(f"{skipped} skipped{extent}:")
        rows = [
            {"File": originals.get(r.file, r.file), "Unit": r.unit, "Number": r.number, "Reason": r.reason}
            for r in report.rejected
        ]
        table(rows, "Skipped rows with the reason")


@st.fragment(run_every=jobs.POLL_SECONDS)
def watch(names: list[str]) -> None:
    """Running builds.  The page is redrawn when one ends, and when one can be searched by words."""
    running = jobs.running("builds")
    for name, build in running.items():
        jobs.bar("builds", name, build)
        if name in names:
            st.caption(f"{escape(name)} can be searched by words now; search by vectors follows.")
    if not running or set(shared.light_engine().library.names()) != set(names):
        st.rerun()


def reports(names: list[str]) -> None:
    """The results of builds.  A corpus is selected below as soon as it can be searched."""
    selected: set[int] = st.session_state.setdefault("corpora.selected", set())
    for name, build in list(jobs.jobs_of("builds").items()):
        if name in names and id(build) not in selected:
            selected.add(id(build))
            st.session_state["corpora.chosen"] = name
        if build.done:
            show_report(build)
            jobs.close_button("builds", name, build)
    if jobs.running("builds"):
        watch(names)


def main() -> None:
    st.header("Corpora")
    st.markdown("A corpus is a set of passages with a search index. Each question is answered from one corpus.")
    library = shared.light_engine().library
    corpora, names = library.list(), library.names()
    linked, passage = (st.query_params.get(name, "") for name in ("corpus", "passage"))
    if passage and linked in names:
        try:
            in_document(linked, passage)
        except AmbiscopeError as error:
            shared.show_error(error)
    if remote_notice := shared.light_engine().remote_notice:
        st.info(escape(remote_notice), icon=":material/dns:")
    elif shared.store().may("build corpora"):
        add_form({c.name for c in corpora if c.complete})
    reports(names)
    inspect_corpus(corpora, names)
    overview(corpora, names)


main()
