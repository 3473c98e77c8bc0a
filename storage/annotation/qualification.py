"""How well a gold item was done, and qualification: gold items done first, with feedback; a manager's word stands above them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from core.metrics.agreement.answer_sets import answer_set, set_f1
from core.text import answer_key, answer_keys
from storage.records.annotation import Content, Gold, JudgingWork, Qualification
from storage.records.defaults import THRESHOLDS
from storage.results.standing import stands
from storage.schema import workbench


def gold_score(gold: Gold, content: Content, answers: Mapping[tuple[str, int], str]) -> float:
    """In 0..1: the best answer F1 against the reference annotations (two empty sets: 1), or the share of judged answers that were
    labelled correct where a reference has them and only there, duplicates aside.  `answers`: the text by (prediction id, position).
    """
    if isinstance(content, JudgingWork):
        keys = answer_keys(alias for reference in gold.annotations for pair in reference.pairs for alias in pair.answers)
        said = [
            (a.verdict == "correct", answers[a.prediction_id, a.position]) for a in content.answers if a.verdict != "duplicate"
        ]
        return sum(yes == (answer_key(text) in keys) for yes, text in said) / len(said) if said else 1.0
    own = answer_set(content.annotation)
    return max((set_f1(answer_set(reference), own) for reference in gold.annotations), default=1.0)


def qualification_of(session: Session, project: workbench.Project, annotator: int, *, brief: bool = False) -> Qualification:
    """What the gold items and the managers say of somebody.  Without gold items nobody has to qualify; `brief`: then they are not
    even counted."""
    word = session.scalar(select(workbench.Admission.admitted).filter_by(project_id=project.id, annotator_id=annotator))
    if project.gold_first == 0 and brief:
        return Qualification(0, 0, 0, word is None or word)
    task, sent = workbench.Task, workbench.Submission
    least = {**THRESHOLDS, **project.thresholds}["gold_score"]
    done, right = session.execute(
        select(func.count(), func.coalesce(func.sum(case((sent.score >= least, 1), else_=0)), 0))
        .select_from(task)
        .join(sent, stands())
        .where(task.project_id == project.id, task.annotator_id == annotator, task.slots == 0, task.state == "submitted")
    ).one()
    available = session.scalar(
        select(func.count(func.distinct(workbench.ItemStage.item_id))).where(
            workbench.ItemStage.project_id == project.id,
            workbench.ItemStage.slots == 0,
            workbench.ItemStage.stage != "validation",
        )
    )
    needed = min(project.gold_first, available or 0)
    passed: bool | None
    if word is not None:
        passed = word
    elif needed == 0:
        passed = True
    else:
        passed = None if done < needed else int(right) >= project.gold_pass * done
    return Qualification(int(done), needed, int(right), passed)
