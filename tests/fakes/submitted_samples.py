"""A database in which people said things in every way: in projects, twice, taken back, over the number, on Explore, in files."""

from __future__ import annotations

import json
import time
from pathlib import Path

from annotation_samples import judge_all, multiple, project, single, take, validate, work
from storage_samples import prediction

from core import types as t
from storage.exchange.filters import Filters
from storage.records.annotation import GenerationWork, JudgedAnswer, JudgingWork, MissingAnswer, SuggestionUse
from storage.records.projects import Project
from storage.store import Store

FORMATS = ("ambignq", "ambignq-full", "fid", "training", "preferences", "csv")


def _generate(store: Store, made: Project, annotator: str, item: str, *answers: str) -> None:
    assert store.queue.claim_item(item, annotator, "generation") is not None
    store.submissions.submit(item, annotator, "generation", work(*answers), seconds=10)


def _items(store: Store, made: Project) -> list[str]:
    return [i.id for i in store.items.items(made.id, "Mia", stage=made.stages[0], limit=500)]


def fill_submitted(store: Store, folder: Path) -> None:
    """Every case in which what was submitted, or said elsewhere, counts or does not; `folder` takes a file to import."""
    first = project(store, 8, name="first", annotators_per_item=2, stages=("generation", "validation"))
    q = _items(store, first)
    _generate(store, first, "Ada", q[0], "Wood", "Zegler")  # differ: validated by Vera
    _generate(store, first, "Bob", q[0], "Wood")
    take(store, first, "Vera", "validation")
    validate(store, q[0], "Vera", multiple("Wood", "Zegler"))
    _generate(store, first, "Ada", q[1], "Wood", "Moreno")  # agree: validated by nobody
    _generate(store, first, "Bob", q[1], "Moreno", "Wood")
    _generate(store, first, "Ada", q[2], "Wood")  # changed; the other one returned
    store.submissions.submit(q[2], "Ada", "generation", work("Wood", "Zegler", "Moreno"), seconds=4)
    _generate(store, first, "Bob", q[2], "Nobody")
    store.returns.return_item(q[2], "Bob", "generation", "look again", by="Vera")
    _generate(store, first, "Ada", q[3], "Lee")  # reopened
    store.returns.undo(q[3], "Ada", "generation")
    _generate(store, first, "Ada", q[4], "Ann")  # back to the first version
    store.submissions.submit(q[4], "Ada", "generation", work("Ben"), seconds=4)
    store.returns.undo(q[4], "Ada", "generation")
    _generate(store, first, "Bob", q[4], "Ben")  # returned, and submitted again
    store.returns.return_item(q[4], "Bob", "generation", "why?", by="Vera")
    store.submissions.submit(q[4], "Bob", "generation", work("Ben"), seconds=1)

    # the same question in another project: the later one counts
    second = project(store, 2, name="second")
    again = _items(store, second)
    _generate(store, second, "Ada", again[0], "Wood", "Zegler", "Somebody")
    _generate(store, second, "Bob", again[1], "Moreno", "Wood")

    # over the number, and one that took a slot later
    quick = project(store, 0, name="quick", lease_minutes=0.0005)
    store.intake.add_items("Mia", quick.id, [t.ReferenceQuestion(f"quick {n}", f"Who was it, {n}?", ()) for n in range(2)])
    for late in _items(store, quick):
        assert store.queue.claim_item(late, "Cleo", "generation") is not None
        time.sleep(0.06)
        _generate(store, quick, "Ada", late, "Early")
        store.submissions.submit(late, "Cleo", "generation", work("Late"), seconds=1)
    store.returns.return_item(late, "Ada", "generation", "no", by="Vera")
    store.queue.skip_item(late, "Ada", "generation", "I do not know")

    # judging, with words on Explore before and after
    made = {}
    for number in range(2):
        for system, answers in (("fid", ["Wood", "Lee", "Moreno", "Zegler"]), ("ambigprompt", ["Wood", "Nobody"])):
            made[system, number] = store.predictions.save_prediction(
                prediction(f"Who played part {number}?", answers, id=f"q{number}", system=system)
            )
    store.labels.judge(made["fid", 0], 0, "Ada", "wrong", "before")
    store.labels.judge(made["fid", 0], 1, "Ada", "correct")
    judging = project(store, 2, name="judging", stages=("judging",), systems=("fid", "ambigprompt"), annotators_per_item=2)
    sheets = _items(store, judging)
    for name in ("Ada", "Bob"):
        for item in sheets:
            store.queue.claim_item(item, name, "judging")
            sheet = store.reviews.judging_sheet(item, name)
            whole = judge_all(sheet, missing=(MissingAnswer("Kline", ("K. Kline",)),), preference="a")
            answers = tuple(
                JudgedAnswer(
                    a.prediction_id,
                    a.position,
                    "wrong" if a.position == 3 else "correct",
                    "fits" if a.position != 1 else "ambiguous_still",
                    "",
                )
                if a.question is not None
                else a
                for a in whole.answers
            )
            store.submissions.submit(item, name, "judging", JudgingWork(answers, whole.missing, whole.preference), seconds=8)
    store.labels.judge(made["fid", 0], 2, "Ada", "wrong", "after")
    store.labels.judge(made["fid", 0], 3, "Ada", None, "not sure any more", "draft")
    store.labels.clear_judgment(made["ambigprompt", 0], 0, "Ada")
    store.labels.clear_judgment(made["ambigprompt", 0], 1, "Ada")
    store.labels.judge(made["ambigprompt", 0], 1, "Ada", "duplicate")
    store.labels.judge(made["ambigprompt", 1], 0, "Dan", "unsupported", "only here")
    store.returns.return_item(sheets[1], "Bob", "judging", "too fast", by="Vera")

    # a suggestion that was rejected, and an annotation out of a file under the name of somebody who annotates too
    other = _items(store, first)[5]
    file = folder / "file.json"
    rows = [
        {
            "id": f"q{n}",
            "question": f"Who played part {n}?",
            "annotations": [{"type": "singleAnswer", "answer": [a]} for a in answers],
        }
        for n, answers in ((5, ("Filed",)), (6, ("Filed", "Kept")))
    ]
    file.write_text(json.dumps(rows), encoding="utf-8")
    store.imports.import_file(file, format="ambignq", annotator="Eve")
    assert store.queue.claim_item(other, "Eve 1", "generation") is not None
    content = GenerationWork(single("Rita"), (SuggestionUse("p", 0, "Somebody", "rejected"),), note="hard")
    store.submissions.submit(other, "Eve 1", "generation", content, seconds=9)
    _generate(store, first, "Eve 2", _items(store, first)[6], "Kept")


def filters(store: Store) -> dict[str, Filters]:
    """What exports are compared under, by name."""
    of = {p.name: p.id for p in store.projects.projects()}
    return {
        "all": Filters(),
        "first": Filters(project=of["first"]),
        "judging": Filters(project=of["judging"]),
        "Ada": Filters(annotators=("Ada",)),
        "fid": Filters(system="fid", stages=("judging",)),
        "generation": Filters(stages=("generation",)),
        "agreed": Filters(minimum_agreement=0.5),
    }


def exports(store: Store, folder: Path) -> dict[str, str]:
    """The text of each export under each filter, by 'filter format'."""
    found = {}
    for name, chosen in filters(store).items():
        for format in FORMATS:
            out = folder / f"{name}.{format}"
            store.exports.export(format, out, filters=chosen)  # type: ignore[arg-type]
            found[f"{name} {format}"] = out.read_bytes().decode("utf-8")
    return found
