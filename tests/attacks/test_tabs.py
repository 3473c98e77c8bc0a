"""Tabs without a sign-in, and many tabs: their messages are small, and what they took comes back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import repeat
from pathlib import Path

import httpx
import people
import pytest
from page_helpers import ROWS
from serving import PATIENCE, close_code, descriptors, process_at, serve, until, with_corpus
from strangers import Stranger, stranger
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import ConnectionClosed

from pages.server.messages import SMALL_MESSAGE
from storage.store import Store


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """With an account, as `streamlit run` starts it; sessions are kept for a few seconds."""
    settings = with_corpus(tmp_path_factory.mktemp("app") / "home", "small", ROWS)
    with Store(settings.url) as store:
        people.manager(store, "Mia")
    options = ("--server.address", "127.0.0.1", "--server.disconnectedSessionTTL", "5")
    with serve(settings.home, "small", options) as address, stranger(address) as tab:
        sign_in(tab)  # everything is loaded
        yield address


def memory(process: int) -> int:
    """Bytes that are resident."""
    rows = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(row.split()[1] for row in rows if row.startswith("VmRSS"))) * 1024


def sign_in(tab: Stranger) -> None:
    form = {tab.ids["signin.typed"]: "Mia", tab.ids["signin.password"]: people.PASSWORD}
    tab.run(typed=form, pressed=next(i for key, i in tab.ids.items() if key.startswith("FormSubmitter:signin.form")))
    assert "signin.out" in tab.ids


def large(size: int) -> bytes:
    message = BackMsg()
    message.rerun_script.widget_states.widgets.add(id=f"$$ID-{0:032x}-x", string_value="x" * size)  # as Streamlit names fields
    return message.SerializeToString()


def refuses(tab: Stranger, data: bytes) -> bool:
    """Whether the app closes the tab for the size of what it sends."""
    with suppress(ConnectionClosed):
        tab.socket.send(data)
    return close_code(tab.socket) == 1009


def test_large_messages_need_a_sign_in(app: str) -> None:
    data = large(SMALL_MESSAGE)
    with stranger(app) as tab:
        assert refuses(tab, data)
    with stranger(app) as tab:
        sign_in(tab)
        tab.send(data)
        tab.run(pressed=tab.ids["signin.out"])
        assert refuses(tab, data)


def test_a_tab_that_comes_back_with_its_cookie_sends_what_it_holds_at_once(app: str) -> None:
    """After a restart of the server, say: its session is a new one."""
    with stranger(app) as tab:
        sign_in(tab)
        (code,) = set(re.findall(r'data-code=\\?"(\w+)', " ".join(tab.words)))
        origin = {"Origin": app.rstrip("/")}
        reply = httpx.post(
            f"{app}_ambiscope/sign-in", content=code, cookies=tab.cookies, headers=origin, trust_env=False, timeout=PATIENCE
        )
        cookies = tab.cookies | dict(reply.cookies)
    with stranger(app, cookies, session="none") as back:
        back.send(large(SMALL_MESSAGE))
        assert "signin.out" in back.ids
    with stranger(app, tab.cookies | dict.fromkeys(reply.cookies, "0" * 64), session="none") as forged:
        assert refuses(forged, large(SMALL_MESSAGE))


def test_fragments_without_end_are_one_message(app: str) -> None:
    for fragment in (b"x" * 5000, b"x"):  # small ones take more than their bytes
        with stranger(app) as tab, pytest.raises(ConnectionClosed):
            tab.socket.send(repeat(fragment))


def test_messages_of_24_megabytes_take_no_memory(app: str) -> None:
    process = process_at(app)
    before = memory(process)
    with ExitStack() as stack:
        tabs = [stack.enter_context(stranger(app)) for _ in range(5)]
        for tab in tabs:
            with suppress(ConnectionClosed):
                tab.socket.send(b"\0" * 24_000_000)
        # 0: the connection is gone before the rest of the message is read
        assert {close_code(tab.socket) for tab in tabs} <= {1009, 0}
        assert memory(process) < before + 60_000_000


def comes_and_goes(app: str) -> bool:
    """Streamlit looks at the age of the sessions that it keeps whenever a tab is closed."""
    with stranger(app):
        return True


def test_fifty_tabs_give_back_what_they_took(app: str) -> None:
    process = process_at(app)
    before = descriptors(process)

    def fifty() -> None:
        with ExitStack() as stack:
            # those that name a session ask for nothing
            tabs = [stack.enter_context(stranger(app, session="none" * (number >= 40))) for number in range(50)]
            for tab in tabs[:10]:
                sign_in(tab)
            assert descriptors(process) > before + 150
        # a visit leaves a session too, for a few seconds; what remains are connections to the database
        until(lambda: comes_and_goes(app) and descriptors(process) <= before + 24, every=5)

    fifty()
    grown = memory(process)
    fifty()
    assert memory(process) < grown + 40_000_000
