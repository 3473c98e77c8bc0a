"""Every text that a corpus, a model or a person can bring, on every page that shows it, in a real browser: it is seen as itself, character
by character, and nothing of it becomes an element, a link, a request or a script.

Each field holds a payload of its own that would set `window.hacked` to the field's name.  `VIEWS` is the table of what is covered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import people
import pytest
from annotate_helpers import make_project
from annotation_samples import single, validate
from serving import MARKS, WAIT, quiet, serve, until, with_corpus
from storage_samples import evaluation_report, save_report

from core import types as t
from core.settings import Settings
from pages.session.shared import PAGES
from storage.records.annotation import GenerationWork, JudgedAnswer, JudgingWork, MissingAnswer
from storage.records.projects import GuidelineExample
from storage.store import Store

pytestmark = MARKS


def attack(field: str) -> str:
    """HTML, Markdown, maths, a directive, a link that would be made by itself, an emoji and an arrow."""
    return (
        f"{field} <img src=x onerror=\"window.hacked='{field}'\"> **b** [go](javascript:hacked=1) ![p](http://attack.invalid/p.png) "
        "$x^2$ :red[r] `c` www.attack.invalid :smile: <script>hacked=1</script> -> ?"
    )


def manager_attack(field: str) -> str:
    """Guidelines are Markdown: what is left to be seen as text is HTML."""
    return f"{field} <img src=x onerror=\"window.hacked='{field}'\"> **b** [go](javascript:hacked=1) <script>hacked=1</script>"


def short_attack(field: str) -> str:
    """For fields that take at most 60 characters."""
    return f"{field}<img src=x onerror=hacked=1>**b**"


LONG = (
    "question answer title passage rewritten rejected-answer why prompt interpretation failed-call verdict-note project example "
    "example-answer example-why own-title own-passage work-answer work-question work-note judge-note missing validated "
    "return-reason skip-reason draft run-question run-answer run-reference run-error snapshot-note"
).split()
SHORT = "passage-id system annotator run-label run-system run-file run-tag run-folder log-name typed-name".split()
TEXT = {
    **{field: attack(field) for field in LONG},
    **{field: short_attack(field) for field in SHORT},
    "guideline": manager_attack("guideline"),
    "source-file": "source-file<img src=x onerror=hacked=1>.tsv",
}
QUESTION = TEXT["question"]


def prediction(system: str = "scripted", answer: str = TEXT["answer"]) -> t.Prediction:
    """A prediction with hostile text in every kind of event."""
    passage = t.Passage(TEXT["passage-id"], TEXT["title"], f"{TEXT['passage']} says {answer} here.")
    start = passage.text.index(answer)
    evidence = t.Evidence(passage.id, start, start + len(answer), answer)
    retrieved = t.RetrievedPassage(passage, 1, 1.0, 0.5)
    returned = t.Answer(answer, 0.5, (evidence,), step=1)
    clear = t.Clarification(answer, TEXT["rewritten"], False, 3, (), TEXT["why"])
    step = t.Step(
        1, (TEXT["rejected-answer"],), TEXT["prompt"], (t.Candidate(answer, 0.8),), t.Candidate(answer, 0.8, None), 0.1, 0.2
    )
    read = t.Interpretation(passage.id, TEXT["interpretation"], answer, probability=0.5, evidence=evidence)
    events: tuple[t.Event, ...] = (
        t.QuestionsImagined((TEXT["interpretation"],)),
        t.PassagesRetrieved((retrieved,), 0.01, QUESTION),
        t.PassagesPruned((passage.id,), (TEXT["passage-id"] + "2",), TEXT["why"]),
        t.QuestionVerified(TEXT["interpretation"], (), TEXT["why"]),
        t.QuestionRelaxed(QUESTION),
        t.StepStarted(1, (TEXT["rejected-answer"],), TEXT["prompt"]),
        t.StepFinished(step, returned),
        t.AnswerRejected(TEXT["rejected-answer"], TEXT["why"]),
        t.QuestionClarified(clear, 0.1),
        t.ModelCalled("interpret", 1, 2, 3, 0.1, TEXT["failed-call"]),
        t.InterpretationProposed(read),
        t.InterpretationProposed(t.Interpretation(passage.id, abstained=TEXT["why"])),
        t.InterpretationsClustered((t.InterpretationPlaced(0, 0.5, -0.5, 0, True),)),
        t.InterpretationsChosen((read,), TEXT["why"]),
        t.Finished(1.5, TEXT["why"]),
    )
    info = t.SystemInfo(system, {"consolidation": {}} if system == "verdict" else {}, "small")
    chosen = (read,) if system == "verdict" else ()
    return t.Prediction(t.Question(QUESTION), info, (returned,), (clear,), (step,), (retrieved,), 1.5, events, chosen)


def annotation(answer: str) -> t.Annotation:
    return t.Annotation("multiple", (t.QAPair(TEXT["work-question"], (answer,)), t.QAPair("Who else?", ("Nobody",))))


WORK = GenerationWork(annotation(TEXT["work-answer"]), note=TEXT["work-note"])


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A home in which every field of every table that shows holds its attack; the ids that addresses name."""
    home = tmp_path_factory.mktemp("attacked") / "home"
    rows = [(TEXT["passage-id"], TEXT["title"], TEXT["passage"]), ("p2", "Plain", "Words of a plain text.")]
    settings = with_corpus(home, "small", rows)
    with Store(settings.url) as store:
        return home, furnish(settings, store)


