"""Readers of tables by column: Parquet, and the Arrow files of Hugging Face's `datasets`.  Read batch by batch, never whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from core.errors import FormatError
from core.retrieval.readers.lines import Row, Source

ROWS = 1024  # of a batch of Parquet
FILE_MARK = b"ARROW1"  # Arrow's file format; `datasets` writes the stream format
STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"


def read_parquet(source: Source) -> Iterator[Row]:
    """A passage or document a row.  Raises FormatError for a damaged file or a missing column."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(source.path, memory_map=True) as file:
            fields = _fields(source, file.schema_arrow)
            batches = file.iter_batches(ROWS, columns=list(dict.fromkeys(fields.values())))
            yield from _rows(source, fields, batches)
    except (pyarrow.ArrowException, OSError) as e:
        raise _damaged(source, "Parquet", e) from e


def read_arrow(source: Source) -> Iterator[Row]:
    """The same of an Arrow file, in the stream or the file format."""
    import pyarrow

    try:
        with pyarrow.memory_map(str(source.path)) as file:
            if file.read(len(FILE_MARK)) == FILE_MARK:
                reader = pyarrow.ipc.open_file(file)
                yield from _rows(
                    source, _fields(source, reader.schema), map(reader.get_batch, range(reader.num_record_batches))
                )
                return
            file.seek(max(0, file.size() - len(STREAM_END)))
            if file.read() != STREAM_END:  # a stream may be cut between two batches, which Arrow takes for its end
                raise FormatError("not an Arrow file, or one that was cut short; copy it again", file=source.name)
            file.seek(0)
            stream = pyarrow.ipc.open_stream(file)
            yield from _rows(source, _fields(source, stream.schema), stream)
    except (pyarrow.ArrowException, OSError) as e:
        raise _damaged(source, "Arrow", e) from e


def _damaged(source: Source, kind: str, error: Exception) -> FormatError:
    said = " ".join(str(error).split())[:150]
    return FormatError(f"not a complete {kind} file ({said}); copy it again", file=source.name)


def _fields(source: Source, schema: Any) -> dict[str, str]:
    """The columns that are read: `text`, and `id` and `title` where they are there.  Raises FormatError if no column has texts."""
    found: dict[str, str] = {}
    for field in ("id", "title", "text"):
        names: Sequence[str] = getattr(source.columns, field)
        name = next((n for n in names if n in schema.names), None)
        if name is not None:
            found[field] = name
    if "text" not in found:
        known, there = ", ".join(source.columns.text), ", ".join(schema.names)[:200]
        raise FormatError(f"no column {known}; it has {there}: name the one of the texts with --text-column", file=source.name)
    return found


def _rows(source: Source, fields: dict[str, str], batches: Iterable[Any]) -> Iterator[Row]:
    source.unit = "row"
    for batch in batches:
        columns = {field: batch.column(name).to_pylist() for field, name in fields.items()}
        for at in range(batch.num_rows):
            source.tally.read += 1
            row = source.row(source.tally.read, "column", fields, {f: values[at] for f, values in columns.items()})
            if row:
                yield row
