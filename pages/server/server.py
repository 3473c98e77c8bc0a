"""The guard in front of Streamlit's server: requests of other machines, uploads, and security headers.

    app = st.App(__file__, middleware=[*server.middleware(), ...])

While nobody has an account, everybody who opens the app can do everything: so only requests are answered that come from this machine and
address it by a local name.  The address is that of the connection or, behind a proxy on this machine, of X-Forwarded-For; the check of the
name refuses pages of other sites whose name resolves to this machine (DNS rebinding).
"""

from __future__ import annotations

import base64
import hashlib
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.web.server import server_util

from core.errors import AmbiscopeError
from core.serve.addresses import host_of, is_local
from core.settings import Settings
from pages.server.messages import AppConnection
from pages.session import cookie

UPLOADS, METRICS = "_stcore/upload_file/", "_stcore/metrics"
PROXY_HEADERS = (b"x-forwarded-host", b"x-real-ip", b"forwarded")  # besides X-Forwarded-For, which the server itself reads
REFUSAL_HEADERS = {"cache-control": "no-store", "connection": "close"}
CACHE_SECONDS = 2.0  # for the answer whether accounts are in use: a page requests a hundred files
ADVICE = (
    "add a manager with a password first (on this machine: Manage, People), or set AMBISCOPE_OPEN_TO_ALL=1 if everybody who reaches "
    "this address may read, change and delete everything"
)


def from_here(scope: Scope) -> bool:
    """Whether the request comes from this machine, by a local address and for a local name.  False for a connection without addresses."""
    claims = [(name, value.decode("latin-1")) for name, value in scope["headers"] if name in (b"host", *PROXY_HEADERS)]
    ends = [str((scope.get(end) or ("",))[0]) for end in ("client", "server")]
    hosts = [host_of(value) for _, value in claims]
    return [name for name, _ in claims].count(b"host") == 1 and all(map(is_local, [*ends, *hosts]))


def policy(index: str) -> str:
    """Content-Security-Policy for Streamlit's page: nothing is loaded from other hosts, and the only inline scripts are those of `index` (the
    text of index.html) and of the sign-in."""
    inline = (part.partition("</script>")[0] for part in index.split("<script>")[1:])
    scripts = [*inline, cookie.script()]
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' blob: {hashes}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self' data: blob:",
            "media-src 'self' data: blob:",
            "worker-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            "frame-ancestors 'self'",
        )
    )


def _accounts_in_use() -> bool:
    from pages.session import shared

    return shared.servers_store().people.accounts_in_use()


class AppGuard:
    def __init__(self, app: ASGIApp, open_to_all: bool) -> None:
        self.app, self.open_to_all = app, open_to_all
        index = (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
        self.headers = [
            (b"content-security-policy", policy(index).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"x-frame-options", b"SAMEORIGIN"),
            (b"referrer-policy", b"same-origin"),
        ]
        self._check_time, self._has_accounts = -CACHE_SECONDS, False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            request = HTTPConnection(scope)
            if _is_of_another_site(request.headers) or await self._is_closed_to(scope):
                await send({"type": "websocket.close", "code": 1008})
                return
            connection = AppConnection(scope, await run_sync(_has_sign_in, request.cookies))
            await self.app(scope, connection.receiving(receive, send), connection.sending(send))
        elif scope["type"] == "http":
            send = self._with_headers(send)
            if reason := await self._refusal(scope):
                await PlainTextResponse(f"{reason}\n", 403, REFUSAL_HEADERS)(scope, receive, send)
            elif scope["path"] == cookie.address():
                await (await _set_cookie(Request(scope, receive)))(scope, receive, send)
            else:
                await self.app(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _is_closed_to(self, scope: Scope) -> bool:
        """Whether a request comes from another machine, or for another name, while nobody has an account."""
        if self.open_to_all or from_here(scope):
            return False
        if time.monotonic() - self._check_time >= CACHE_SECONDS:
            try:
                self._has_accounts = await run_sync(_accounts_in_use)
            except AmbiscopeError:  # nobody can sign in, and nobody is admitted
                self._has_accounts = False
            self._check_time = time.monotonic()
        return not self._has_accounts

    async def _refusal(self, scope: Scope) -> str:
        """The reason why a request is refused; empty if it isn't."""
        if await self._is_closed_to(scope):
            return f"Ambiscope serves other machines, and host names other than localhost, only when people have accounts: {ADVICE}."
        path: str = scope["path"]
        if path.endswith(METRICS) and not from_here(scope):
            return "These metrics can be read from this machine only."
        if UPLOADS in path and scope["method"] != "OPTIONS":
            from pages.server.admission import is_admitted

            if not await run_sync(is_admitted, path.partition(UPLOADS)[2].partition("/")[0]):
                return "Sign in before you upload a file."
        return ""

    def _with_headers(self, send: Send) -> Send:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self.headers]
            await send(message)

        return send_with_headers


def _is_of_another_site(headers: Headers) -> bool:
    """Whether a page of another site sends the request.  Streamlit refuses it too, but first asks a host of Amazon's for the
    address of this machine, which blocks the server."""
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _has_sign_in(cookies: dict[str, str]) -> bool:
    from pages.server import sign_in_cookie

    try:
        return sign_in_cookie.holder(cookies) is not None
    except AmbiscopeError:
        return False


async def _set_cookie(request: Request) -> Response:
    from pages.server import sign_in_cookie

    try:
        return await sign_in_cookie.answer(request)
    except ClientDisconnect:
        return Response(status_code=400)
    except AmbiscopeError as error:
        return PlainTextResponse(f"{error}\n", 503)


def check(address: str) -> None:
    """Called before the server listens on `address` (empty: everywhere).  Raises SystemExit, with the reason on stderr, for an address that other
    machines reach where nobody has an account and AMBISCOPE_OPEN_TO_ALL is not set; where it is set, prints a warning."""
    if address and is_local(address):
        return
    try:
        open_to_all = bool(Settings.from_env().open_to_all)
        if _accounts_in_use():
            return
    except AmbiscopeError as error:
        sys.exit(f"Ambiscope: {error}")
    place = f"on {address or 'every address of this machine'}, which other machines may reach, and nobody has an account"
    if not open_to_all:
        sys.exit(f"Ambiscope does not listen {place}: {ADVICE}.")
    print(
        f"Ambiscope listens {place}: anyone who reaches it can read, change and delete everything.", file=sys.stderr, flush=True
    )


def middleware() -> list[Any]:
    """The middleware for st.App, made with the server.  Prints where it listens.  Raises SystemExit as `check` does."""
    address = str(st.get_option("server.address") or "")
    check(address)
    # not Streamlit's own words (logger.hideWelcomeMessage), for which it asks a host of Amazon's for the address of this machine
    print(f"Ambiscope: {server_util.get_url(server_util.get_display_address(address or '::'))}", flush=True)
    try:
        open_to_all = bool(Settings.from_env().open_to_all)
    except AmbiscopeError:  # a page shows it
        open_to_all = False
    return [Middleware(AppGuard, open_to_all=open_to_all)]
