"""Permissions: the actions with their lowest roles, which docs/security.md is tested against, and the decorators of the
store's methods.

Each public method of a part of the store says by `allowed_to` to which action it belongs, or by `operator_only` that no session may
call it: a person who runs `python -m storage` or opens the database with `Store` could read and write its file anyway.  What is done outside
of the store (corpora, models, runs) asks `SessionStore.allow` first.  Within an action a method may ask for more: work on the stage of
validation is a validator's, other people's work is seen from that role on, and another's password is set by a manager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, Literal, ParamSpec, TypeVar

from core.errors import NotAllowedError
from storage.records.enumerations import Role
from storage.schema.engine import Part

P = ParamSpec("P")
R = TypeVar("R")
PartT = TypeVar("PartT", bound=Part)

_RANK: dict[str, int] = {"annotator": 0, "validator": 1, "manager": 2}

Name = Literal[
    "sign in",
    "ask questions",
    "judge answers",
    "read corpora",
    "see evaluations",
    "annotate",
    "see others' work",
    "retrain",
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
    """`role` is the lowest that is allowed; None: nobody has to be signed in."""

    about: str
    role: Role | None


ACTIONS: Mapping[Name, Action] = {
    "sign in": Action("sign in with a password or through the organisation's provider", None),
    "ask questions": Action("ask a system on Explore, stop one's own run, see stored predictions", "annotator"),
    "judge answers": Action("label an answer, change the label, take it back; see the labels of others", "annotator"),
    "read corpora": Action("list, browse and search corpora", "annotator"),
    "see evaluations": Action("see stored evaluations with their rows, and compare them", "annotator"),
    "annotate": Action(
        "take items, write, judge, skip and undo in open projects; see one's own work, progress and log; change one's own password",
        "annotator",
    ),
    "see others' work": Action("validate and return work; see authors, accounts, and agreement between people", "validator"),
    "build corpora": Action("upload files and build a corpus from them; stop and resume builds", "manager"),
    "delete corpora": Action("delete a corpus with its index", "manager"),
    "run evaluations": Action("start, stop and resume evaluations; upload question files; store a run", "manager"),
    "change evaluations": Action("rename or delete a stored evaluation", "manager"),
    "manage projects": Action(
        "create and change projects, their questions and guidelines; have a system answer them", "manager"
    ),
    "manage people": Action(
        "add people; set roles, passwords and subjects; deactivate accounts; see everybody's log", "manager"
    ),
    "take snapshots": Action("take snapshots and exports, download them", "manager"),
    "retrain": Action("train the answering model on people's judgments", "manager"),
    "back up": Action("make backups; see versions, settings and the state of the database", "manager"),
}


def allowed_to(action: Name | None) -> Callable[[Callable[Concatenate[PartT, P], R]], Callable[Concatenate[PartT, P], R]]:
    """Marks a method that sessions may call if their role allows this action.  It is checked before the call and in each of its
    transactions.

    None: a method that no session may call.
    """

    def around(method: Callable[Concatenate[PartT, P], R]) -> Callable[Concatenate[PartT, P], R]:
        @wraps(method)
        def call(self: PartT, /, *args: P.args, **kw: P.kwargs) -> R:
            return method(self.acting(action), *args, **kw)

        call.action = action  # type: ignore[attr-defined]
        return call

    return around


operator_only = allowed_to(None)


def can(role: str, least_role: str) -> bool:
    """Whether a role is allowed this action.  Each role has the rights of the ones before it: annotator, validator, manager."""
    return _RANK[role] >= _RANK[least_role]


def check_role(name: str, role: str, least_role: str) -> None:
    """Raises NotAllowedError if `role` is lower than `least_role`."""
    if not can(role, least_role):
        article = "an" if role == "annotator" else "a"
        raise NotAllowedError(f"'{name[:80]}' is {article} {role}; this needs the role {least_role}: ask a manager")
