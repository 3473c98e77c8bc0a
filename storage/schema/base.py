"""The base of every table: column types, names of constraints, enumerations as checks."""

from __future__ import annotations

import json
import re
import zlib
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from sqlalchemy import (
    REAL,
    CheckConstraint,
    DateTime,
    Dialect,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, declared_attr, mapped_column

from core.json_io import dumps


class UtcDateTime(TypeDecorator[datetime]):
    """Aware datetimes in, aware UTC datetimes out.  SQLite keeps ISO 8601 text of fixed width, so text order is time order."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(Text() if dialect.name == "sqlite" else DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        utc = value.astimezone(UTC)
        return utc.isoformat(timespec="microseconds") if dialect.name == "sqlite" else utc

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)


class Flag(TypeDecorator[bool]):
    """A truth value as 0 or 1: STRICT tables know no BOOLEAN."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: bool | None, dialect: Dialect) -> int | None:
        return None if value is None else int(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> bool | None:
        return None if value is None else bool(value)


class JsonText(TypeDecorator[Any]):
    """Plain JSON values as text: STRICT tables know no JSON type.  NaN is refused."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


class JsonList(JsonText):
    """A JSON list; the others are objects."""

    cache_ok = True


class PackedJson(TypeDecorator[Any]):
    """Plain JSON values, compressed: for what is large and never searched.  NaN is refused."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes | None:
        return None if value is None else zlib.compress(dumps(value).encode(), 6)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(zlib.decompress(value))


class Base(DeclarativeBase):
    """A table is named after its class and is STRICT in SQLite.  A flag is 0 or 1, and a Literal has one of its values."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text(),
        Literal: Text(),  # an enumeration
        bool: Flag(),
        datetime: UtcDateTime(),
        float: Double().with_variant(REAL(), "sqlite"),  # SQLite's REAL has 64 bits, PostgreSQL's only 32
        dict[str, Any]: JsonText(),
        list[Any]: JsonList(),
    }

    @declared_attr.directive
    def __tablename__(cls) -> str:
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        if isinstance(table := cls.__dict__.get("__table__"), Table):
            table.dialect_kwargs["sqlite_strict"] = True
            for name, hint in get_type_hints(cls).items():
                if name in table.columns:
                    kind = next((k for k in (hint.__args__[0], *get_args(hint.__args__[0])) if get_origin(k) is Literal), None)
                    values = get_args(kind) if kind else (0, 1) if isinstance(table.columns[name].type, Flag) else ()
                    if values:
                        rule = f"{name} IN ({', '.join(map(repr, values))})"
                        table.append_constraint(CheckConstraint(rule, name, info={name: values} if kind else {}))


class NumberedTable(Base):
    """A table whose key is a number."""

    __abstract__ = True

    id: Mapped[int] = mapped_column(primary_key=True, sort_order=-1)
