"""The app's icon in the browser tab, from the start.

Streamlit's script sets the symbol of the current page as icon until another one is set: a browser would fetch that symbol from a host of
Google's.  The script looks for Streamlit's own link, so the HTML page gets another link instead, which the script does not change.
"""

from __future__ import annotations

import base64
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ICON = Path(__file__).with_name("icon.svg")
STREAMLIT_LINK = b'<link rel="shortcut icon" href="./favicon.png" />'
# so that the page comes in full and uncompressed
DROPPED_HEADERS = (b"accept-encoding", b"if-none-match", b"if-modified-since")


def icon_link() -> bytes:
    return b'<link rel="icon" type="image/svg+xml" href="data:image/svg+xml;base64,%s" />' % base64.b64encode(ICON.read_bytes())


class TabIcon:
    def __init__(self, app: ASGIApp) -> None:
        self.app, self.link = app, icon_link()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self.app(scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name not in DROPPED_HEADERS]
        await self.app({**scope, "headers": headers}, receive, self._with_icon(send))

    def _with_icon(self, send: Send) -> Send:
        """Collects a page, and sends it with the new link and its length."""
        messages: list[Message] = []

        async def send_page(message: Message) -> None:
            is_start = message["type"] == "http.response.start"
            if not messages and not (is_start and _is_page(message)):
                await send(message)
                return
            messages.append(message)
            if not is_start and not message.get("more_body", False):
                start, *parts = messages
                body = b"".join(part.get("body", b"") for part in parts).replace(STREAMLIT_LINK, self.link)
                headers = MutableHeaders(raw=start["headers"])
                headers["content-length"] = str(len(body))
                await send({**start, "headers": headers.raw})
                await send({"type": "http.response.body", "body": body})

        return send_page


def _is_page(start: Message) -> bool:
    return start["status"] == 200 and Headers(raw=start.get("headers", [])).get("content-type", "").startswith("text/html")
