"""The database files of released schemas in tests/storage/schema/data, gzipped: which there are, and how one is packed and unpacked."""

from __future__ import annotations

import gzip
from pathlib import Path

DATA = Path(__file__).parents[1] / "storage" / "schema" / "data"
SUFFIX = ".db.gz"


def schemas() -> list[str]:
    """Revisions with a file, oldest first: "0001", "0002", ..."""
    return sorted(p.name.removeprefix("schema-").removesuffix(SUFFIX) for p in DATA.glob(f"schema-*{SUFFIX}"))


def schema_file(revision: str) -> Path:
    return DATA / f"schema-{revision}{SUFFIX}"


def unpack(revision: str, path: Path) -> None:
    """Writes the database of a schema to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.decompress(schema_file(revision).read_bytes()))


def pack(database: Path, revision: str) -> None:
    """The same bytes for the same database: no name and no time stand in the file."""
    schema_file(revision).write_bytes(gzip.compress(database.read_bytes(), mtime=0))
