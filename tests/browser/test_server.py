"""The server as a process, without a browser: where it listens, whom it answers, whose files it takes."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import people
import pytest
from serving import PATIENCE, free_port, serve, until, with_corpus
from strangers import proxy, stranger
from streamlit import net_util
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.web import bootstrap
from streamlit.web.server import server_util

from core.settings import ROOT, Settings
from pages.server import launch, tab_icon
from pages.server import server as guard
from storage.store import Store

ROWS = [("p1", "Maria", "Natalie Wood played Maria.")]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return with_corpus(tmp_path / "home", "small", ROWS)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with Store(settings.url) as opened:
        yield opened


def listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(PATIENCE)
        return probe.connect_ex((host, port)) == 0


def get(url: str, **headers: str) -> httpx.Response:
    return httpx.get(url, headers=headers, trust_env=False, timeout=PATIENCE)


def headers_keep(address: str) -> None:
    """The headers of every reply."""
    reply = get(address)
    health = get(f"{address}_stcore/health")
    rules = dict(rule.partition(" ")[::2] for rule in reply.headers["content-security-policy"].split("; "))
    assert rules["frame-ancestors"] == rules["base-uri"] == "'self'"
    assert not {"'unsafe-inline'", "'unsafe-eval'"} & set(rules["script-src"].split())
    assert not [rule for rule in rules.values() if "http:" in rule or "https:" in rule or "*" in rule]
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "same-origin"
    assert "SameSite=Lax" in health.headers["set-cookie"]
    for page in ("", "annotate", "annotate?project=1"):  # as a browser asks for it
        shown = get(f"{address}{page}", Accept="text/html,*/*")
        assert shown.text.count(tab_icon.icon_link().decode()) == 1
        assert "shortcut icon" not in shown.text  # Streamlit's script would fetch the page's symbol from another host for it
        assert shown.text.rstrip().endswith("</html>")


@pytest.mark.parametrize("start", [("-m", "pages.server.launch"), ("-m", "streamlit", "run", "streamlit_app.py")])
def test_it_listens_on_this_machine_alone(settings: Settings, start: tuple[str, ...]) -> None:
    """127.0.0.2 is reached by what listens everywhere, and not from another machine.  Both ways of starting have the same guard."""
    with serve(settings.home, "small", (), start) as address:
        port = urlsplit(address).port or 0
        assert listens("127.0.0.1", port)
        assert not listens("127.0.0.2", port)
        assert address.rstrip("/") in (settings.home.parent / "server.log").read_text()  # it says where
        with stranger(address) as tab:
            assert tab.upload().status_code == 204
        headers_keep(address)


def test_or_where_it_is_told_to(settings: Settings) -> None:
    with serve(settings.home, "small", (), at="127.0.0.2", HOST="127.0.0.2") as address:
        assert not listens("127.0.0.1", urlsplit(address).port or 0)


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments with which Streamlit would have been started."""
    arguments: list[list[str]] = []
    monkeypatch.setattr(launch, "preload", lambda: None)
    monkeypatch.setattr(launch.runtime, "exists", lambda: False)
    monkeypatch.setattr(launch.cli, "main", arguments.append)
    return arguments


