"""Copies a database of an earlier schema (EARLIER) into a new one of this version's schema.

python docs/convert_database.py OLD NEW      # SQLite files or database URLs; OLD is only read, NEW must not exist or be empty
"""

from __future__ import annotations

import sys
from pathlib import Path

from sqlalchemy import column, create_engine, func, insert, inspect, select, table, text, update

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from storage.records.projects import MIXED_SLOTS
from storage.schema.base import Base
from storage.schema.engine import parse_url
from storage.schema.workbench import ItemStage
from storage.store import Store

EARLIER = ("0009", "1000", "1001")  # 1001: of Ambiscope 1.0.0


def url_of(name: str) -> str:
    return name if "://" in name else f"sqlite:///{Path(name).absolute()}"


def convert(old: str, new: str) -> dict[str, int]:
    """Copies every row of the tables and columns that both schemas have; returns how many by table."""
    counts = {}
    with Store(url_of(new)) as store, create_engine(parse_url(url_of(old))).connect() as source:
        revision = source.execute(text("SELECT version_num FROM alembic_version")).scalar()
        if revision not in EARLIER:
            sys.exit(f"{old} has schema {revision}, not {' or '.join(EARLIER)}: open it once with the last checkout of those")
        if any(store.maintenance.counts().values()):
            sys.exit(f"{new} is not empty: name a new database")
        with store.database.writing() as session:
            target = session.connection()
            present = set(inspect(source).get_table_names())
            for made in (one for one in Base.metadata.sorted_tables if one.name in present):
                names = {c["name"] for c in inspect(source).get_columns(made.name)}
                shared = [c for c in made.columns if c.name in names]
                query = select(*(column(c.name, c.type) for c in shared)).select_from(table(made.name))
                counts[made.name] = 0
                for part in source.execute(query).mappings().partitions(200):
                    target.execute(insert(made), [dict(row) for row in part])
                    counts[made.name] += len(part)
                if target.dialect.name == "postgresql" and "id" in made.c and counts[made.name]:
                    last = select(func.max(made.c.id)).scalar_subquery()
                    target.execute(select(func.setval(func.pg_get_serial_sequence(made.name, "id"), last)))
            # qualification items had no slots: they are gold items like the others now
            target.execute(update(ItemStage).where(ItemStage.slots == 0).values(slots=MIXED_SLOTS))
    return counts


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(*(f"{name}: {count}" for name, count in convert(*sys.argv[1:]).items()), sep="\n")
