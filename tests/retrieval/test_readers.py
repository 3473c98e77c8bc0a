"""Readers: the layouts, what is rejected and why, the bounds, and that no bytes break them."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pdf_samples import pdf, saved
from pypdf import PdfWriter
from pypdf.generic import ArrayObject, DecodedStreamObject, DictionaryObject, NameObject

from core import json_io
from core.errors import FormatError, InputError
from core.retrieval.readers import READERS, read_passages, reader_of, sandbox
from core.retrieval.readers.hyphens import Hyphens
from core.retrieval.readers.lines import UNLIMITED, Limits, Rejected, Source, Tally
from core.retrieval.readers.structure import MAX_LISTING_WORDS
from core.types import Passage

Write = Callable[[str, str | bytes], Path]


def read(path: Path, limits: Limits) -> tuple[list[Passage], list[Rejected], Tally]:
    rejected: list[Rejected] = []
    tally = Tally()
    return list(read_passages(Source(path, limits, rejected.append, tally))), rejected, tally


def test_dpr_layout_with_header_and_csv_quoting(write: Write, limits: Limits) -> None:
    rows = '1\t"He said ""go"" twice"\tA\n2\t"Help!" is an album\t"""Help!"""\n3\t"a\tb"\tT\n4\tno title\t\n'
    passages, rejected, tally = read(write("psgs.tsv", f"id\ttext\ttitle\n{rows}"), limits)
    assert passages == [
        Passage("1", "A", 'He said "go" twice'),
        Passage("2", '"Help!"', '"Help!" is an album'),
        Passage("3", "T", "a b"),
        Passage("4", "", "no title"),
    ]
    assert not rejected
    assert (tally.read, tally.header, tally.documents, tally.passages) == (5, 1, 4, 4)


def test_header_names_the_order_and_no_header_is_the_dpr_order(write: Write, limits: Limits) -> None:
    assert read(write("a.tsv", "\ufeffid\ttitle\ttext\n1\tT\tx y\n"), limits)[0] == [Passage("1", "T", "x y")]
    assert read(write("b.tsv", "text\tid\r\nx y\t7\r\n"), limits)[0] == [Passage("7", "", "x y")]
    assert read(write("c.tsv", "1\tx y\tT"), limits)[0] == [Passage("1", "T", "x y")]


def test_gzip_equals_plain(write: Write, limits: Limits) -> None:
    content = "id\ttext\ttitle\n1\tx y\tT\n"
    assert read(write("a.tsv.gz", gzip.compress(content.encode())), limits)[0] == read(write("a.tsv", content), limits)[0]


def test_jsonl(write: Write, limits: Limits) -> None:
    rows = [
        {"id": 7, "title": "T", "text": "a"},
        {"_id": "x", "contents": "b"},
        {"body": "c", "title": None},
        {"id": True, "text": "d"},
        {"text": ["e"]},
        {"title": "no text"},
        ["f"],
        {"text": "g", "title": 3},
        {"id": 10**30, "text": "h"},
        {"text": "\ud800"},
        {"text": "i\u0000j\u2028k"},
    ]
    path = write("d.jsonl", "\n".join(json.dumps(r) for r in rows) + "\n{broken\n\n" + "[" * 100_000 + "\n")
    passages, rejected, tally = read(path, replace(limits, max_line_chars=200_000))
    assert [(p.id, p.title, p.text) for p in passages] == [
        ("7", "T", "a"),
        ("x", "", "b"),
        ("d.jsonl-3", "", "c"),
        ("d.jsonl-8", "3", "g"),
        ("d.jsonl-11", "", "i j k"),
    ]
    reasons = {r.number: r.reason for r in rejected}
    assert list(reasons) == [4, 5, 6, 7, 9, 10, 12, 14]
    assert "expected text or a whole number" in reasons[4]
    assert "field 'text' is a list" in reasons[5]
    assert "no field text, contents, body, passage, content; found title" in reasons[6]
    assert "surrogate" in reasons[10]
    assert "not JSON at column 2" in reasons[12]
    assert tally.read == tally.blank + tally.rejected + tally.documents == 14


def test_text_file_is_one_document(write: Write, limits: Limits) -> None:
    words = [f"w{i}" for i in range(205)]
    text = "\n\n".join(" ".join(words[i : i + 7]) for i in range(0, 205, 7))
    passages, _, _ = read(write("my_notes.txt", text), limits)
    assert [(p.id, p.title) for p in passages] == [(f"my_notes.txt#{n}", "my notes") for n in (1, 2, 3)]
    assert " ".join(p.text for p in passages).split() == words
    assert [p.id for p in read(write("short.txt", "only this"), limits)[0]] == ["short.txt"]
    exactly = read(write("even.txt", " ".join(words[:200])), limits)[0]
    assert [len(p.text.split()) for p in exactly] == [100, 100]


def test_markdown_headings_are_titles_and_rules_and_comments_of_code_are_none(write: Write, limits: Limits) -> None:
    text = (
        "httpx\n=====\nA client.\n\nin isolation.\n\n---\n\n```\ngit config x\n# no heading\n```\n---\nMore.\n\n"
        "## Installing [httpx](http://x) *now* ##\n- **With** pip.\n1. `code`\n\n# FAQ\nNone.\n"
    )
    passages, rejected, _ = read(write("read_me.md", text), limits)
    assert [(p.title, p.text) for p in passages] == [
        ("httpx", "A client. in isolation.\ngit config x\n# no heading\nMore."),
        ("httpx > Installing httpx now", "With pip. code"),
        ("httpx > FAQ", "None."),
    ]
    assert not rejected


def test_pdf_pages(tmp_path: Path, limits: Limits) -> None:
    path = saved(pdf(["Hello world", "", "Third page"], **{"/Title": "My Book"}), tmp_path / "b.pdf")
    passages, rejected, tally = read(path, limits)
    assert passages == [Passage("b.pdf-p1", "My Book", "Hello world"), Passage("b.pdf-p3", "My Book", "Third page")]
    assert [(r.number, r.unit) for r in rejected] == [(2, "page")]
    assert "page has no text" in rejected[0].reason
    assert tally.read == 3


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("a power-\nenhancing drug", "a power-enhancing drug"),
        ("the Elmsby line; Elms-\nby", "the Elmsby line; Elmsby"),  # as the document writes it elsewhere
        ("a ra-di-o; ra-\ndi", "a ra-di-o; ra-di"),
        ("of short-\nand long-term use", "of short- and long-term use"),
        ("from 1914-\n1918 by Jean-\nPaul", "from 1914-1918 by Jean-Paul"),
        ("THE COM-\nMISSION of X-\nrays", "THE COMMISSION of X-rays"),
    ],
)
def test_words_divided_at_line_ends(lines: str, text: str) -> None:
    hyphens = Hyphens()
    hyphens.learn(lines)
    assert hyphens.rejoin(lines) == text


@pytest.mark.parametrize(
    ("pages", "text"),
    [
        (
            ["The Paci\\037c and a ba\\036ed reader born in Copen-\nhagen"],
            "The Pacific and a baffled reader born in Copenhagen",
        ),
        (["the back-\nlot and the play-\noff", "this backlot", "the play-off"], "the backlot and the play-off"),
    ],
    ids=["ligatures", "words of other pages"],
)
def test_lines_of_a_pdf_are_joined(tmp_path: Path, limits: Limits, pages: list[str], text: str) -> None:
    assert read(saved(pdf(pages), tmp_path / "a.pdf"), limits)[0][0].text == text


def test_values_as_data_frames_write_them(write: Write, limits: Limits) -> None:
    rows = [
        {"_id": 0, "title": float("nan")},
        {"_id": 5.0, "title": 1984},
        {"_id": float("nan"), "title": 300.0},
        {"_id": None, "title": 8.5},
        {"_id": 4.5},
        {"_id": 2.0**60},  # no longer the number that it was
        {"_id": float("inf")},
        {"_id": 1, "title": True},
        {"_id": 1, "text": float("nan")},
    ]
    passages, rejected, _ = read(write("a.jsonl", "\n".join(json.dumps({"text": "x", **row}) for row in rows)), limits)
    assert [(p.id, p.title) for p in passages] == [("0", ""), ("5", "1984"), ("a.jsonl-3", "300"), ("a.jsonl-4", "8.5")]
    assert [r.number for r in rejected] == [5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("---\ntitle: The guide\nslug: /a\n---\nIntro.\n## Setup\nText.\n# Other\nMore.\n", ["The guide", "The guide > Setup", "The guide > Other"]),
        ("---\n\nslug: /a\nTitle: \"A: b\"\n...\nIntro.\n", ["A: b"]),
        ("+++\ntitle = 'The guide'\n+++\nIntro.\n", ["The guide"]),
        ("---\ntitle: >-\n  folded\n---\n# Heading\nText.\n", ["folded > Heading"]),
        ("---\ntitle: |  # of the page\n  one\n  ---\n  two\ntags: [a]\n---\nText.\n", ["one --- two"]),
        ("---\ntitle: 'It''s: here' # comment\n---\nText.\n", ["It's: here"]),
        ("---\ntitle: 2024\n---\nText.\n", ["2024"]),
        ("---\ntitle: Use: it\nslug: [\n---\nText.\n", ["Use: it"]),
        ("---\nslug: " + "x" * 90_000 + "\n---\nText.\n", ["my guides"]),
        ("Intro.\n", ["my guides"]),  # the folder's name, since the file's says nothing
        ("---\nNo field, but text\n---\nafter a rule.\n", ["my guides > No field, but text"]),
        ("---\nslug: never closed\n\nText.\n", ["my guides"]),
    ],
)  # fmt: skip
def test_markdown_is_titled_by_its_front_matter_or_heading(write: Write, limits: Limits, text: str, titles: list[str]) -> None:
    passages = list(read_passages(Source(write("_index.md", text), limits, lambda _: None, name="docs/my-guides/_index.md")))
    assert [p.title for p in passages] == titles
    assert all(p.id.startswith("docs/my-guides/_index.md") for p in passages)


def test_text_after_front_matter_that_is_none_is_kept(write: Write, limits: Limits) -> None:
    body = " ".join(f"w{i}" for i in range(300))
    for text in (f"---\n{body}\n---\nend", f"---\na: b\n{body}\nend", "---\na: b\n" + "x\n" * 500 + f"{body}\nend"):
        words = " ".join(p.text for p in read(write("a.md", text), limits)[0]).split()
        assert {*body.split(), "end"} <= set(words)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Plain lines.\n" * 50 + "The café “Zürich” opened.\n" + "More.\n" * 50, "cp1252"),
        ("Café.\n", "cp1252"),
        ("Москва является столицей России. Город основан в 1147 году.\n", "cp1251"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy v České republice, kde žije mnoho lidí.\n", "cp1250"),
        ("東京は日本の首都です。人口は約千四百万人で、日本最大の都市です。\n", "cp932"),
        ("กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย\n", "cp874"),
        ("The station\r\nopened in Zürich.\n", "utf_16"),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.md"])
def test_a_document_is_read_whole_in_its_encoding(write: Write, limits: Limits, name: str, text: str, encoding: str) -> None:
    passages, rejected, tally = read(write(name, text.encode(encoding)), limits)
    assert not rejected
    assert " ".join(p.text for p in passages).split() == text.split()
    assert tally.encoding == encoding


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("Zürich\nMünchen\n".encode() + "Köln\n".encode("latin-1"), 3),  # mixed
        ("Zürich ".encode() + "Köln\n".encode("latin-1"), 1),
        (b"text\n\0\n", None),
        (bytes(range(256)) * 8, None),
        (b"short\n" + b"x" * 2000 + b"\n", 2),
    ],
)
def test_a_damaged_document_is_refused_with_its_line(write: Write, limits: Limits, content: bytes, line: int | None) -> None:
    with pytest.raises(FormatError) as error:
        read(write("a.txt", content), replace(limits, max_line_chars=1000))
    assert (error.value.file, error.value.line) == ("a.txt", line)


def test_rejected_lines_carry_number_and_reason(write: Write, limits: Limits) -> None:
    reasons = {
        b"id\ttext\ttitle": "",
        b"1\tgood\tT": "",
        b"2\tonly two": "2 columns",
        b"3\t\xff\xfe\tT": "not UTF-8 (byte 3 is 0xff)",
        b"4\t   \tT": "the text is empty",
        b"1\tagain\tT": "duplicate id '1'",
        b"": "",
        b"5\tnul \0 here\tT": "contains a NUL character",
        b"\tno id\tT": "the id is empty",
        b"6\t" + b"x" * 5000 + b"\tT": "the line has more than 1000 characters",
        b"7\tfour\tT\tmore": "4 columns",
        b"8\ttext\t" + b"t" * 400: "the title has 400 characters",
        b"a  b\ttext\tT": "the id contains a tab, a control character or repeated white space",
        b"x" * 201 + b"\ttext\tT": "the id has 201 characters",
        b"9\tlast\tT": "",
    }
    passages, rejected, tally = read(write("bad.tsv", b"\n".join(reasons)), replace(limits, max_line_chars=1000))
    assert [p.id for p in passages] == ["1", "9"]
    expected = [(number, reason) for number, reason in enumerate(reasons.values(), 1) if reason]
    assert [(r.number, r.reason.split(";")[0]) for r in rejected] == expected
    assert tally.read == tally.blank + tally.header + tally.rejected + tally.documents == len(reasons)
    assert str(rejected[0]).startswith("bad.tsv, line 3: ")


def test_a_duplicate_of_a_chunked_document_is_seen(write: Write, limits: Limits) -> None:
    long = "w " * 150
    _, rejected, _ = read(write("a.tsv", f"d\t{long}\tT\nd\tshort\tT\nd\t{long}\tT\nd#2\tx\tT\n"), limits)
    assert [r.number for r in rejected] == [2, 3, 4]


def test_a_row_without_an_id_is_never_a_duplicate(write: Write, limits: Limits) -> None:
    rows = [{"id": "a.jsonl-2", "text": "x"}, {"text": "y"}, {"text": "w " * 150}, {"id": "a.jsonl-2", "text": "z"}]
    passages, rejected, _ = read(write("a.jsonl", "\n".join(map(json.dumps, rows))), limits)
    assert [p.id for p in passages] == ["a.jsonl-2", "a.jsonl-2~2", "a.jsonl-3#1", "a.jsonl-3#2"]
    assert [r.number for r in rejected] == [4]


def test_ids_of_long_and_strange_names_differ(write: Write, limits: Limits) -> None:
    path = write("a.txt", "text")
    names = [f"{'deep/' * 60}{n}/a b.txt" for n in range(3)] + ["Cafe\u0301.txt", "x\udc80.txt"]
    ids = [p.id for name in names for p in read_passages(Source(path, limits, lambda _: None, name=name))]
    assert len(set(ids)) == len(names)
    assert max(map(len, ids)) < 150
    assert ids[3] == "Café.txt"


def test_one_open_quote_does_not_swallow_the_file(write: Write, limits: Limits) -> None:
    passages, _, _ = read(write("q.tsv", '1\t"open\tT\n2\ttwo\tT\n3\tthree\t"x\n'), limits)
    assert [p.id for p in passages] == ["1", "2", "3"]


def test_unknown_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.doc: no reader .*\.tsv, .*\.pdf"):
        reader_of(tmp_path / "x.doc")
    assert reader_of(tmp_path / "X.TSV.GZ") == ".tsv.gz"


def test_missing_file_and_folder(tmp_path: Path, limits: Limits) -> None:
    (tmp_path / "folder.tsv").mkdir()
    for name, message in (("none.tsv", "cannot be read"), ("folder.tsv", "is not a file")):
        with pytest.raises(InputError, match=message):
            read(tmp_path / name, limits)


def test_bounds_name_their_setting(write: Write, tmp_path: Path, limits: Limits) -> None:
    path = write("a.tsv", "1\tx\tT\n2\ty\tT\n3\tz\tT\n")
    with pytest.raises(InputError, match=r"more than 2 lines.*AMBISCOPE_MAX_UPLOAD_LINES"):
        read(path, replace(limits, max_lines=2))
    with pytest.raises(InputError, match="AMBISCOPE_MAX_UPLOAD_MB"):
        read(path, replace(limits, max_bytes=10))
    bomb = write("bomb.tsv.gz", gzip.compress(b"x" * 3_000_000))
    with pytest.raises(InputError, match="unpacks to more than 1 MB"):
        read(bomb, replace(limits, max_unpacked_bytes=1024 * 1024))
    book = saved(pdf(["a", "b", "c"]), tmp_path / "b.pdf")
    with pytest.raises(InputError, match=r"has 3 pages; at most 2.*AMBISCOPE_MAX_UPLOAD_PAGES"):
        read(book, replace(limits, max_pages=2))


def test_unpacking_is_bounded_by_the_packed_size(write: Write, limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a file of the command line may have any size."""
    monkeypatch.setattr(json_io, "FREE_BYTES", 100_000)
    endless = replace(limits, max_bytes=UNLIMITED, max_unpacked_bytes=UNLIMITED, max_lines=UNLIMITED)
    for content in (b"x" * 300_000, b'{"text": "x"}\n' * 20_000, b"\n" * 300_000):
        with pytest.raises(InputError, match=r"more than (200 times|0 MB)"):  # packed, or by what its rows become
            read(write("bomb.jsonl.gz", gzip.compress(content, 9)), endless)


