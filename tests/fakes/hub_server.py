"""A Hugging Face hub on this machine, as far as its client asks it for models: repositories, commits, files, and who may see them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from loopback_endpoint import http_server


class FakeHub:
    """`repos`: name -> branch or tag -> commit; `commits`: commit -> files.  `private` ones are shown to `token` only, `gated` ones to nobody."""

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, str]] = {}
        self.commits: dict[str, dict[str, bytes]] = {}
        self.private: set[str] = set()
        self.gated: set[str] = set()
        self.token = "hf_secret_of_the_tests"
        self.asked: list[str] = []
        self.url = ""

    def commit(self, repo: str, files: dict[str, bytes], branch: str = "main") -> str:
        refs = self.repos.setdefault(repo, {})
        contents = {**self.commits.get(refs.get(branch, ""), {}), **files}
        name = hashlib.sha1(repr((repo, branch, sorted(contents.items()), len(self.commits))).encode()).hexdigest()
        self.commits[name] = contents
        refs[branch] = name
        return name

    def files(self, repo: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        commit = self.repos[repo].get(revision, revision)
        return (commit, self.commits[commit]) if commit in self.commits else None


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None: ...

    def _answer(self, code: int, body: bytes | dict[str, Any] | list[Any] = b"", **headers: str) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name, value in {"Content-Length": str(len(raw)), "Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def _known(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {self.hub.token}"

    def _may_read(self, repo: str) -> bool:
        if repo in self.hub.gated:
            self._answer(403, {"error": "gated"}, X_Error_Code="GatedRepo")
        elif repo not in self.hub.repos or (repo in self.hub.private and not self._known()):
            self._answer(404, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
        else:
            return True
        return False

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.hub.asked.append(f"{self.command} {self.path}")
        if match := re.fullmatch(r"/api/models/([^/]+/[^/?]+)(?:/(revision|tree)/([^/?]+))?(?:\?.*)?", self.path):
            repo, what, revision = match[1], match[2], match[3] or "main"
            if not self._may_read(repo):
                return
            stored = self.hub.files(repo, revision)
            if stored is None:
                self._answer(404, {"error": "Revision not found"}, X_Error_Code="RevisionNotFound")
                return
            commit, files = stored
            if what == "tree":
                self._answer(200, [{"type": "file", "path": n, "size": len(c), "oid": _oid(c)} for n, c in files.items()])
            else:
                siblings = [{"rfilename": n} for n in files]
                self._answer(200, {"_id": "1", "id": repo, "modelId": repo, "sha": commit, "siblings": siblings, "tags": []})
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.path):
            if not self._may_read(match[1]):
                return
            commit, files = self.hub.files(match[1], match[2]) or ("", {})
            if match[3] not in files:
                self._answer(404, {"error": "Entry not found"}, X_Error_Code="EntryNotFound")
                return
            content = files[match[3]]
            self._answer(200, content, X_Repo_Commit=commit, ETag=f'"{_oid(content)}"', Content_Type="application/octet-stream")
        else:
            self._answer(404, {"error": "not found"})


def _oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@contextmanager
def serving() -> Iterator[FakeHub]:
    hub = FakeHub()
    with http_server(type("Handler", (_Handler,), {"hub": hub})) as hub.url:
        yield hub


def use(hub: FakeHub, patch: pytest.MonkeyPatch, cache: Any, token: str | None = None) -> None:
    """Lets the client of this process ask this hub, with an empty cache."""
    from huggingface_hub import constants

    from core.models.loading.hub import fetch

    for name, value in {"ENDPOINT": hub.url, "HF_HUB_OFFLINE": False, "HF_HUB_CACHE": str(cache)}.items():
        patch.setattr(constants, name, value)
    patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}")
    patch.setattr(constants, "HF_TOKEN_PATH", str(cache) + "-token")
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        patch.delenv(name, raising=False)
    if token:
        patch.setenv("HF_TOKEN", token)
    fetch.cache_clear()
