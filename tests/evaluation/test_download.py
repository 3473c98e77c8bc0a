"""Downloads against a loopback server: what a connection, a server, a disk and an author can do wrong."""

from __future__ import annotations

import hashlib
import io
import shutil
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from filelock import FileLock
from loopback_endpoint import http_server

from core import disk
from core.datasets import load
from core.datasets.catalogue import DataSet, RemoteFile
from core.datasets.download import fetch, obtain, unpack
from core.errors import ConflictError, DownloadError, InputError, StorageError

Answer = Callable[[Any], None]  # of the server, by the handler of a request
BODY = bytes(range(256)) * 400  # 102,400 bytes
SHA = hashlib.sha256(BODY).hexdigest()


class Site:
    """A server whose replies follow `plan`, one a request; the last one stays."""

    def __init__(self) -> None:
        self.plan: list[Answer] = [send()]
        self.requests: list[dict[str, str]] = []
        self.url = ""


def send(
    body: bytes = BODY, *, cut: int | None = None, etag: str = '"v1"', kind: str = "application/zip", ranges: bool = True
) -> Answer:
    """The body, or from where a range asks; `cut`: the connection ends after so many bytes."""

    def answer(handler: Any) -> None:
        is_range = ranges and handler.headers.get("If-Range") == etag
        start = int(handler.headers["Range"].removeprefix("bytes=").rstrip("-")) if is_range else 0
        if start >= len(body) and start:
            return status(416)(handler)
        handler.send_response(206 if start else 200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body) - start))
        if etag:
            handler.send_header("ETag", etag)
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        handler.end_headers()
        handler.wfile.write(body[start : len(body) if cut is None else start + cut])
        handler.close_connection = True

    return answer


def status(code: int, **headers: str) -> Answer:
    def answer(handler: Any) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.requests.append({k.lower(): v for k, v in self.headers.items()} | {"path": self.path})
            (site.plan.pop(0) if len(site.plan) > 1 else site.plan[0])(self)

        def log_message(self, *_: Any) -> None: ...

    with http_server(Handler) as address:
        site.url = f"{address}/file"
        yield site


def get(site: Site, folder: Path, **more: Any) -> str:
    return fetch(site.url, folder / "file", pause=0.0, **more)


def test_a_download_with_its_size_and_checksum(site: Site, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    digest = get(site, tmp_path / "new", sha256=SHA, progress=lambda *p: seen.append(p))
    assert (digest, (tmp_path / "new" / "file").read_bytes()) == (SHA, BODY)
    assert seen[0] == (0, len(BODY))  # the size is known before the first byte
    assert seen[-1] == (len(BODY), len(BODY))
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["file"]


CUT = send(cut=20_000)
RESUMED = [None, "bytes=20000-"]


@pytest.mark.parametrize(
    ("plan", "field", "values"),
    [
        pytest.param(
            [send(cut=30_000), send(cut=10_000), send()], "range", [None, "bytes=30000-", "bytes=40000-"], id="broken twice"
        ),
        pytest.param([CUT, send(ranges=False)], "range", RESUMED, id="no ranges"),
        pytest.param([CUT, send(etag="")], "range", RESUMED, id="no validator any more"),
        pytest.param([CUT, status(206), send()], "range", [*RESUMED, None], id="not the part that was asked for"),
        pytest.param([send(cut=20_000, etag=""), send(etag="")], "range", [None, None], id="no validator"),
        pytest.param([status(302, Location="/elsewhere"), send()], "path", ["/file", "/elsewhere"], id="redirected"),
        pytest.param([status(503), status(429), send()], "path", ["/file"] * 3, id="busy"),
    ],
)
def test_a_download_recovers(plan: list[Answer], field: str, values: list[str | None], site: Site, tmp_path: Path) -> None:
    site.plan = [*plan]
    assert get(site, tmp_path, sha256=SHA) == SHA
    assert [r.get(field) for r in site.requests] == values


def test_what_came_is_kept_for_the_next_time(site: Site, tmp_path: Path) -> None:
    site.plan = [CUT, send(cut=0)]
    with pytest.raises(DownloadError, match=r"20,000 bytes were kept: run the same command again"):
        get(site, tmp_path)
    assert not (tmp_path / "file").exists()
    site.plan = [send()]
    assert get(site, tmp_path, sha256=SHA) == SHA
    assert site.requests[-1]["range"] == "bytes=20000-"


def test_a_part_that_is_longer_than_the_file_is_replaced(site: Site, tmp_path: Path) -> None:
    site.plan = [CUT, send(cut=0)]
    with pytest.raises(DownloadError):
        get(site, tmp_path)
    (tmp_path / "file.part").write_bytes(BODY + b"more")
    site.plan = [send()]
    assert get(site, tmp_path, sha256=SHA) == SHA


def test_a_wrong_checksum_keeps_nothing_and_harms_nothing(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("the old one")
    with pytest.raises(DownloadError, match=f"SHA-256 is {SHA}, expected was 00"):
        get(site, tmp_path, sha256="00")
    assert (tmp_path / "file").read_text() == "the old one"
    assert not (tmp_path / "file.part").exists()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (send(b"<html>Sign in</html>", kind="text/html"), "a web page instead of data"),
        (send(b"\n<!DOCTYPE html><p>x"), "a web page instead of data"),
        (send(b""), "it is empty"),
        (status(404), "404"),
    ],
    ids=["page by its type", "page by its content", "empty", "not there"],
)
def test_what_is_no_data_is_refused_at_once_and_not_kept(answer: Answer, message: str, site: Site, tmp_path: Path) -> None:
    site.plan = [answer]
    with pytest.raises(DownloadError, match=message):
        get(site, tmp_path)
    assert len(site.requests) == 1  # no use to try again
    assert {p.name for p in tmp_path.iterdir()} <= {"file.part.json"}