def test_protected_pdfs_are_refused_by_one_process(tmp_path: Path, limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.close()
    start = Mock(wraps=sandbox._start)
    monkeypatch.setattr(sandbox, "_start", start)
    writer = pdf(["secret"])
    writer.encrypt("password", algorithm="RC4-128")
    file = saved(writer, tmp_path / "s.pdf")
    for _ in range(2):
        with pytest.raises(FormatError, match=r"s\.pdf: the PDF is protected by a password; save it without one"):
            read(file, limits)
    assert start.call_count == 1


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
def test_pdf_with_an_owners_password_only_is_read(tmp_path: Path, limits: Limits, algorithm: str) -> None:
    writer = pdf(["open to read"])
    writer.encrypt("", "owner", algorithm=algorithm)
    assert read(saved(writer, tmp_path / "s.pdf"), limits)[0][0].text == "open to read"


def own_contents(writer: PdfWriter) -> None:
    contents = ArrayObject()
    writer.pages[0][NameObject("/Contents")] = place = writer._add_object(contents)
    contents.append(place)


def own_parent(writer: PdfWriter) -> None:
    writer.pages[0][NameObject("/Parent")] = writer.pages[0].indirect_reference


def own_kids(writer: PdfWriter) -> None:
    writer._pages.get_object()[NameObject("/Kids")] = ArrayObject([writer._pages])


def own_drawing(writer: PdfWriter) -> None:
    form = DecodedStreamObject()
    form.set_data(b"/X Do")
    objects = DictionaryObject({NameObject("/X"): writer._add_object(form)})
    form.update({NameObject(k): NameObject(v) for k, v in (("/Type", "/XObject"), ("/Subtype", "/Form"))})
    form[NameObject("/Resources")] = DictionaryObject({NameObject("/XObject"): objects})
    writer.pages[0]["/Resources"][NameObject("/XObject")] = objects  # type: ignore[index]
    writer.pages[0][NameObject("/Contents")] = writer._add_object(form)


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (own_contents, "the page has no text"),
        (own_parent, "some words"),
        (own_kids, "not a PDF that can be read"),
        (own_drawing, "the page has no text"),
    ],
)
def test_pdf_that_refers_to_itself(tmp_path: Path, limits: Limits, change: Callable[[PdfWriter], None], outcome: str) -> None:
    """Its words, or one line of refusal, before a limit on memory or time stops the parser."""
    change(writer := pdf(["some words"]))
    try:
        passages, rejected, _ = read(saved(writer, tmp_path / "circle.pdf"), limits)
        (line,) = [*(p.text for p in passages), *(r.reason for r in rejected)]
    except FormatError as error:
        line = str(error)
    assert outcome in line
    assert "\n" not in line


