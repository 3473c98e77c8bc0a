"""Hostile uploads: names that want to leave the folder, contents that want all memory, time or disk.  What an upload may do is become a
corpus or a question file, or be refused in one line; the next upload works as if nothing had been."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as some
from page_helpers import Open, texts, upload

from core.settings import Settings
from pages.corpora import builds
from pages.evaluate.start_form import KINDS
from pages.session import shared
from pages.session.uploads import safe_names

pytestmark = pytest.mark.usefixtures("light")
STEMS = (
    *("../../../evil", "..\\..\\evil", "/etc/cron.d/evil", "C:\\Windows\\evil", "file:///etc/passwd", "%2e%2e%2fevil"),  # paths
    *("evil\n\r\t", "..", ".", "", " ", "-rf", "~root", "$(id)", "`id`", "<img src=x onerror=window.hacked=1>"),
    *("CON", "nul", "Aux.x", "COM1"),  # devices of Windows
    *("x" * 300, "ü" * 200, "\U00020000" * 80, "\u202egpj", "e\u0301vil\u200b", "\uff0e\uff0e\uff0fevil"),
    *("names", "report", ".building-small"),  # of the app itself: names.json is beside the files
)
PLAIN = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
DEVICES = {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(1, 10))}


def outside(home: Path) -> set[Path]:
    return {p for p in home.parent.rglob("*") if home not in p.parents and p != home}


@profile(max_examples=50)
@given(
    some.lists(some.one_of(some.sampled_from(STEMS), some.text(max_size=50)), min_size=1, max_size=5),
    some.sampled_from([".tsv", ".TXT", ".jsonl.gz"]),
)
def test_any_name_becomes_one_that_is_safe_everywhere(stems: list[str], suffix: str) -> None:
    uploaded = [stem + suffix for stem in stems]
    originals = safe_names(uploaded)
    assert list(originals.values()) == uploaded
    assert len({name.lower() for name in originals}) == len(originals)
    for name in originals:
        assert set(name) <= PLAIN, name
        assert len(name) <= 64
        assert name.split(".")[0].lower() not in DEVICES
        assert name != builds.NAMES_FILE
        assert not name.startswith(".")
    assert safe_names(uploaded) == originals


def flate(content: bytes) -> bytes:
    packed = zlib.compress(content, 9)
    return b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(packed), packed)


def pdf(*objects: bytes) -> bytes:
    """A PDF with these objects, 1 the catalogue."""
    out, places = io.BytesIO(b"%PDF-1.7\n"), []
    out.seek(0, io.SEEK_END)
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%b\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % place for place in places)
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start))
    return out.getvalue()


CATALOGUE, PAGES, PAGE = (
    b"<< /Type /Catalog /Pages 2 0 R >>",
    b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /MediaBox [0 0 9 9] >>",
)


def archive(name: str, body: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, body)
    return out.getvalue()


HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip bomb of one line": ("bomb.jsonl.gz", lambda: gzip.compress(b'{"text": "' + b"a" * 45_000_000, 9)),
    "gzip within gzip": ("twice.tsv.gz", lambda: gzip.compress(gzip.compress(b"a" * 30_000_000))),
    "many gzip members": ("members.tsv.gz", lambda: gzip.compress(b"") * 200_000),
    "zip as text": ("zip.txt", lambda: archive("../../evil.txt", b"a" * 30_000_000)),
    "deep objects": ("deep.jsonl", lambda: b'{"a":' * 200_000),
    "huge number": ("number.jsonl", lambda: b'{"text": "x", "id": ' + b"9" * 100_000 + b"}"),
    "headings alone": ("many.md", lambda: b"# a\n" * 150_000),
    "PDF: a page of 70 MB": ("bomb.pdf", lambda: pdf(CATALOGUE, PAGES, PAGE, flate(b"(a) Tj " * 10_000_000))),
    "PDF: bomb in a bomb": ("twice.pdf", lambda: pdf(CATALOGUE, PAGES, PAGE, flate(zlib.compress(b"0" * 50_000_000)))),
    "PDF: a milliard pages": ("many.pdf", lambda: pdf(CATALOGUE, b"<< /Type /Pages /Kids [] /Count 1000000000 >>")),
    "PDF: deep array": ("deep.pdf", lambda: pdf(b"[" * 100_000)),
    "PDF: names a file": (
        "file.pdf",
        lambda: pdf(CATALOGUE, PAGES, PAGE, b"<< /Length 0 /F (/etc/passwd) /FFilter /None >>\nstream\n\nendstream"),
    ),
    "empty": ("empty.txt", lambda: b""),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_content_is_passages_or_one_line_of_refusal(
    open_app: Open, settings: Settings, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setenv("AMBISCOPE_MAX_UPLOAD_MB", "4")
    shared.settings.clear()
    name, make = HOSTILE[what]
    app = open_app("corpora")
    around = outside(settings.home)
    app = upload(app, "hostile", (name, make()))
    assert not app.exception
    shown = texts(app)
    assert "An unexpected error occurred" not in shown
    assert "Corpus hostile is ready" in shown or app.error
    for error in app.error:
        assert "\n" not in error.value
        assert "/etc/passwd" not in error.value
    assert "root:" not in shown
    assert outside(settings.home) == around
    assert not list((settings.home / "uploads").glob("*/*.gz"))
    app = upload(open_app("corpora"), "sound", ("fine.txt", b"Some words of a text."))
    assert "Corpus sound is ready" in texts(app)


def test_corpus_files_stay_in_their_folder_whatever_their_names(open_app: Open, settings: Settings) -> None:
    app = open_app("corpora")
    around = outside(settings.home)
    app = upload(app, "named", *((f"{stem}.txt", f"Words of text {n}.".encode()) for n, stem in enumerate(STEMS)))
    assert not app.exception
    assert f"Corpus named is ready: {len(STEMS)} passages" in texts(app)
    assert outside(settings.home) == around


def test_a_packed_question_file_keeps_both_suffixes() -> None:
    assert list(safe_names(["ü/../x.json.gz", "y.GZ"], KINDS)) == ["x.json.gz", "y.gz"]