def furnish(settings: Settings, store: Store) -> dict[str, str]:
    me, other = people.anyone(store, "me"), people.anyone(store, TEXT["annotator"])
    saved = [store.predictions.save_prediction(prediction(system)) for system in ("scripted", "verdict", TEXT["system"])]
    for prediction_id, person in ((saved[0], me), (saved[0], other), (saved[2], me)):
        store.labels.judge(prediction_id, 0, person, "wrong", TEXT["verdict-note"])
    second = make_project(store, me, (QUESTION,), name="second", systems=("scripted",), thresholds={"must_read": 0})
    project = store.projects.create_project(
        me,
        TEXT["project"],
        corpus="small",
        stages=("generation", "validation", "judging"),
        systems=("scripted",),
        thresholds={"must_read": 0},
        guidelines=f"Read this: {TEXT['guideline']}",
        examples=(GuidelineExample(True, TEXT["example"], single(TEXT["example-answer"]), TEXT["example-why"]),),
    )
    passages = (t.Passage("own", TEXT["own-title"], TEXT["own-passage"]),)
    asked = [t.ReferenceQuestion("", QUESTION, ()), t.ReferenceQuestion("own", "Who comes with passages?", (), passages)]
    asked += [t.ReferenceQuestion(f"q{n}", f"Who is number {n}?", ()) for n in range(3)]
    store.intake.add_items(me, project.id, asked)
    items = [i.id for i in store.items.items(project.id, me, stage="generation", limit=10)]
    # the first item goes through all three stages
    store.queue.claim_item(items[0], other, "generation")
    store.submissions.submit(items[0], other, "generation", WORK, seconds=5)
    store.queue.claim_item(items[0], me, "validation")
    validate(store, items[0], me, annotation(TEXT["validated"]), TEXT["work-note"])
    store.queue.claim_item(items[0], me, "judging")
    sheet = store.reviews.judging_sheet(items[0], me)
    judged = JudgedAnswer(sheet.sides[0].answers[0].prediction_id, 0, "wrong", "changes_meaning", TEXT["judge-note"])
    judgment = JudgingWork((judged,), (MissingAnswer(TEXT["missing"]),), note=TEXT["work-note"])
    store.submissions.submit(items[0], me, "judging", judgment, seconds=5)
    # the second was submitted, sent back; of the third there is a draft, the fourth was skipped
    store.queue.claim_item(items[2], me, "generation")
    store.submissions.submit(items[2], me, "generation", WORK, seconds=5)
    store.returns.return_item(items[2], "me", "generation", TEXT["return-reason"], me)
    store.queue.claim_item(items[3], me, "generation")
    store.queue.skip_item(items[3], me, "generation", TEXT["skip-reason"])
    people.add(store, me, TEXT["log-name"], "annotator", password=None)
    for number in range(2):
        report = evaluation_report((1.0, 0.5, None, 0.25 * number))
        report["rows"][0] |= {"question": TEXT["run-question"], "references": [[[TEXT["run-reference"]]]]}
        report["rows"][0]["answers"] = [
            {"text": TEXT["run-answer"], "probability": 0.9, "passages": ["p1"], "question": TEXT["run-answer"]}
        ]
        report["rows"][2] |= {"error": TEXT["run-error"]}
        report["provenance"]["tags"] = {TEXT["run-tag"]: TEXT["run-tag"]}
        run = {"system": TEXT["run-system"], "questions": TEXT["run-file"], "label": f"{TEXT['run-label']}{number}"}
        save_report(store, report, **run)
    store.exports.take_snapshot(settings.home / "snapshots", note=TEXT["snapshot-note"])
    folder = settings.runs_dir / TEXT["run-folder"]
    folder.mkdir(parents=True)
    for name in ("run.json", "about.json", "rows.jsonl"):
        (folder / name).write_text("{}\n")
    ids = {"prediction": saved[0], "grounded": saved[1], "id": project.id, "second": second.id}
    return ids | {f"item{n}": item for n, item in enumerate(items)}


