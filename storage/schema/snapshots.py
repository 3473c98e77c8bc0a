"""The table of snapshots: immutable, numbered exports that models are trained from."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from storage.schema.base import STRICT, Base


class Snapshot(Base):
    """What a folder of files held when it was made; the files themselves lie outside the database."""

    __tablename__ = "snapshot"
    __table_args__ = (
        CheckConstraint("number >= 1", "number"),
        CheckConstraint("bytes >= 0", "bytes"),
        CheckConstraint("length(sha256) = 64", "sha256"),
        STRICT,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(unique=True)
    sha256: Mapped[str]  # of the manifest, which holds those of the files
    bytes: Mapped[int]
    counts: Mapped[dict[str, Any]]  # format -> counts
    filters: Mapped[dict[str, Any]]
    note: Mapped[str]
    created: Mapped[datetime]
