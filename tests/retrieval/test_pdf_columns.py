"""Pages in columns are read column by column, in whatever order the file holds their lines; tables row by row."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from pdf_samples import pdf, saved
from pypdf.generic import DecodedStreamObject, NameObject

from core.retrieval.library import CorpusLibrary
from core.retrieval.parsing.columns import in_reading_order
from core.retrieval.readers import read_passages
from core.retrieval.readers.lines import Limits, Source, Tally

LEFT = [
    "The first pilot of the sound was",
    "Ida Brandt, who came from Tromsø",
    "in 1871 and stayed until her son",
    "took over the boat and the house",
]
RIGHT = [
    "He sold both in 1903 to a widow",
    "from the south, Else Falk, whose",
    "hotel still stands at the quay",
    "where the old boat was tied up",
]
THIRD = [
    "Nobody has lived there since the",
    "road came in the spring of 1958",
    "but guests return each year for",
    "the herring and the white nights",
]
Line = tuple[int, int, str]  # x, y, text


def column(x: int, lines: list[str]) -> list[Line]:
    return [(x, 700 - 14 * number, line) for number, line in enumerate(lines)]


def page(tmp_path: Path, lines: list[Line]) -> Path:
    writer = pdf([""])
    stream = DecodedStreamObject()
    parts = (f"BT /F1 10 Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET" for x, y, text in lines)
    stream.set_data("\n".join(parts).encode("latin-1"))
    writer.pages[0].mediabox.upper_right = (900, 800)
    writer.pages[0][NameObject("/Contents")] = writer._add_object(stream)
    return saved(writer, tmp_path / "a.pdf")


def text_of(path: Path, limits: Limits, tally: Tally | None = None) -> str:
    return " ".join(p.text for p in read_passages(Source(path, limits, lambda _: None, tally or Tally())))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("across", [False, True], ids=["column by column", "line by line"])
@pytest.mark.parametrize("title", ["", "The pilots of the sound and what became of their house since 1871"])
def test_a_column_is_read_to_its_end(tmp_path: Path, limits: Limits, count: int, across: bool, title: str) -> None:
    columns = [LEFT, RIGHT, THIRD][:count]
    placed = [column(40 + 280 * number, lines) for number, lines in enumerate(columns)]
    lines = chain(*zip(*placed, strict=True)) if across else chain(*placed)
    path = page(tmp_path, [(40, 740, title), *lines])
    tally = Tally()
    assert text_of(path, limits, tally) == " ".join([title, *chain(*columns)]).strip()
    assert not tally.doubtful


def test_a_table_is_read_row_by_row(tmp_path: Path, limits: Limits) -> None:
    rows = [("Option", "Default"), ("port", "8080 or another"), ("host", "local"), ("threads", "two"), ("log", "none at all")]
    placed = [((40, 700 - 14 * n, left), (320, 700 - 14 * n, right)) for n, (left, right) in enumerate(rows)]
    assert text_of(page(tmp_path, list(chain(*placed))), limits) == " ".join(chain(*rows))


def test_text_below_columns_comes_after_them() -> None:
    rows = [f"{left:40}{right}" for left, right in zip(LEFT, RIGHT, strict=True)]
    below = "What is said of both families here was told by the last of their guests"
    text, is_doubtful = in_reading_order("\n".join([*rows, below]), "\n".join([*rows, "", below]))
    assert text.split("\n") == [*LEFT, *RIGHT, below]
    assert not is_doubtful


def test_a_doubtful_order_is_reported(tmp_path: Path, library: CorpusLibrary) -> None:
    """Lines run across the columns, and the layout lacks a letter: the page stays as the file has it."""
    rows = "\n".join(f"{left:40}{right}" for left, right in zip(LEFT, RIGHT, strict=True))
    assert in_reading_order(f"{rows}\nx", rows) == (f"{rows}\nx", True)
    turned = "BT /F1 10 Tf 0 1 -1 0 20 100 Tm (sideways) Tj ET"
    lines = list(chain(*zip(column(40, LEFT), column(320, RIGHT), strict=True)))
    path = page(tmp_path, [*lines, (0, 0, f") Tj ET {turned} BT /F1 10 Tf (")])
    (warning,) = library.create("docs", [path]).warnings
    assert "a.pdf" in warning
    assert "1 page (1)" in warning
