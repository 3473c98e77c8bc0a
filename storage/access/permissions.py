"""Who may do what: one table, from which the store's door (`storage.door`) decides and docs/security.md is tested.

An action that needs a role names the store's methods that belong to it.  Actions without methods are done outside of the store (corpora,
models, runs): whoever does them asks the door first.  Within an action a method may ask for more: work on the stage of validation is a
validator's, other people's work is seen from that role on, and another's password is set by a manager.

What is in no action is for the local operator: whoever runs `python -m storage` or opens the database with `Store` could read and
write its file anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from core.errors import NotAllowedError
from storage.records.enumerations import Role

_RANK: dict[str, int] = {"annotator": 0, "validator": 1, "manager": 2}

Name = Literal[
    "sign in",
    "ask questions",
    "judge answers",
    "read corpora",
    "see evaluations",
    "annotate",
    "see others' work",
    "run the loop",
    "build corpora",
    "delete corpora",
    "run evaluations",
    "change evaluations",
    "manage projects",
    "manage people",
    "take snapshots",
    "back up",
]


@dataclass(frozen=True, slots=True)
class Action:
    """`role` is the least one that may; None: nobody has to be signed in.  `calls` are methods of the store's parts."""

    about: str
    role: Role | None
    calls: tuple[str, ...] = ()


ACTIONS: Mapping[str, Action] = {
    "sign in": Action(
        "sign in with a password or through the organisation's provider",
        None,
        ("accounts_in_use", "sign_in", "sign_in_subject"),
    ),
    "ask questions": Action(
        "ask a system on Explore, stop one's own run, see stored predictions",
        "annotator",
        ("save_prediction", "find_prediction", "get_prediction", "recent_predictions"),
    ),
    "judge answers": Action(
        "label an answer, change the label, take it back; see the labels of others",
        "annotator",
        ("judge", "clear_judgment", "judgments"),
    ),
    "read corpora": Action("list corpora, look into one, search it", "annotator"),
    "see evaluations": Action(
        "see stored evaluations, compare them, look into their rows",
        "annotator",
        (
            "evaluations",
            "count_evaluations",
            "evaluation_choices",
            "evaluation_report",
            "evaluation_rows",
            "count_evaluation_rows",
            "evaluation_row",
            "find_evaluation_trace",
            "error_counts",
            "group_means",
            "paired_rows",
            "paired_values",
        ),
    ),
    "annotate": Action(
        "take items, write, judge, skip and undo in open projects; see one's own work, progress and log; change one's own password",
        "annotator",
        (
            "require",
            "projects",
            "get_project",
            "find_project_named",
            "guidelines",
            "qualification",
            "next_item",
            "claim_item",
            "release_item",
            "skip_item",
            "tasks",
            "save_draft",
            "find_draft",
            "log_search",
            "log_view",
            "interactions",
            "get_item",
            "suggestions",
            "judging_sheet",
            "mine_and_final",
            "submit",
            "undo",
            "submissions",
            "submission_history",
            "submitted",
            "progress",
            "activity",
            "set_password",
        ),
    ),
    "see others' work": Action(
        "validate, send work back, see who wrote what, who there is, and how far people agree",
        "validator",
        ("validation_input", "return_item", "items", "people", "annotators"),
    ),
    "build corpora": Action("upload files and build a corpus from them, stop or go on with a build", "manager"),
    "delete corpora": Action("delete a corpus with its index", "manager"),
    "run evaluations": Action(
        "start, stop and go on with evaluations; upload question files; store a run", "manager", ("save_evaluation",)
    ),
    "change evaluations": Action("rename or delete a stored evaluation", "manager", ("label_evaluation", "delete_evaluation")),
    "manage projects": Action(
        "make and change projects, their questions, guidelines and qualification; have a system answer them",
        "manager",
        (
            "create_project",
            "update_project",
            "add_items",
            "save_guidelines",
            "guideline_versions",
            "link_predictions",
            "unanswered",
            "save_for_item",
            "admit",
        ),
    ),
    "manage people": Action(
        "add people; set roles, passwords and subjects; make accounts inactive; see everybody's log",
        "manager",
        ("add_person", "set_role", "set_active", "set_subject"),
    ),
    "take snapshots": Action(
        "take snapshots and exports, download them",
        "manager",
        ("take_snapshot", "snapshots", "get_snapshot", "snapshot_files", "export"),
    ),
    "run the loop": Action("start and stop the training loop", "manager", ("judged_questions",)),
    "back up": Action("make a backup; see versions, settings and the state of the database", "manager", ("backup", "health")),
}

ACTION_OF: Mapping[str, Action] = {call: action for action in ACTIONS.values() for call in action.calls}


def can(role: str, needed: str) -> bool:
    """Each role has the rights of the ones before it: annotator, validator, manager."""
    return _RANK[role] >= _RANK[needed]


def check_role(name: str, role: str, needed: str) -> None:
    """Raises NotAllowedError where `role` is a lesser one than `needed`."""
    if not can(role, needed):
        article = "an" if role == "annotator" else "a"
        raise NotAllowedError(f"'{name[:80]}' is {article} {role}; this needs the role {needed}: ask a manager")
