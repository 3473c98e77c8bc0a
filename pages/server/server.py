"""The guard in front of Streamlit's server: requests of other machines, uploads, and security headers.

    app = st.App(__file__, middleware=[*server.middleware(), ...])

While nobody has an account, everybody who opens the app can do everything: so only requests are answered that come from this machine and
address it by a local name.  The address is that of the connection or, behind a proxy on this machine, of X-Forwarded-For; the check of the
name refuses pages of other sites whose name resolves to this machine (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import socket
import sys
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import streamlit as st
import uvicorn
from anyio.to_thread import run_sync
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import net_util, runtime
from streamlit.elements.widgets.multiselect import MultiSelectSerde
from streamlit.elements.widgets.radio import RadioSerde
from streamlit.elements.widgets.selectbox import SelectboxSerde
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.state.common import WidgetMetadata, unpack_widget_state_value
from streamlit.runtime.state.session_state import Serialized, Value, WStates

from core.errors import AmbiscopeError
from core.serve import connections
from core.serve.addresses import host_of, is_local
from core.serve.connections import ALLOW
from core.settings import Settings
from pages.server.admitted import ADMITTED
from pages.session import cookie

UPLOADS, METRICS = "_stcore/upload_file/", "_stcore/metrics"
PROXY_HEADERS = (b"x-forwarded-host", b"x-real-ip", b"forwarded")  # besides X-Forwarded-For, which the server itself reads
MESSAGES = ("rerun_script", "stop_script", "app_heartbeat", "file_urls_request")  # of Streamlit's protocol, that are accepted
OPERATIONS = ("deferred_file", "dataframe_chunk")  # downloads made on request, and rows of long tables
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
    scripts = [*re.findall(r"<script>(.*?)</script>", index, re.DOTALL), cookie.script()]
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


_connection: ContextVar[AppConnection | None] = ContextVar("connection", default=None)


class AppConnection:
    """A websocket, and the session that Streamlit has given it.

    A session that is not admitted may send small messages only, and is closed with its connection: Streamlit keeps a session, with three file
    descriptors, for a tab that may come back (server.disconnectedSessionTTL), and may forget it without shutting it down.
    """

    def __init__(self, scope: Scope, has_sign_in: bool) -> None:
        self.session, self._has_sign_in = "", has_sign_in  # by a cookie: its first message has the values of all fields
        self._allow = scope.get("state", {}).get(ALLOW, lambda large: None)

    def _bound(self) -> None:
        self._allow(self._has_sign_in or self.session in ADMITTED)

    def receiving(self, receive: Receive, send: Send) -> Receive:
        """Only messages that pages use; an invalid message ends the connection."""

        async def receive_useful() -> Message:
            while True:
                self._bound()
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                self._has_sign_in = False
                try:
                    if _is_useful(message.get("bytes")):
                        return message
                except ValueError:
                    await send({"type": "websocket.close", "code": 1002})
                    return {"type": "websocket.disconnect", "code": 1002}

        return receive_useful

    def sending(self, send: Send) -> Send:
        async def send_bounded(message: Message) -> None:
            self._bound()  # a run may have signed the person in or out
            await send(message)

        return send_bounded

    def close(self) -> None:
        if not self.session or not runtime.exists():
            return
        if self.session in ADMITTED:
            seconds = float(st.get_option("server.disconnectedSessionTTL")) / 2  # well before Streamlit forgets it
            _timers[self.session] = asyncio.get_running_loop().call_later(seconds, _forget, self.session)
        else:
            _forget(self.session)


_timers: dict[str, asyncio.TimerHandle] = {}  # of admitted sessions whose tab was closed


def _forget(session: str) -> None:
    """Closes a session, unless its tab came back."""
    _timers.pop(session, None)
    if runtime.exists() and not runtime.get_instance().is_active_session(session):
        runtime.get_instance().close_session(session)
        ADMITTED.pop(session, None)


def know_sessions() -> None:
    """Gives each `AppConnection` its session when Streamlit makes it, in the connection's task."""
    connect = runtime.Runtime.connect_session

    def connect_session(self: runtime.Runtime, *args: Any, **kw: Any) -> str:
        session = connect(self, *args, **kw)
        if (timer := _timers.pop(session, None)) is not None:
            timer.cancel()
        if (connection := _connection.get()) is not None:
            connection.session = session
        return session

    runtime.Runtime.connect_session = connect_session  # type: ignore[method-assign]