def test_damaged_page_is_rejected_by_number(tmp_path: Path, limits: Limits) -> None:
    writer = pdf(["one", "two", "three"])
    writer.pages[1][NameObject("/Contents")] = NameObject("/NotAStream")
    passages, rejected, _ = read(saved(writer, tmp_path / "d.pdf"), limits)
    assert [p.id for p in passages] == ["d.pdf-p1", "d.pdf-p3"]
    assert [(r.number, r.unit) for r in rejected] == [(2, "page")]


TEXTS = st.one_of(
    st.binary(max_size=400),
    st.text(alphabet='ab"\t\n\r\0,{}[]:#-= \ud7ff\x85', max_size=200).map(lambda s: s.encode("utf-8")),
    st.lists(st.dictionaries(st.sampled_from(["id", "title", "text"]), st.one_of(st.text(max_size=9), st.none(), st.integers())))
    .map(lambda rows: "\n".join(json.dumps(r) for r in rows).encode()),
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [f"x{s}" for s in READERS if s not in (".tsv.gz", ".jsonl.gz", ".pdf", ".docx")]
)  # never by chance
@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(content=TEXTS)
def test_any_bytes_are_passages_rejections_or_an_input_error(name: str, content: bytes) -> None:
    bounds = Limits(10**6, 10**6, 50, 20, 150)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        message = ""
        try:
            passages, rejected, tally = read(path, bounds)
        except InputError as error:
            message = str(error)
    if message:
        assert name in message
        return
    assert len(rejected) == tally.rejected
    assert len(passages) == tally.passages == len({p.id for p in passages})
    for p in passages:
        assert all(line.strip() == " ".join(line.split()) != "" for line in p.text.split("\n"))
        assert 0 < len(p.text.split()) <= MAX_LISTING_WORDS
        assert not set("\t\r\0") & set(p.id + p.title + p.text)
        (p.id + p.title + p.text).encode("utf-8")
    if name.startswith(("x.tsv", "x.jsonl")):
        assert tally.read == tally.blank + tally.header + tally.rejected + tally.documents


@pytest.mark.parametrize("name", ["long.txt", "long.md"])
def test_text_without_blanks_becomes_passages_of_bounded_length(name: str, write: Write, limits: Limits) -> None:
    passages, rejected, _ = read(write(name, "中" * 5_000 + "\n" + "文" * 100), limits)
    assert not rejected
    assert [len(p.text) for p in passages][:3] == [1500] * 3
    assert sum(len(p.text.replace(" ", "")) for p in passages) == 5_100
    first = "long.txt#1" if name.endswith("txt") else "long.md"
    assert [p.id for p in passages] == [first, *(f"{name}#{i}" for i in range(2, len(passages) + 1))]


def test_words_divided_at_a_line_end_are_joined(write: Write, limits: Limits) -> None:
    text = "It is rec\u2010\n   ognized; soft\u00adly; in 1990\u2010\n1991; well-\nknown."
    (passage,), _, _ = read(write("man.txt", text), limits)
    assert passage.text == "It is recognized; softly; in 1990\u2010 1991; well- known."
