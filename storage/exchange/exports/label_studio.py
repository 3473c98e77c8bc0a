"""Tasks for Label Studio, with the answer sets as predictions, which a person corrects there.

Source: https://labelstud.io/guide/tasks (basic JSON format) and https://labelstud.io/guide/predictions.  The names of CONFIG's tags are those that
the predictions refer to: a project needs this labelling configuration, or one with the same names.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlalchemy.orm import Session

from core.annotating.aliases import join_aliases
from core.json_io import dumps
from storage.exchange.exports.training_formats import ambignq
from storage.exchange.filters import Filters, Names

CONFIG = """\
<View>
  <Text name="question" value="$question"/>
  <Choices name="type" toName="question" required="true">
    <Choice value="singleAnswer"/>
    <Choice value="multipleQAs"/>
    <Choice value="noAnswer"/>
  </Choices>
  <TextArea name="answers" toName="question" editable="true"/>
</View>"""


def label_studio(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[str]:
    """One task for each question, with a prediction for each of its answer sets.  An answer is a line of aliases, after its
    disambiguated question if it has one, as in a table of gold questions."""
    for text in ambignq(session, filters, names, counts):
        row = json.loads(text)
        predictions = [_prediction(annotation) for annotation in row["annotations"]]
        yield dumps({"data": {"id": row["id"], "question": row["question"]}, "predictions": predictions})


def _prediction(annotation: dict[str, Any]) -> dict[str, Any]:
    """`model_version` is Label Studio's name for the origin of a prediction."""
    origin = [str(annotation[name]) for name in ("stage", "annotator", "version") if name in annotation]
    answers = [join_aliases(annotation["answer"])] if "answer" in annotation else []
    answers += [f"{pair['question']} {join_aliases(pair['answer'])}" for pair in annotation.get("qaPairs", ())]
    result = [_region("type", "choices", {"choices": [annotation["type"]]})]
    if answers:
        result.append(_region("answers", "textarea", {"text": answers}))
    return {"model_version": ", ".join(origin) or "final", "result": result}


def _region(name: str, kind: str, value: dict[str, list[str]]) -> dict[str, Any]:
    return {"id": name, "from_name": name, "to_name": "question", "type": kind, "value": value}