@pytest.fixture(scope="module")
def server(installation: tuple[Path, dict[str, str]]) -> Iterator[str]:
    with serve(installation[0], "small") as address:
        yield address


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A tab of its own: Streamlit goes on with the session of a tab that is sent elsewhere.  Wide, so that tables show all columns."""
    with browser.new_context(viewport={"width": 3000, "height": 2600}) as context:
        context.set_default_timeout(WAIT)
        yield context.new_page()


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name).first.click()
    quiet(page)


def enter(page: Any, label: str, text: str) -> None:
    field = page.get_by_label(label, exact=True).first
    field.fill(text)
    field.press("Enter")
    quiet(page)


def open_all(page: Any) -> None:
    """Unfolds what is folded."""
    closed = "[data-testid=stExpander] details:not([open]) > summary"
    page.evaluate("where => document.querySelectorAll(where).forEach(e => e.click())", closed)
    quiet(page)


def popovers(page: Any) -> str:
    """Opens the popovers, whose contents are drawn only then."""
    texts = []
    for button in page.locator("[data-testid=stPopover] button:visible").all():
        button.click()
        body = page.get_by_test_id("stPopoverBody")
        body.first.wait_for()
        quiet(page)  # one that runs the page as it opens would be opened again by that run
        texts.append(read(page, "[data-testid=stPopoverBody]"))
        page.keyboard.press("Escape")
        body.first.wait_for(state="hidden")
    return " ".join(texts)


def read(page: Any, where: str = "[data-testid=stApp]") -> str:
    """The text that is seen, of fields their content, without what is struck through."""
    text = page.evaluate(
        """where => [...document.querySelectorAll(where)].map(root => {
            const values = [...root.querySelectorAll('input, textarea')].map(e => e.value);
            const copy = root.cloneNode(true);
            copy.querySelectorAll('del').forEach(e => e.remove());
            return [copy.textContent, ...values].join(' ');
        }).join(' ')""",
        where,
    )
    return bare(str(text))


def bare(text: str) -> str:
    """Without white space: a changed question is drawn word by word."""
    return "".join(text.replace("\u2060", "").split())


def stands(text: str, seen: str) -> bool:
    """Whole, or its beginning with the attack and dots where the page cuts long texts."""
    flat = bare(text)
    return flat in seen or any(flat[:n] + "…" in seen for n in range(45, len(flat)))


def explore(page: Any) -> None:
    page.get_by_role("button", name="Download").wait_for()
    quiet(page)
    open_all(page)


def ask(page: Any) -> None:
    enter(page, "Question", QUESTION)
    explore(page)


def writing(page: Any) -> None:
    press(page, "Several answers")
    enter(page, "Question 1", TEXT["draft"])
    open_all(page)


def searching(page: Any) -> None:
    enter(page, "Search the passages", "played plain words")
    page.locator("[class*=st-key-work]", has_text="title <img").get_by_role("button", name="Open").last.click()
    page.get_by_role("button", name="Back to the search results").wait_for()
    quiet(page)


def chart_of(name: str, page: Any) -> None:
    view(page, "All runs")
    enter(page, "Chart", name)


def view(page: Any, name: str) -> None:
    page.get_by_test_id("stMain").get_by_text(name, exact=True).first.click()
    quiet(page)


def shown(name: str, page: Any) -> None:
    view(page, name)
    open_all(page)


def row_of(question: str, page: Any) -> None:
    shown("One run", page)
    enter(page, "Show a question", question)


def search_corpus(page: Any) -> None:
    view(page, "Search")
    enter(page, "Search the passages", "played plain words")
    open_all(page)


def upload(page: Any) -> None:
    """A file whose name is an attack, with a line that is left out, so that the report names it."""
    page.get_by_label("Corpus name").fill("by-hand")
    file = {"name": TEXT["source-file"], "mimeType": "text/plain", "buffer": b"x1\tSome words\tTitle\nbroken\n"}
    page.locator("input[type=file]").set_input_files([file])
    page.get_by_test_id("stFileChip").wait_for()
    quiet(page)
    press(page, "Upload and build")
    page.get_by_text("Corpus by-hand is ready").wait_for(timeout=WAIT)
    quiet(page)


def items_of(stage: str, page: Any) -> None:
    page.get_by_role("radio", name=stage, exact=True).click()
    quiet(page)
    # a row of a table is chosen in its canvas: at its left edge
    box = page.locator("[data-testid=stDataFrame]").last.bounding_box()
    page.mouse.click(box["x"] + 15, box["y"] + 35 + 17)
    page.get_by_text("Open as an annotator").wait_for()
    quiet(page)


def activity(page: Any) -> None:
    view(page, "Activity")
    view(page, "All projects")
    enter(page, "Action", "person added")


def item(number: int, stage: str = "generation") -> str:
    return f"annotate?project={{id}}&stage={stage}&item={{item{number}}}"


Steps = Callable[[Any], None]
# view: (address, steps, the fields that are seen there as text)
VIEWS: dict[str, tuple[str, Steps, str]] = {
    "explore: a prediction": (
        "?prediction={prediction}",
        explore,
        "question answer title passage passage-id rewritten rejected-answer why prompt failed-call verdict-note annotator",
    ),
    "explore: interpretations": ("?prediction={grounded}", explore, "question answer title passage interpretation why"),
    "explore: a live run": ("", ask, "question"),
    "explore: a name": ("", partial(enter, label="Your name", text=TEXT["typed-name"]), "typed-name"),
    "annotate: writing": (item(4), writing, "project guideline example example-answer example-why draft"),
    "annotate: searching": (item(4), searching, "title passage passage-id"),
    "annotate: own passages": (item(1), partial(press, name="Open"), "own-title own-passage"),
    "annotate: returned": (item(2), open_all, "return-reason work-answer work-question"),
    "annotate: suggestions": ("annotate?project={second}&stage=generation", open_all, "question answer rewritten title"),
    "annotate: validating": (item(0, "validation"), open_all, "question work-question validated"),
    "annotate: judging": (item(0, "judging"), open_all, "question answer rewritten title passage"),
    "annotate: my items": ("annotate?project={id}&stage=generation", partial(shown, "My items"), "return-reason skip-reason"),
    "evaluate: leaderboard": ("evaluate", partial(shown, "All runs"), "run-label run-system run-file"),
    "evaluate: errors chart": ("evaluate", partial(chart_of, "Errors"), "run-label"),
    "evaluate: two runs": ("evaluate", partial(shown, "Two runs"), "run-label run-question"),
    "evaluate: one run": (
        "evaluate",
        partial(row_of, TEXT["run-question"][:12]),
        "run-label run-file run-question run-answer run-reference run-tag",
    ),
    "evaluate: a failed question": ("evaluate", partial(row_of, "Question 2"), "run-error"),
    "evaluate: start": ("evaluate", partial(shown, "Start and store"), "run-folder"),
    "connections: both": ("connections", open_all, ""),
    "corpora: passages": ("corpora", open_all, "title passage passage-id"),
    "corpora: search": ("corpora", search_corpus, "title passage passage-id"),
    "corpora: upload": ("corpora", upload, "source-file"),
    "manage: items written": (
        "manage",
        partial(items_of, "Writing"),
        "project question work-answer work-question work-note annotator",
    ),
    "manage: items judged": ("manage", partial(items_of, "Judging"), "question answer rewritten judge-note missing work-note"),
    "manage: guidelines": ("manage", partial(shown, "Guidelines"), "guideline example example-answer example-why"),
    "manage: suggestions": ("manage", partial(shown, "Suggestions"), "project"),
    "manage: settings": ("manage", partial(shown, "Settings"), "project"),
    "manage: people": ("manage", partial(shown, "People"), "log-name annotator"),
    "manage: activity": ("manage", activity, "log-name"),
    "quality: systems": ("quality", partial(shown, "Systems and judges"), "system"),
    "quality: snapshots": ("quality", open_all, "snapshot-note"),
    "papers": ("papers", open_all, ""),
    "jobs": ("jobs", open_all, ""),
    "health": ("health", open_all, ""),
}
AS_MARKDOWN = {"guideline"}  # a manager's text is drawn as Markdown, without HTML, links to scripts or remote pictures


def test_each_field_and_each_page_is_in_the_table() -> None:
    covered = {field for _, _, fields in VIEWS.values() for field in fields.split()}
    assert covered == set(TEXT)
    assert {view.split(":")[0] for view in VIEWS} == set(PAGES)


# views of one address are looked at one after the other in one tab: most of the time goes into opening pages
VISITS = {address: [name for name in VIEWS if VIEWS[name][0] == address] for address, _, _ in VIEWS.values()}


@pytest.mark.parametrize("address", VISITS, ids=lambda address: VISITS[address][0])
def test_text_is_seen_as_itself(page: Any, server: str, installation: tuple[Path, dict[str, str]], address: str) -> None:
    requested: list[str] = []
    trouble: list[str] = []

    def dialog(box: Any) -> None:
        trouble.append(box.message)
        box.dismiss()

    page.on("request", lambda request: requested.append(request.url))
    page.on("dialog", dialog)
    page.goto(server + address.format(**installation[1]))
    page.get_by_test_id("stMain").locator("h2, h3").first.wait_for()
    quiet(page)
    for name in VISITS[address]:
        _, steps, fields = VIEWS[name]
        steps(page)
        is_seen(page, name, fields.split())
        assert page.evaluate("window.hacked") is None, name
        assert not trouble, name
        assert harmless(page) == [], name
    assert [url for url in requested if "attack.invalid" in url] == []


def is_seen(page: Any, name: str, fields: list[str]) -> None:
    wanted = [f for f in fields if f not in AS_MARKDOWN]
    seen = popovers(page)

    def missing() -> list[str]:
        now = seen + read(page)
        return [f for f in wanted if not stands(TEXT[f], now)]

    with suppress(AssertionError):
        until(lambda: not missing())  # tables are drawn a little later than the rest
    assert not missing(), name
    if "guideline" in fields:
        assert "Readthis:guideline<imgsrc=x" in seen + read(page)


def harmless(page: Any) -> list[str]:
    """Elements that only an attack could have made."""
    return list(
        page.evaluate(
            """() => [...document.querySelectorAll('[data-testid=stApp] *')].filter(e =>
                 [...e.attributes].some(a => /^on/i.test(a.name) && /hacked/.test(a.value)) ||
                 /^\\s*javascript:/i.test(e.getAttribute('href') || '') ||
                 /attack\\.invalid/.test(e.getAttribute('src') || e.getAttribute('href') || '') ||
                 (e.tagName === 'SCRIPT' && /hacked/.test(e.textContent)) || e.hasAttribute('srcdoc')
               ).map(e => e.outerHTML.slice(0, 200))"""
        )
    )
