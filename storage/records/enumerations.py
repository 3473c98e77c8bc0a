"""The enumerations: the allowed values of a field."""

from __future__ import annotations

from typing import Literal

State = Literal["draft", "submitted", "skipped"]
Stage = Literal["generation", "validation"]

Role = Literal["annotator", "validator", "manager"]
WorkStage = Literal["generation", "validation", "judging"]
Order = Literal["file", "random", "uncertainty", "disagreement"]
ProjectState = Literal["open", "closed"]
ItemState = Literal["waiting", "open", "done"]
# leased: open with its annotator; released: given back; expired: the lease ran out and another took the slot; returned: sent
# back for rework; submitted and skipped: done with
TaskState = Literal["leased", "released", "expired", "submitted", "skipped", "returned"]
SideName = Literal["a", "b"]
InteractionKind = Literal["search", "view"]
