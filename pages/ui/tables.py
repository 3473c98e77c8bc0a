"""Tables of all pages, and the same rows as a CSV file that is safe to open in a spreadsheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from pages.ui.markup import full_label
from storage.exchange.exports.tables import DELIMITER, safe_cell

CHARACTER_PIXELS, MIN_PIXELS = 8, 80  # width of a letter, of a column
MARGIN_PIXELS = 40  # a cell's margins and the arrow of a sorted column


def fitted(rows: Sequence[Mapping[str, Any]], longest: int = 900, help: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Column settings with which no name and no cell is cut off, up to `longest` pixels."""
    names = dict.fromkeys(name for row in rows for name in row)
    chars = {name: max(len(name), *(len(str(row.get(name, ""))) for row in rows)) for name in names}
    pixels = {name: min(longest, max(MIN_PIXELS, MARGIN_PIXELS + CHARACTER_PIXELS * n)) for name, n in chars.items()}
    return {name: st.column_config.Column(width=width, help=(help or {}).get(name)) for name, width in pixels.items()}


def csv(table: pd.DataFrame) -> bytes:
    """Text cells and headings that a spreadsheet would read as a formula get an apostrophe; numbers stay numbers."""
    safe = table.map(lambda cell: safe_cell(cell) if isinstance(cell, str) else cell)
    safe.columns = [safe_cell(str(c)) for c in table.columns]
    return str(safe.to_csv(sep=DELIMITER, index=False)).encode("utf-8-sig")


def table(
    rows: pd.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]],
    alt: str,
    *,
    columns: Mapping[str, Any] | None = None,
    key: str | None = None,
    width: Any = "stretch",
    height: Any = "auto",
    csv_name: str = "",
) -> None:
    """`alt`: description, read aloud.  `columns`: Streamlit's settings by column.  `height`: "content" for all rows at once.
    `csv_name`: the name of the file offered below.  Streamlit's own export, which lets formulas through, is off
    (client.disableDataExport)."""
    st.dataframe(pd.DataFrame(rows), hide_index=True, width=width, height=height, column_config=columns, key=key, alt=alt)
    if csv_name:
        csv_button(rows, csv_name, f"csv.{csv_name}")


def csv_button(rows: pd.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]], name: str, key: str) -> None:
    """`name`: the table's, for the button and the file."""
    st.download_button(
        full_label("CSV", f"of {name}"),
        csv(pd.DataFrame(rows)),
        file_name=f"ambiscope-{name.lower().replace(' ', '-')}.csv",
        mime="text/csv",
        icon=":material/download:",
        key=key,
        on_click="ignore",
    )
