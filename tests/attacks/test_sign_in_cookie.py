"""The address that sets the cookie of a sign-in: what it answers, and to whom."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import people
import pytest
from starlette.requests import Request
from starlette.types import Receive, Scope, Send
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from core.settings import Settings
from pages.server import sign_in_cookie
from pages.session import connection, cookie
from storage.access.sign_ins import Visitor
from storage.store import Store

HOST = "ambiscope.example"
XSRF = {"_streamlit_xsrf": generate_xsrf_token_string(b"the browser of Mia", 1)}
HERE = {"origin": f"https://{HOST}"}


@pytest.fixture
def mia(store: Store) -> Visitor:
    return store.people.sign_in(people.manager(store), people.PASSWORD, browser=connection.browser_of(XSRF))


@pytest.fixture
def name(settings: Settings) -> str:
    return cookie.name(settings.url)


def post(body: str, method: str = "POST", cookies: dict[str, str] = XSRF, headers: dict[str, str] = HERE) -> httpx.Response:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (await sign_in_cookie.answer(Request(scope, receive)))(scope, receive, send)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=f"https://{HOST}", cookies=cookies) as client:
            return await client.request(method, cookie.address(), content=body, headers=headers)

    return asyncio.run(ask())


def test_the_cookie_cannot_be_read_by_scripts_and_goes_nowhere_else(mia: Visitor, store: Store, name: str) -> None:
    reply = post(mia.code)
    assert reply.status_code == 204
    (header,) = reply.headers.get_list("set-cookie")
    assert {"httponly", "secure", "samesite=strict"} <= {part.strip().lower() for part in header.split(";")}
    assert "max-age=" in header.lower()
    assert store.people.resume(reply.cookies[name]) == mia


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "GET"},
        {"headers": {"origin": "https://elsewhere.example"}},
        {"headers": {}},
        {"cookies": {"_streamlit_xsrf": generate_xsrf_token_string(b"another browser", 1)}},
        {"cookies": {}},
        {"body": "0" * 64},
        {"body": "x" * 100_000},
    ],
    ids=["get", "another origin", "no origin", "another browser", "no browser", "a forged code", "a long one"],
)
def test_a_stranger_gets_no_cookie(mia: Visitor, wrong: dict[str, Any]) -> None:
    reply = post(**{"body": mia.code, **wrong})
    assert reply.status_code == 403
    assert "set-cookie" not in reply.headers


def test_a_code_planted_before_the_sign_in_is_of_no_use(mia: Visitor, store: Store, name: str) -> None:
    """Session fixation: the token is new at each sign-in, whatever cookie the browser held."""
    reply = post(mia.code, cookies={**XSRF, name: "planted"})
    assert reply.cookies[name] != "planted"
    assert store.people.resume("planted") is None
    assert post(mia.code).status_code == 403  # used


@pytest.mark.parametrize("body", [cookie.OUT, cookie.STALE])
def test_signing_out_and_a_stale_cookie_take_it_away(mia: Visitor, store: Store, name: str, body: str) -> None:
    token = post(mia.code).cookies[name]
    reply = post(body, cookies={**XSRF, name: token if body == cookie.OUT else "expired"})
    assert reply.status_code == 204
    assert "max-age=0" in reply.headers["set-cookie"].lower()
    assert (store.people.resume(token) is None) == (body == cookie.OUT)


def test_a_post_from_elsewhere_signs_nobody_out(mia: Visitor, store: Store, name: str) -> None:
    token = post(mia.code).cookies[name]
    reply = post(cookie.OUT, cookies={**XSRF, name: token}, headers={"origin": "https://elsewhere.example"})
    assert reply.status_code == 403
    assert store.people.resume(token) == mia
