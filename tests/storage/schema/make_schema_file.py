"""Writes tests/storage/schema/data/schema-<revision>.db.gz: run once when a schema is released, then never again for that revision.

python tests/storage/schema/make_schema_file.py
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parents[1]
sys.path[:0] = [str(TESTS / "fakes"), str(TESTS.parent)]


def main() -> None:
    from annotation_samples import fill_workbench
    from schema_files import pack, schema_file
    from storage_samples import fill

    from storage.schema.upgrade import copy_database, head
    from storage.store import Store

    target = schema_file(head())
    if target.exists():
        sys.exit(f"{target} exists; a released schema's file is never written again")
    draft = target.with_name("draft.db")
    with Store(f"sqlite:///{draft}") as store:
        fill(store)
        fill_workbench(store)
        copy_database(draft, target.with_name("draft.db.whole"))
    pack(target.with_name("draft.db.whole"), head())
    for left in target.parent.glob("draft.db*"):
        left.unlink()
    print(target, target.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
