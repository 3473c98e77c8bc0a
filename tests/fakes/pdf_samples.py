"""PDF files with text, made for a test."""

from __future__ import annotations

from pathlib import Path

from pypdf import PdfWriter
from pypdf.generic import ArrayObject, DecodedStreamObject, DictionaryObject, NameObject, NumberObject


def pdf(pages: list[str], **metadata: str) -> PdfWriter:
    r"""Pages of lines; `\\037` in a text is the ligature "fi", `\\036` the ligature "ffl"."""
    writer = PdfWriter()
    for text in pages:
        page = writer.add_blank_page(300, 300)
        font = DictionaryObject(
            {NameObject(k): NameObject(v) for k, v in (("/Type", "/Font"), ("/Subtype", "/Type1"), ("/BaseFont", "/Helvetica"))}
        )
        font[NameObject("/Encoding")] = DictionaryObject(
            {
                NameObject("/BaseEncoding"): NameObject("/WinAnsiEncoding"),
                NameObject("/Differences"): ArrayObject([NumberObject(30), NameObject("/ffl"), NameObject("/fi")]),
            }
        )
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})})
        stream = DecodedStreamObject()
        lines = " T* ".join(f"({line}) Tj" for line in text.split("\n"))
        stream.set_data(f"BT /F1 12 Tf 14 TL 10 200 Td {lines} ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    writer.add_metadata(metadata)
    return writer


def saved(writer: PdfWriter, path: Path) -> Path:
    with path.open("wb") as f:
        writer.write(f)
    return path
