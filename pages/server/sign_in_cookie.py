"""Sets and deletes a sign-in's cookie, in reply to the post of a page (pages.session.cookie).

Pages of other sites cannot set or delete it: only posts of the same origin are answered, and a code is valid only in the browser in which the
password was typed, recognised by Streamlit's XSRF cookie.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pages.session import connection, cookie
from storage.access.sign_ins import SIGN_IN_LASTS, Visitor

MAX_BYTES = 200  # of a post


def holder(cookies: Mapping[str, str]) -> Visitor | None:
    """The visitor of a browser's cookie; None if it isn't valid.  Raises AmbiscopeError if the database can't be read."""
    from pages.session import shared

    token = cookies.get(cookie.name(shared.settings().url))
    return shared.servers_store().people.resume(token) if token else None


async def answer(request: Request) -> Response:
    """204 if the post was accepted, else 403.  Raises AmbiscopeError if the database can't be read."""
    from pages.session import shared

    host, body = request.headers.get("host", ""), b""
    if request.method != "POST" or request.headers.get("origin") not in (f"http://{host}", f"https://{host}"):
        return PlainTextResponse("This is for Ambiscope's own pages.\n", 403)
    async for part in request.stream():
        if len(body := body + part) > MAX_BYTES:
            return PlainTextResponse("This is no code of a sign-in.\n", 403)
    name, code = cookie.name(shared.settings().url), body.decode("ascii", "replace")
    earlier_token, people, reply = request.cookies.get(name, ""), shared.servers_store().people, Response(status_code=204)
    options: dict[str, Any] = {
        "path": cookie.folder(),
        "secure": request.url.scheme == "https",
        "httponly": True,
        "samesite": "strict",
    }
    if code in (cookie.OUT, cookie.STALE):
        visitor = await run_sync(holder, request.cookies)
        if code == cookie.OUT:
            await run_sync(people.sign_out, visitor)
        if code == cookie.OUT or visitor is None:
            reply.delete_cookie(name, **options)
        return reply
    token = await run_sync(people.exchange, code, connection.browser_of(request.cookies), earlier_token)
    if token is None:
        return PlainTextResponse("This code is unknown, used, too old, or of another browser.\n", 403)
    reply.set_cookie(name, token, max_age=int(SIGN_IN_LASTS.total_seconds()), **options)
    return reply