def test_no_redirect_leaves_encryption_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = httpx.MockTransport(lambda request: httpx.Response(302, headers={"Location": "http://example.org/a"}))
    client = httpx.Client
    monkeypatch.setattr(httpx, "Client", lambda **options: client(transport=moved, **options))
    with pytest.raises(DownloadError, match="unencrypted"):
        fetch("https://example.org/a", tmp_path / "file")


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="the connection broke"):
        fetch("http://127.0.0.1:9/file", tmp_path / "file", pause=0.0)
    with pytest.raises(InputError, match="not an http"):
        fetch("file:///etc/passwd", tmp_path / "file")


def test_a_full_disk_is_seen_before_the_first_byte(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: real._replace(free=1000))
    with pytest.raises(StorageError, match=r"102\.4 kB are needed and 1\.0 kB are free in"):
        get(site, tmp_path)
    assert not (tmp_path / "file").exists()


def test_a_disk_that_fills_up_on_the_way(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "open", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(StorageError, match="No space left"):
        get(site, tmp_path)


def archive(**members: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as contents:
        for name, text in members.items():
            contents.writestr(f"data/{name}.json", text)
    return out.getvalue()


QUESTIONS = '[{"id": "a", "question": "Who?", "annotations": [{"type": "singleAnswer", "answer": ["x"]}]}]'


def small(site: Site) -> DataSet:
    file = RemoteFile(site.url, "small.zip", ("dev.json", "train.json"))
    return DataSet("small", "two files", "ambignq", "CC0", "nobody", site.url, (file,))


def test_a_data_set_is_unpacked_noted_and_not_downloaded_twice(site: Site, tmp_path: Path) -> None:
    site.plan = [send(archive(dev=QUESTIONS, train=QUESTIONS, other="x"))]
    progress: list[tuple[str, int, int | None]] = []
    paths = obtain(small(site), tmp_path, progress=lambda *p: progress.append(p), pause=0.0)
    assert [p.name for p in paths] == ["dev.json", "train.json"]
    assert [q.id for q in load(paths[0])] == ["a"]
    assert progress[0][0] == site.url
    folder = tmp_path / "datasets" / "small"
    assert {p.name for p in folder.iterdir()} == {".lock", "dev.json", "train.json", "manifest.json"}
    obtain(small(site), tmp_path, pause=0.0)
    assert len(site.requests) == 1
    site.plan = [send(archive(dev="changed", train=QUESTIONS))]  # not what was downloaded first
    with pytest.raises(DownloadError, match="SHA-256"):
        obtain(small(site), tmp_path, again=True, pause=0.0)
    assert paths[0].read_text() == QUESTIONS


def test_an_archive_without_its_member_or_damaged(site: Site, tmp_path: Path) -> None:
    site.plan = [send(archive(dev=QUESTIONS))]
    with pytest.raises(DownloadError, match=r"has no 'train\.json'"):
        obtain(small(site), tmp_path, pause=0.0)
    broken = tmp_path / "x.zip"
    broken.write_bytes(archive(dev=QUESTIONS)[:-30])
    with pytest.raises(DownloadError, match="damaged"):
        unpack(broken, ["dev.json"], tmp_path)
    assert not broken.exists()


def test_two_downloads_of_one_set_at_once(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "datasets" / "small"
    folder.mkdir(parents=True)
    with FileLock(folder / ".lock"), pytest.raises(ConflictError, match="another process"):
        obtain(small(site), tmp_path)
