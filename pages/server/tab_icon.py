"""The app's icon in a browser's tab, there from the first moment.

Streamlit's script puts the symbol of the page that is shown into the tab, until it hears of an icon: a browser would fetch that symbol from a
host of Google's.  The script looks for a link of its own, so the page that it starts from gets another one instead, which it leaves alone.
"""

from __future__ import annotations

import base64
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ICON = Path(__file__).with_name("icon.svg")
STREAMLITS = b'<link rel="shortcut icon" href="./favicon.png" />'
ASKS_FOR_LESS = (b"accept-encoding", b"if-none-match", b"if-modified-since")  # than the page, whole and as text


def own_link() -> bytes:
    return b'<link rel="icon" type="image/svg+xml" href="data:image/svg+xml;base64,%s" />' % base64.b64encode(ICON.read_bytes())


class TabIcon:
    def __init__(self, app: ASGIApp) -> None:
        self.app, self.link = app, own_link()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self.app(scope, receive, send)
            return
        plain = [(name, value) for name, value in scope["headers"] if name not in ASKS_FOR_LESS]
        await self.app({**scope, "headers": plain}, receive, self._with_icon(send))

    def _with_icon(self, send: Send) -> Send:
        """`send`, which gets a page whole, with its length."""
        messages: list[Message] = []

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_page(message):
                messages.append(message)
            elif not messages:
                await send(message)
            else:
                messages.append(message)
                if not message.get("more_body", False):
                    start, *parts = messages
                    body = b"".join(part.get("body", b"") for part in parts).replace(STREAMLITS, self.link)
                    headers = MutableHeaders(raw=start["headers"])
                    headers["content-length"] = str(len(body))
                    await send({**start, "headers": headers.raw})
                    await send({"type": "http.response.body", "body": body})

        return sent


def _is_page(start: Message) -> bool:
    return start["status"] == 200 and Headers(raw=start.get("headers", [])).get("content-type", "").startswith("text/html")
