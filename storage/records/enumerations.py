"""The enumerations: what a field with a few allowed values may hold."""

from __future__ import annotations

from typing import Literal

State = Literal["draft", "submitted", "skipped"]
Stage = Literal["generation", "validation"]
Format = Literal["ambignq", "ambignq-full", "fid", "training", "preferences", "csv", "parquet", "datasets", "jsonl"]
ExportFormat = Literal[Format, "backup"]

Role = Literal["annotator", "validator", "manager"]
WorkStage = Literal["generation", "validation", "judging"]
Order = Literal["file", "random", "uncertainty", "disagreement"]
ProjectState = Literal["open", "closed"]
ItemState = Literal["waiting", "open", "done"]
# leased: open with its annotator; released: given back; expired: the lease ran out and another took the slot; returned: sent
# back for rework; submitted and skipped: done with
TaskState = Literal["leased", "released", "expired", "submitted", "skipped", "returned"]
SuggestionAction = Literal["accepted", "edited", "rejected"]
SideName = Literal["a", "b"]
InteractionKind = Literal["search", "view"]
