"""What stands before Streamlit's server: who may come from another machine, who may send a file, and what a browser is told to keep to.

    app = st.App(__file__, middleware=[*server.middleware(), ...])

As long as nobody has an account, whoever opens the app can do everything: then requests are answered that come from this machine and ask for
it by a name of its own.  The address of the connection counts, and what a proxy on this machine says of whom it asks for (X-Forwarded-For);
the name keeps out a page elsewhere whose name leads here (DNS rebinding).
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
PROXIES_SAY = (b"x-forwarded-host", b"x-real-ip", b"forwarded")  # besides X-Forwarded-For, which the server itself reads
MESSAGES = (
    "rerun_script",
    "stop_script",
    "app_heartbeat",
    "file_urls_request",
)  # of Streamlit's protocol, those that are let through
OPERATIONS = ("deferred_file", "dataframe_chunk")  # downloads that are made when they are asked for, and rows of long tables
ASK_AGAIN = 2.0  # seconds for which an answer about accounts holds: a page asks for a hundred files
HOW = (
    "add a manager with a password first (on this machine: Manage, People), or set AMBISCOPE_OPEN_TO_ALL=1 if everybody who reaches "
    "this address may read, change and delete everything"
)


def from_here(scope: Scope) -> bool:
    """The request comes from this machine, over an address of it alone, to a name of it.  A connection without addresses does not."""
    claims = [(name, value.decode("latin-1")) for name, value in scope["headers"] if name in (b"host", *PROXIES_SAY)]
    ends = [str((scope.get(end) or ("",))[0]) for end in ("client", "server")]
    hosts = [host_of(value) for _, value in claims]
    return [name for name, _ in claims].count(b"host") == 1 and all(map(is_local, [*ends, *hosts]))


def policy(index: str) -> str:
    """Content-Security-Policy for Streamlit's page: nothing is loaded from elsewhere, and of scripts in the page those of the file `index` run, and that of a
    sign-in."""
    scripts = [*re.findall(r"<script>(.*?)</script>", index, re.DOTALL), cookie.script()]
    own = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' blob: {own}".rstrip(),
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

    Who is not let in sends small messages only, and leaves nothing behind: Streamlit keeps a session, with three descriptors, for a tab
    that may come back (server.disconnectedSessionTTL), and may forget it without shutting it down.
    """

    def __init__(self, scope: Scope, comes_back: bool) -> None:
        self.session, self._comes_back = "", comes_back  # with a cookie that stands: at first it sends all that its fields hold
        self._allow = scope.get("state", {}).get(ALLOW, lambda large: None)

    def _bound(self) -> None:
        self._allow(self._comes_back or self.session in ADMITTED)

    def receiving(self, receive: Receive, send: Send) -> Receive:
        """The messages that a page has a use for, and no sign-in stands before; what is no message of Streamlit's ends the connection."""

        async def received() -> Message:
            while True:
                self._bound()
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                self._comes_back = False
                try:
                    useful = _is_of_use(message.get("bytes"))
                except ValueError:
                    await send({"type": "websocket.close", "code": 1002})
                    return {"type": "websocket.disconnect", "code": 1002}
                if useful:
                    return message

        return received

    def sending(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            self._bound()  # a run may have signed the person in or out
            await send(message)

        return sent

    def ended(self) -> None:
        if not self.session or not runtime.exists():
            return
        if self.session in ADMITTED:
            wait = float(st.get_option("server.disconnectedSessionTTL")) / 2  # well before Streamlit forgets it
            _leaving[self.session] = asyncio.get_running_loop().call_later(wait, _forget, self.session)
        else:
            _forget(self.session)


_leaving: dict[str, asyncio.TimerHandle] = {}  # sessions whose tab is gone


def _forget(session: str) -> None:
    """Unless its tab came back."""
    _leaving.pop(session, None)
    if runtime.exists() and not runtime.get_instance().is_active_session(session):
        runtime.get_instance().close_session(session)
        ADMITTED.pop(session, None)


def know_sessions() -> None:
    """Each `AppConnection` hears of its session when Streamlit makes it, in the connection's task."""
    connect = runtime.Runtime.connect_session

    def connect_session(self: runtime.Runtime, *args: Any, **kw: Any) -> str:
        session = connect(self, *args, **kw)
        if (timer := _leaving.pop(session, None)) is not None:
            timer.cancel()
        if (connection := _connection.get()) is not None:
            connection.session = session
        return session

    runtime.Runtime.connect_session = connect_session  # type: ignore[method-assign]


def keep_to_values() -> None:
    """A widget's value that no browser sends (of another type, no JSON, out of its options) counts as not sent.  Streamlit raises for some of
    them, and hands others to the page."""
    take, value_of = WStates.set_widget_from_proto, WStates.__getitem__

    def taken(self: WStates, state: WidgetState) -> None:
        metadata = self.widget_metadata.get(state.id)
        if metadata is None or _is_valid(state, metadata):
            take(self, state)

    def checked(self: WStates, widget: str) -> Any:
        state, metadata = self.states.get(widget), self.widget_metadata.get(widget)
        if isinstance(state, Serialized) and metadata is not None and not _is_valid(state.value, metadata):
            # sent before the widget was drawn; in its place, as a caller may be going through all of them
            self.states[widget] = Value(metadata.deserializer(None))
        return value_of(self, widget)

    WStates.set_widget_from_proto, WStates.__getitem__ = taken, checked  # type: ignore[method-assign,assignment]


def _is_valid(state: WidgetState, metadata: WidgetMetadata[Any]) -> bool:
    kind = state.WhichOneof("value")
    if kind is None:  # cleared
        return True
    widget = getattr(metadata.deserializer, "__self__", None)
    # a browser sends whole numbers of a number field as integers, though the field is declared "double_value"
    if kind != metadata.value_type and (kind, metadata.value_type) != ("int_value", "double_value"):
        return False
    # these hand on options that they do not know; no page takes new ones
    if isinstance(widget, SelectboxSerde | RadioSerde) and state.string_value not in widget.formatted_option_to_option_index:
        return False
    if isinstance(widget, MultiSelectSerde) and not set(state.string_array_value.data) <= set(widget.formatted_options):
        return False
    try:
        metadata.deserializer(unpack_widget_state_value(state))
    except Exception:  # whatever it makes of it
        return False
    return True


def bound_connections() -> None:
    """Whichever way Streamlit starts uvicorn, its configuration gets the bounds of core.serve.connections."""
    startup, limits = uvicorn.Server.startup, connections.limits()

    async def bounded(self: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
        connections.bound(self.config, limits)
        await startup(self, sockets)

    uvicorn.Server.startup = bounded  # type: ignore[method-assign]


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
        self._asked, self._closed = -ASK_AGAIN, False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            if await self._shut(scope):
                await send({"type": "websocket.close", "code": 1008})
                return
            connection = AppConnection(scope, await self._comes_back(scope))
            _connection.set(connection)
            try:
                await self.app(scope, connection.receiving(receive, send), connection.sending(send))
            finally:
                connection.ended()
        elif scope["type"] == "http":
            send = self._with_headers(send)
            if why := await self._why_not(scope):
                await _refuse(send, why)
            elif scope["path"] == cookie.address():
                await (await _set_cookie(Request(scope, receive)))(scope, receive, send)
            else:
                await self.app(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _comes_back(self, scope: Scope) -> bool:
        from anyio.to_thread import run_sync

        return await run_sync(_has_a_sign_in, HTTPConnection(scope).cookies)

    async def _shut(self, scope: Scope) -> bool:
        if self.open_to_all or from_here(scope):
            return False
        from anyio.to_thread import run_sync

        if time.monotonic() - self._asked >= ASK_AGAIN:
            try:
                self._closed = await run_sync(_accounts_in_use)
            except AmbiscopeError:  # nobody can sign in, and nobody is let in
                self._closed = False
            self._asked = time.monotonic()
        return not self._closed

    async def _why_not(self, scope: Scope) -> str:
        """Why a request is refused; empty where it is not."""
        if await self._shut(scope):
            return (
                f"Ambiscope serves other machines, and host names other than localhost, only when people have accounts: {HOW}."
            )
        path: str = scope["path"]
        if path.endswith(METRICS) and not from_here(scope):
            return "These metrics can be read from this machine only."
        if UPLOADS in path and scope["method"] != "OPTIONS":
            from anyio.to_thread import run_sync

            from pages.server.admission import session_is_let_in

            if not await run_sync(session_is_let_in, path.partition(UPLOADS)[2].partition("/")[0]):
                return "Sign in before you upload a file."
        return ""

    def _with_headers(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self.headers]
            await send(message)

        return sent


def _has_a_sign_in(cookies: dict[str, str]) -> bool:
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


async def _refuse(send: Send, why: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": f"{why}\n".encode()})


def _is_of_use(data: bytes | None) -> bool:
    """Others empty the caches of everybody, watch the files, tell of the repository or write files of Streamlit's own beside the app.
    Raises ValueError for what is no message of its protocol."""
    message = BackMsg()
    try:
        message.ParseFromString(data)
    except Exception as error:  # also for text, which is no bytes
        raise ValueError("no message of Streamlit's protocol") from error
    kind = message.WhichOneof("type")
    if kind == "backend_operation_request":
        return message.backend_operation_request.WhichOneof("payload") in OPERATIONS
    return kind in MESSAGES


def check(address: str) -> None:
    """Before the server listens on `address` (empty: everywhere).  Raises SystemExit, with the reason on stderr, for an address that other machines
    reach where nobody has an account and AMBISCOPE_OPEN_TO_ALL is not set; where it is, warns of it."""
    if address and is_local(address):
        return
    try:
        allowed = bool(Settings.from_env().open_to_all)
        if _accounts_in_use():
            return
    except AmbiscopeError as error:
        sys.exit(f"Ambiscope: {error}")
    where = f"on {address or 'every address of this machine'}, which other machines may reach, and nobody has an account"
    if not allowed:
        sys.exit(f"Ambiscope does not listen {where}: {HOW}.")
    print(f"Ambiscope listens {where}: whoever reaches it can read, change and delete everything.", file=sys.stderr, flush=True)


def ask_nobody_outside() -> None:
    """Streamlit asks a host of Amazon's for the address of this machine: to print it where it listens everywhere, and whenever a page of another
    origin connects, while everybody waits.  No setting stops it."""
    net_util.get_external_ip = lambda: None


def middleware() -> list[Any]:
    """For st.App, when the server is made.  Raises SystemExit as `check` does."""
    ask_nobody_outside()
    know_sessions()
    keep_to_values()
    bound_connections()
    check(str(st.get_option("server.address") or ""))
    try:
        open_to_all = bool(Settings.from_env().open_to_all)
    except AmbiscopeError:  # a page says it
        open_to_all = False
    return [Middleware(AppGuard, open_to_all=open_to_all)]
