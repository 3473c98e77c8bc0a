"""The judge beside every judged number of the evaluate page: its name, its prompts' versions, and kappa with people or why there is none."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from annotate_helpers import fine
from page_helpers import ANSWERS, QUESTION, Open, texts
from storage_samples import evaluation_report, save_report
from streamlit.testing.v1 import AppTest
from test_evaluate import show

from core import types as t
from core.evaluation.judge import ModelJudge, ReferenceJudge
from core.evaluation.judge_cache import Judgments
from core.models.language.prompted import PromptedGenerator
from core.models.language.prompts import load_prompt
from core.models.language.scripted import ScriptedLanguageModel
from core.settings import Settings
from pages.evaluate import judges as judges_view
from pages.evaluate.judges import model_of, prompts_of
from storage.analysis.judges import NOBODY_JUDGED
from storage.store import Store

ABOUT = {
    "judge": "language-model",
    "model": "<b>tiny</b> *model*",
    "prompts": {"relax": 9, "verify": 3, "match": 2, "deduplicate": 1},
}


def save(
    store: Store, system: str = "rac", *, about: Any = ABOUT, judged: bool = True, level: float = 0.5, judge_failed: int = 0
) -> None:
    """A run of one question, whose interpretations a judge decided."""
    interpretations = [
        {"question": f"Who is {a}?", "answer": a, "passage_id": f"p{i}", "supported": i != 2, "matched": True}
        for i, a in enumerate(ANSWERS, 1)
    ]
    values = {"F1 answer": level, **({"G-precision": level, "G-F1": level, "interpretations": 3.0} if judged else {})}
    report = evaluation_report((level,), system={"name": system, "corpus": "small", "corpus_digest": "c0"}, judge=about)
    report["rows"][0] |= {"id": "q0", "question": QUESTION, "ambiguous": True, "metrics": values}
    report["rows"][0]["interpretations"] = interpretations if judged else None
    means = {m: {"all": v, "multi": v} for m, v in values.items()}
    report |= {"judge_failed": judge_failed, "scores": means, "intervals": {}}
    save_report(store, report, system=system, label=f"by {system}")


def judged_by_people(store: Store, *verdicts: str) -> None:
    answers = tuple(t.Answer(a, 0.9, (t.Evidence(f"p{i}", 0, 1, "x"),)) for i, a in enumerate(ANSWERS, 1))
    info = t.SystemInfo("fid", corpus="small", corpus_digest="c0")
    key = store.predictions.save_prediction(t.Prediction(t.Question(QUESTION), info, answers, (), (), (), 0.1, ()))
    for position, verdict in enumerate(verdicts):
        store.labels.judge(key, position, "Ada", verdict)  # type: ignore[arg-type]


def choose(app: AppTest, view: str, metric: str = "G-F1", kind: str = "") -> AppTest:
    show(app, view)
    if view != "One run":
        app.selectbox(key="evaluate.metric").set_value(metric).run()
    if kind:
        app.selectbox(key="evaluate.kind").set_value(kind).run()
    return fine(app)


def judges(app: AppTest) -> pd.DataFrame:
    """The table of judges on the page; empty where there is none."""
    return next((d.value for d in app.dataframe if "Kappa with people" in d.value), pd.DataFrame())


VIEWS = [("All runs", ""), ("One run", ""), ("Two runs", ""), ("All runs", "Grounding"), ("All runs", "Quality")]


def test_undefined_until_people_have_judged(open_app: Open, store: Store) -> None:
    save(store)
    save(store, "verdict", about=dict(ReferenceJudge().about), level=0.25)
    app = open_app("evaluate")
    for view, kind in VIEWS:
        rows = judges(choose(app, view, kind=kind)).to_dict("records")
        values = {(row["Kappa with people"], row["n"], row["Why undefined"]) for row in rows}
        assert values == {("undefined", 0, NOBODY_JUDGED)}, (view, kind)
    assert judges(choose(app, "All runs", "F1 answer", "Quality")).empty  # nothing judged on it


def test_kappa_with_interval_and_n(open_app: Open, store: Store) -> None:
    save(store)
    judged_by_people(store, "correct", "wrong", "unsupported")  # the judge said yes, no, yes
    app = choose(open_app("evaluate"), "One run")
    (row,) = judges(app).to_dict("records")
    assert (row["Run"], row["Judge"], row["Model"]) == ("by rac", "language-model", "<b>tiny</b> *model*")
    assert row["Prompt versions"] == "verify 3, match 2, deduplicate 1"
    assert (row["Kappa with people"], row["n"], row["Why undefined"]) == ("0.400", 3, "")
    assert " to " in row["95% interval"]
    assert "<b>tiny" not in texts(app)  # a table's cell, never Markdown


def test_questions_that_were_not_judged_completely_are_counted(open_app: Open, store: Store) -> None:
    save(store, judge_failed=2)
    facts = next(d.value for d in choose(open_app("evaluate"), "One run").dataframe if "fact" in d.value)
    assert "not judged completely 2" in dict(zip(facts["fact"], facts["value"]))["questions asked"]


def test_a_report_that_names_no_judge_and_one_that_was_not_judged(open_app: Open, store: Store) -> None:
    save(store, "old", about=None)
    save(store, "plain", about=None, judged=False)
    (row,) = judges(choose(open_app("evaluate"), "All runs")).to_dict("records")
    assert (row["Run"], row["Judge"], row["Prompt versions"]) == ("by old", "unknown", "unknown")


def test_more_runs_than_are_calculated_at_once(open_app: Open, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges_view, "MAX_RUNS", 1)
    save(store)
    save(store, "verdict", level=0.25)
    table = judges(choose(open_app("evaluate"), "All runs"))
    assert list(table["Kappa with people"]) == ["undefined", "undefined"]
    assert list(table["Why undefined"]) == [NOBODY_JUDGED, judges_view.NOT_CALCULATED]


# ---------------------------------------------------------------- parts


def test_what_judges_say_of_themselves(settings: Settings) -> None:
    model = PromptedGenerator(ScriptedLanguageModel())
    about = ModelJudge("language-model", model, Judgments(settings.home / "judgments.sqlite")).about
    assert prompts_of(about) == ", ".join(f"{r} {load_prompt(r).version}" for r in ("verify", "match", "deduplicate"))
    assert model_of(about) == "scripted"
    assert prompts_of({"judge": "x", "prompts": {"other": 4}}) == "other 4"
    assert (model_of(ReferenceJudge().about), model_of({})) == ("none", "unknown")
    assert model_of({"judge": "reader", "reader": "default", "answerer": "small"}) == "reader default, answerer small"