def keep_to_values() -> None:
    """Ignores values of widgets that no browser sends (of another type, not JSON, not among the options).  Streamlit raises for some of
    them, and passes others to the page."""
    set_value, get_value = WStates.set_widget_from_proto, WStates.__getitem__

    def set_valid(self: WStates, state: WidgetState) -> None:
        metadata = self.widget_metadata.get(state.id)
        if metadata is None or _is_valid(state, metadata):
            set_value(self, state)

    def get_valid(self: WStates, widget: str) -> Any:
        state, metadata = self.states.get(widget), self.widget_metadata.get(widget)
        if isinstance(state, Serialized) and metadata is not None and not _is_valid(state.value, metadata):
            # sent before the widget was drawn; replaced and not deleted, as a caller may be iterating over them
            self.states[widget] = Value(metadata.deserializer(None))
        return get_value(self, widget)

    WStates.set_widget_from_proto, WStates.__getitem__ = set_valid, get_valid  # type: ignore[method-assign,assignment]


def _is_valid(state: WidgetState, metadata: WidgetMetadata[Any]) -> bool:
    kind = state.WhichOneof("value")
    if kind is None:  # cleared
        return True
    widget = getattr(metadata.deserializer, "__self__", None)
    # a browser sends whole numbers of a number field as integers, though the field is declared "double_value"
    if kind != metadata.value_type and (kind, metadata.value_type) != ("int_value", "double_value"):
        return False
    # these accept unknown options; no page allows new ones
    if isinstance(widget, SelectboxSerde | RadioSerde) and state.string_value not in widget.formatted_option_to_option_index:
        return False
    if isinstance(widget, MultiSelectSerde) and not set(state.string_array_value.data) <= set(widget.formatted_options):
        return False
    try:
        metadata.deserializer(unpack_widget_state_value(state))
    except Exception:  # of any kind
        return False
    return True


def bound_connections() -> None:
    """Applies the bounds of core.serve.connections to uvicorn, in whatever way Streamlit starts it."""
    startup, limits = uvicorn.Server.startup, connections.limits()

    async def bounded_startup(self: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
        connections.bound(self.config, limits)
        await startup(self, sockets)

    uvicorn.Server.startup = bounded_startup  # type: ignore[method-assign]


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
            if await self._is_closed_to(scope):
                await send({"type": "websocket.close", "code": 1008})
                return
            connection = AppConnection(scope, await run_sync(_has_sign_in, HTTPConnection(scope).cookies))
            _connection.set(connection)
            try:
                await self.app(scope, connection.receiving(receive, send), connection.sending(send))
            finally:
                connection.close()
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
        """Whether the request comes from another machine, or for another name, while nobody has an account."""
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
        """The reason for which a request is refused; empty where it is not."""
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


def _is_useful(data: bytes | None) -> bool:
    """Other messages clear the caches of everybody, watch files, read the repository or write Streamlit's own files beside the app.
    Raises ValueError for what is not a message of Streamlit's protocol."""
    message = BackMsg()
    try:
        message.ParseFromString(data)
    except Exception as error:  # also for a text message, which has no bytes
        raise ValueError("not a message of Streamlit's protocol") from error
    kind = message.WhichOneof("type")
    if kind == "backend_operation_request":
        return message.backend_operation_request.WhichOneof("payload") in OPERATIONS
    return kind in MESSAGES


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


def disable_ip_lookup() -> None:
    """Streamlit asks a host of Amazon's for the address of this machine: to print it where it listens everywhere, and whenever a page of another
    origin connects, which blocks the server.  No setting prevents it."""
    net_util.get_external_ip = lambda: None


def middleware() -> list[Any]:
    """For st.App, when the server is made.  Raises SystemExit as `check` does."""
    disable_ip_lookup()
    know_sessions()
    keep_to_values()
    bound_connections()
    check(str(st.get_option("server.address") or ""))
    try:
        open_to_all = bool(Settings.from_env().open_to_all)
    except AmbiscopeError:  # a page shows it
        open_to_all = False
    return [Middleware(AppGuard, open_to_all=open_to_all)]
