"""Visitors without a browser: one who speaks Streamlit's protocol, and a reverse proxy that puts the app below a path."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect
from websockets.typing import Subprotocol


class Stranger:
    """An open tab: a session that has run the app once, and what it can send besides."""

    def __init__(self, address: str, socket: Any, cookies: dict[str, str], tls: ssl.SSLContext | None = None) -> None:
        self.address, self.socket, self.cookies, self.tls = address, socket, cookies, tls
        self.session = ""
        self.words: list[str] = []  # of the last run
        self.ids: dict[str, str] = {}  # of all fields and buttons that were drawn, by key

    def run(self, page: str = "", typed: Mapping[str, str] | None = None, pressed: str = "") -> None:
        """Runs the app's script and reads what it draws.  `typed`: texts by the ids of fields; `pressed`: the id of a button."""
        message = BackMsg()
        message.rerun_script.page_name = page
        for field, text in (typed or {}).items():
            message.rerun_script.widget_states.widgets.add(id=field, string_value=text)
        if pressed:
            message.rerun_script.widget_states.widgets.add(id=pressed, trigger_value=True)
        self.send(message.SerializeToString())

    def send(self, message: bytes) -> None:
        """Sends a message that runs the script, and reads until that run has ended.

        One run at a time: when another begins, Streamlit drops what the last one drew and did not send yet, but not its end.
        """
        self.socket.send(message)
        while True:
            reply = ForwardMsg()
            reply.ParseFromString(self.socket.recv(timeout=60))
            kind = reply.WhichOneof("type")
            if kind == "new_session":
                self.session = reply.new_session.initialize.session_id
                self.words = []
            elif kind == "delta":
                self.words.append(str(reply.delta))
                self.ids |= {key: whole for whole, key in re.findall(r'"(\$\$ID-[0-9a-f]+-([^"]+))"', self.words[-1])}
            elif kind == "script_finished" and reply.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                return  # a run that ends early is followed by another, which draws the page

    def upload(self) -> httpx.Response:
        where = f"{self.address}_stcore/upload_file/{self.session}/{uuid.uuid4()}"
        token = {"X-Xsrftoken": self.cookies.get("_streamlit_xsrf", "")}
        files = {"file": ("x.tsv", b"id\ttext\ttitle\n1\ta\tb\n")}
        return httpx.put(
            where, headers=token, cookies=self.cookies, files=files, verify=self.tls or True, trust_env=False, timeout=60
        )


@contextmanager
def stranger(
    address: str, cookies: dict[str, str] | None = None, session: str = "", tls: ssl.SSLContext | None = None
) -> Iterator[Stranger]:
    """A stranger with a new browser, or the one with these cookies; continues the session of this number.  `tls`: for https."""
    if cookies is None:
        cookies = dict(httpx.get(f"{address}_stcore/health", verify=tls or True, trust_env=False, timeout=60).cookies)
    token = cookies.get("_streamlit_xsrf", "none")
    origin = "{0.scheme}://{0.netloc}".format(urlsplit(address))
    where = address.replace("http", "ws", 1) + "_stcore/stream"
    headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
    with connect(
        where,
        origin=origin,
        subprotocols=[Subprotocol(part) for part in ("streamlit", token, session) if part],
        additional_headers=headers,
        max_size=None,
        proxy=None,
        ssl=tls,
        open_timeout=60,
    ) as opened:
        visitor = Stranger(address, opened, cookies, tls)
        if not session:
            visitor.run()
        yield visitor


@contextmanager
def proxy(to: int, port: int, client: str = "127.0.0.1") -> Iterator[None]:
    """Hands what comes to `port` of this machine on to port `to`, and says that `client` asked, as nginx does; one request a connection."""

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while block := await source.read(1 << 16):
                target.write(block)
                await target.drain()
        except OSError:
            pass
        finally:
            target.close()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip("\r\n").split("\r\n")
            inside, out = await asyncio.open_connection("127.0.0.1", to)
        except (OSError, asyncio.IncompleteReadError):
            writer.close()
            return
        if not any(line.lower().startswith("upgrade:") for line in head):
            head = [line for line in head if not line.lower().startswith("connection:")] + ["Connection: close"]
        head += [f"X-Forwarded-For: {client}", "X-Forwarded-Proto: http"]
        out.write(("\r\n".join(head) + "\r\n\r\n").encode("latin-1"))
        with contextlib.suppress(asyncio.CancelledError):  # the proxy ends
            await asyncio.gather(copy(reader, out), copy(inside, writer))

    stop: list[Callable[[], object]] = []
    ready = threading.Event()

    async def work() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        made = await asyncio.start_server(one, "127.0.0.1", port)
        stop.append(lambda: loop.call_soon_threadsafe(over.set))
        ready.set()
        await over.wait()
        made.close()

    thread = threading.Thread(target=lambda: asyncio.run(work()), daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield
    finally:
        stop[0]()
        thread.join(60)
