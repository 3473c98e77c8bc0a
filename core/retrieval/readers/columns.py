"""Readers of tables by column: Parquet, and the Arrow files of Hugging Face's `datasets`.  They are read batch by batch, never
whole.

A column that one value fills takes next to nothing in a Parquet file, however long the value and however many the rows; so what a file
unpacks to is bounded before it is read, and few rows are unpacked at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from core.errors import FormatError
from core.json_io import FREE_BYTES, MAX_PACKED_RATIO
from core.retrieval.readers.lines import MB, DocumentRow, Source

BATCH_ROWS = 32  # of a batch of Parquet
FILE_MARK = b"ARROW1"  # Arrow's file format; `datasets` writes the stream format
STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"


def read_parquet(source: Source) -> Iterator[DocumentRow]:
    """One passage or document for each row.  Raises FormatError for a damaged file or a missing column."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(source.path, memory_map=True) as file:
            fields = _fields(source, file.schema_arrow)
            _check_unpacked(source, file.metadata, fields.values())
            batches = file.iter_batches(BATCH_ROWS, columns=list(dict.fromkeys(fields.values())))
            yield from _rows(source, fields, batches)
    except (pyarrow.ArrowException, OSError) as e:
        raise _damaged(source, "Parquet", e) from e


def read_arrow(source: Source) -> Iterator[DocumentRow]:
    """The same for an Arrow file, in the stream or the file format."""
    import pyarrow

    try:
        with pyarrow.memory_map(str(source.path)) as file:
            if file.read(len(FILE_MARK)) == FILE_MARK:
                reader = pyarrow.ipc.open_file(file)
                batches = map(reader.get_batch, range(reader.num_record_batches))
            else:
                file.seek(max(0, file.size() - len(STREAM_END)))
                if file.read() != STREAM_END:  # a stream may be cut between two batches, which Arrow takes for its end
                    raise FormatError("not an Arrow file, or one that was cut short; copy it again", file=source.name)
                file.seek(0)
                reader = batches = pyarrow.ipc.open_stream(file)
            yield from _rows(source, _fields(source, reader.schema), batches)
    except (pyarrow.ArrowException, OSError) as e:
        raise _damaged(source, "Arrow", e) from e


def _check_unpacked(source: Source, metadata: Any, columns: Collection[str]) -> None:
    """Raises FormatError if a Parquet file's columns unpack to too many bytes, by its own metadata."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    parts = [part for g in groups for i in range(g.num_columns) if (part := g.column(i)).path_in_schema in columns]
    unpacked = sum(max(part.total_uncompressed_size, part.num_values) for part in parts)
    size = source.path.stat().st_size
    if unpacked > max(FREE_BYTES, MAX_PACKED_RATIO * size):
        raise FormatError(
            f"{size} bytes unpack to {unpacked // MB} MB, which looks like an attack; if it is none, write the file without compression",
            file=source.name,
        )


def _damaged(source: Source, kind: str, error: Exception) -> FormatError:
    reason = " ".join(str(error).split())[:150]
    return FormatError(f"not a complete {kind} file ({reason}); copy it again", file=source.name)


def _fields(source: Source, schema: Any) -> dict[str, str]:
    """The columns to read: `text`, and `id` and `title` if present.  Raises FormatError if no column has texts, or for a column
    that is repeated or has nested values."""
    from pyarrow import types

    columns = source.columns.names_in(schema.names)
    if "text" not in columns:
        expected, existing = ", ".join(source.columns.text), ", ".join(schema.names)[:200]
        raise FormatError(
            f"no column {expected}; it has {existing}: name the one of the texts with --text-column", file=source.name
        )
    for column in columns.values():
        if (times := schema.names.count(column)) != 1:
            raise FormatError(f"the column '{column[:80]}' is there {times} times; keep one", file=source.name)
        if types.is_nested(kind := schema.field(column).type):
            problem = f"the column '{column[:80]}' is nested ({str(kind)[:80]}); expected a text or a number in each row"
            raise FormatError(problem, file=source.name)
    return columns


def _rows(source: Source, fields: dict[str, str], batches: Iterable[Any]) -> Iterator[DocumentRow]:
    source.unit = "row"
    for batch in batches:
        columns = {field: _values(batch.column(name)) for field, name in fields.items()}
        for i, text in enumerate(columns["text"]):
            source.tally.read += 1
            if isinstance(text, str) and len(text) > source.limits.max_line_chars:
                source.reject(source.tally.read, f"the text has more than {source.limits.max_line_chars} characters; split it")
            elif row := source.row(source.tally.read, "column", fields, {f: values[i] for f, values in columns.items()}):
                yield row


def _values(column: Any) -> list[Any]:
    """The values of a column; None for a text that isn't UTF-8."""
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        values = [_value(scalar) for scalar in column]
    return values


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return None