def test_the_command_line_counts_before_the_setting(starts: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBISCOPE_HOST", "10.0.0.7")
    launch.main(["--server.address", "127.0.0.1"])
    assert starts[0][2:] == ["--server.address", "10.0.0.7", "--server.address", "127.0.0.1"]


def test_the_server_asks_nobody_for_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit does, when it prints where it listens everywhere and when a page of another site connects."""
    asked: list[str] = []
    monkeypatch.setattr(net_util, "_external_ip", None)
    monkeypatch.setattr(net_util, "_make_blocking_http_get", lambda url, timeout: asked.append(url))
    assert not server_util.is_url_from_allowed_origins("http://evil.example")
    assert len(asked) == 2  # as it is without us
    bootstrap._print_url(False)
    for origin in ("http://evil.example", "null", "http://localhost:1"):
        received, sent = pass_the_guard({"bytes": RERUN}, origin=origin)
        assert (received, [message["type"] for message in sent]) == ([], ["websocket.close"]), origin
    assert pass_the_guard({"bytes": RERUN}, origin="http://localhost")[0]
    assert len(asked) == 2


def test_it_does_not_listen_elsewhere_without_accounts(settings: Settings, store: Store) -> None:
    environment = os.environ | {"AMBISCOPE_HOME": str(settings.home), "AMBISCOPE_ENCODER": "hashing"}
    command = [sys.executable, "-m", "pages.server.launch", "--server.port", str(free_port()), "--server.address", "0.0.0.0"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "Ambiscope does not listen on 0.0.0.0" in done.stderr
    assert "AMBISCOPE_OPEN_TO_ALL=1" in done.stderr
    assert "Traceback" not in done.stderr


def test_unless_it_is_told_to_and_then_says_so(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AMBISCOPE_HOME", str(settings.home))
    monkeypatch.setattr("pages.session.shared.servers_store", lambda: store)
    for address in ("127.0.0.1", "localhost", "::1"):
        guard.check(address)
    for address in ("", "0.0.0.0", "::", "192.168.1.5", "ambiscope.example"):
        with pytest.raises(SystemExit):
            guard.check(address)
    assert not capsys.readouterr().err
    monkeypatch.setenv("AMBISCOPE_OPEN_TO_ALL", "1")
    guard.check("0.0.0.0")
    assert "can read, change and delete everything" in capsys.readouterr().err
    monkeypatch.delenv("AMBISCOPE_OPEN_TO_ALL")
    people.manager(store)
    guard.check("0.0.0.0")
    assert not capsys.readouterr().err


def test_a_database_that_cannot_be_read_lets_nobody_listen_elsewhere(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.home.mkdir(exist_ok=True)
    (settings.home / "ambiscope.db").write_bytes(b"garbage" * 1000)
    monkeypatch.setattr("pages.session.shared.servers_store", lambda: Store(settings.url))
    with pytest.raises(SystemExit, match="Ambiscope"):
        guard.check("0.0.0.0")


HERE, THERE = ("127.0.0.1", 5000), ("203.0.113.9", 5000)


@pytest.mark.parametrize(
    ("client", "server", "host", "expected"),
    [
        (HERE, HERE, "localhost:8501", True),
        (HERE, HERE, "127.0.0.1:8501", True),
        (HERE, HERE, "ambiscope.localhost", True),
        (("::1", 1), ("::1", 2), "[::1]:8501", True),
        (("::ffff:127.0.0.1", 1), ("::ffff:127.0.0.1", 2), "LOCALHOST.", True),
        (THERE, HERE, "localhost", False),  # a proxy on this machine, for somebody else
        (("192.168.1.5", 1), ("192.168.1.5", 2), "localhost", False),  # a name that the visitor chose
        (HERE, HERE, "evil.example:8501", False),  # a page elsewhere whose name leads here
        (HERE, HERE, "localhost.evil.example", False),
        (HERE, HERE, "127.0.0.1.evil.example", False),
        (HERE, HERE, "", False),
        (None, HERE, "localhost", False),
        (HERE, None, "localhost", False),
        (HERE, (None, None), "localhost", False),
    ],
)
def test_who_is_on_this_machine(client: Any, server: Any, host: str, expected: bool) -> None:
    scope = {"type": "http", "client": client, "server": server, "headers": [(b"host", host.encode())]}
    assert guard.from_here(scope) is expected
    assert not guard.from_here(scope | {"headers": []})
    assert not guard.from_here(scope | {"headers": scope["headers"] * 2})
    for claim in ((b"x-forwarded-host", b"a.example"), (b"x-real-ip", b"203.0.113.9"), (b"forwarded", b"for=203.0.113.9")):
        assert not guard.from_here(scope | {"headers": [*scope["headers"], claim]})
    assert guard.from_here(scope | {"headers": [*scope["headers"], (b"x-real-ip", b"127.0.0.1")]}) is expected


def test_the_first_account_lets_others_come_and_files_wait_for_a_sign_in(settings: Settings, store: Store) -> None:
    """Other machines and other names are answered from then on; a file is taken from nobody before the sign-in."""
    with serve(settings.home, "small") as address:
        outside = free_port()
        proxied = f"http://127.0.0.1:{outside}/"
        with proxy(urlsplit(address).port or 0, outside, "203.0.113.9"):
            assert get(address).status_code == 200
            for refused in (get(address, Host="evil.example"), get(proxied)):
                assert refused.status_code == 403
                assert "add a manager with a password first" in refused.text
            with pytest.raises(Exception, match="403"), stranger(proxied):
                pass
            with stranger(address) as before:
                assert before.upload().status_code == 204  # nobody has an account
                people.manager(store)
                assert before.upload().status_code == 403  # without another run of the page
            until(lambda: get(proxied).status_code == 200)  # the answer about accounts holds for two seconds
            assert get(address, Host="ambiscope.example").status_code == 200
            with stranger(proxied) as tab:
                assert "signin.password" in " ".join(tab.words)
                refused = tab.upload()  # Streamlit itself takes a file from every session
                assert (refused.status_code, refused.text.strip()) == (403, "Sign in before you upload a file.")
            made_up = f"{address}_stcore/upload_file/{'0' * 8}/x"
            assert httpx.put(made_up, content=b"x", trust_env=False, timeout=PATIENCE).status_code == 403
            assert httpx.delete(made_up, trust_env=False, timeout=PATIENCE).status_code == 403
            assert get(f"{proxied}_stcore/metrics").status_code == 403
            assert get(f"{address}_stcore/metrics").status_code == 200


RERUN = BackMsg(stop_script=True).SerializeToString()


def pass_the_guard(*messages: dict[str, Any], **headers: str) -> tuple[list[Any], list[Any]]:
    """The messages of a tab that the app receives, and those that the tab gets."""
    left = [*({"type": "websocket.receive", **message} for message in messages), {"type": "websocket.disconnect"}]
    received: list[Any] = []
    sent: list[Any] = []

    async def receive() -> Any:
        return left.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while not received or received[-1]["type"] != "websocket.disconnect":
            received.append(await receive())

    scope = {"type": "websocket", "client": HERE, "server": HERE, "headers": [(b"host", b"localhost")]}
    scope["headers"] += [(name.encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(guard.AppGuard(app, False)(scope, receive, send))
    return [message for message in received if message["type"] == "websocket.receive"], sent


def test_what_no_page_sends_is_dropped() -> None:
    """`clear_cache` empties the caches of everybody, `install_skills` writes files; neither asks who one is."""
    skills, rows, rerun = BackMsg(), BackMsg(), BackMsg()
    skills.backend_operation_request.install_skills.SetInParent()
    rows.backend_operation_request.dataframe_chunk.SetInParent()
    rerun.rerun_script.query_string = "x"
    good = [rerun, BackMsg(stop_script=True), BackMsg(app_heartbeat=True), rows]
    bad = [BackMsg(clear_cache=True), BackMsg(set_run_on_save=True), BackMsg(load_git_info=True), skills]
    received, sent = pass_the_guard(*({"bytes": message.SerializeToString()} for message in [*bad, *good, *bad]))
    assert [message["bytes"] for message in received] == [message.SerializeToString() for message in good]
    assert sent == []


@pytest.mark.parametrize("message", [{"bytes": b"\xff"}, {"text": "x"}])
def test_what_is_no_message_ends_the_connection(message: dict[str, Any]) -> None:
    """Streamlit would write a traceback into the log."""
    received, sent = pass_the_guard(message)
    assert received == []
    assert [m["type"] for m in sent] == ["websocket.close"]
