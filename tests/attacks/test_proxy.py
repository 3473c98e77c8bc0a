"""The app behind the nginx of docs/deploy.md: what passes, and clients that hold connections, send slowly or send too much, which the proxy
answers in the app's place.  Skipped where nginx or openssl is not installed."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import httpx
import people
import pytest
from page_helpers import ROWS
from serving import PATIENCE, descriptors, free_port, process_at, serve, until, with_corpus
from strangers import Stranger, stranger
from test_tabs import large, refuses, sign_in

from core.settings import ROOT
from pages.server.messages import SMALL_MESSAGE
from storage.store import Store

NGINX, OPENSSL = (shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/bin:/bin") for name in ("nginx", "openssl"))
pytestmark = pytest.mark.skipif(not (NGINX and OPENSSL), reason="nginx or openssl is not installed")
NAME = "ambiscope.example.org"
HEAD_SECONDS = 2  # in place of the 10 of the file
PER_ADDRESS = 200


@dataclass(frozen=True, slots=True)
class Proxy:
    port: int
    plain_port: int
    tls: ssl.SSLContext
    app: str  # the app's own address

    @property
    def address(self) -> str:
        return f"https://localhost:{self.port}/"

    def get(self, path: str = "", source: str = "127.0.0.1", **headers: str) -> httpx.Response:
        transport = httpx.HTTPTransport(verify=self.tls, local_address=source)
        with httpx.Client(transport=transport, timeout=PATIENCE) as client:
            return client.get(self.address + path, headers=headers)

    def sends(self, stack: ExitStack, data: bytes, source: str = "127.0.0.1") -> socket.socket:
        """A connection on which this was sent."""
        plain = stack.enter_context(socket.create_connection(("127.0.0.1", self.port), PATIENCE, source_address=(source, 0)))
        connection = stack.enter_context(self.tls.wrap_socket(plain, server_hostname="localhost"))
        connection.sendall(data)
        return connection

    @contextmanager
    def tab(self) -> Iterator[Stranger]:
        with stranger(self.address, tls=self.tls) as opened:
            yield opened


def status_of(connection: socket.socket) -> int:
    """The status of the answer on a connection; 0 if it ended without one."""
    reply = b""
    with suppress(OSError):
        reply = connection.recv(4096)
    return int(reply.split(b" ")[1]) if reply else 0


def documented(replacements: dict[str, str]) -> str:
    """The file of docs/deploy.md, with ports, paths and names of this machine."""
    text = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    file = re.findall(r"```nginx\n(.*?)```", text, re.DOTALL)[0]
    for words, replacement in replacements.items():
        assert words in file, words
        file = file.replace(words, replacement)
    return file


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("proxy")
    certificate, key = folder / "ambiscope.pem", folder / "ambiscope.key"
    new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([str(OPENSSL), *new, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    tls = ssl.create_default_context(cafile=str(certificate))
    settings = with_corpus(tmp_path_factory.mktemp("app") / "home", "small", ROWS)
    with Store(settings.url) as store:
        people.manager(store, "Mia")
    port, plain_port = free_port(), free_port()
    with serve(settings.home, "small") as app:
        file = folder / "nginx.conf"
        file.write_text(
            documented(
                {
                    NAME: "localhost",
                    "listen 80;": f"listen 127.0.0.1:{plain_port};",
                    "listen 443 ": f"listen 127.0.0.1:{port} ",
                    "127.0.0.1:8501": app.removeprefix("http://").rstrip("/"),
                    "/etc/ssl/ambiscope.pem": str(certificate),
                    "/etc/ssl/ambiscope.key": str(key),
                    "/run/nginx.pid": str(folder / "nginx.pid"),
                    "client_header_timeout 10s": f"client_header_timeout {HEAD_SECONDS}s",
                    "http {": "http {\n"
                    + "".join(
                        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
                    ),
                }
            )
        )
        command = [str(NGINX), "-p", str(folder), "-c", str(file), "-g", "daemon off; error_log stderr;"]
        with (folder / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as process:
            try:
                opened = Proxy(port, plain_port, tls, app)
                until(lambda: answers(opened, process))
                yield opened
            finally:
                process.terminate()


def answers(proxy: Proxy, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None
    with suppress(httpx.TransportError):
        return proxy.get("_stcore/health").status_code == 200
    return False


def test_a_person_works_behind_it(proxy: Proxy) -> None:
    """Pages, their tabs, the sign-in, files, large messages and the cookie, which is for https alone."""
    page = proxy.get()
    assert page.status_code == 200
    assert "max-age" in page.headers["strict-transport-security"]
    assert "frame-ancestors" in page.headers["content-security-policy"]
    with proxy.tab() as tab:
        assert tab.upload().status_code == 403
        sign_in(tab)
        assert tab.upload().status_code == 204
        tab.send(large(SMALL_MESSAGE))
        (code,) = set(re.findall(r'data-code=\\?"(\w+)', " ".join(tab.words)))
        origin = {"Origin": proxy.address.rstrip("/")}
        reply = httpx.post(
            f"{proxy.address}_ambiscope/sign-in",
            content=code,
            cookies=tab.cookies,
            headers=origin,
            verify=proxy.tls,
            trust_env=False,
        )
        assert "Secure" in reply.headers["set-cookie"]


def test_http_and_other_names_lead_nowhere(proxy: Proxy) -> None:
    reply = httpx.get(f"http://127.0.0.1:{proxy.plain_port}/annotate", trust_env=False)
    assert (reply.status_code, reply.headers["location"]) == (301, "https://localhost/annotate")
    with pytest.raises(ssl.SSLError), socket.create_connection(("127.0.0.1", proxy.port), PATIENCE) as plain:
        proxy.tls.wrap_socket(plain, server_hostname="evil.example")


def test_nobody_chooses_an_address(proxy: Proxy) -> None:
    """`metrics` answers this machine alone, by the address of the connection and not by what the client says."""
    assert proxy.get("_stcore/metrics").status_code == 200
    assert proxy.get("_stcore/metrics", **{"X-Forwarded-For": "203.0.113.9"}).status_code == 200


def test_heads_that_do_not_end_are_given_up(proxy: Proxy) -> None:
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
    before = descriptors(process_at(proxy.app))
    with ExitStack() as stack:
        slow = [proxy.sends(stack, head) for _ in range(2 * PER_ADDRESS)]
        dripping = proxy.sends(stack, head)
        dripping.settimeout(0.1)
        assert proxy.get().status_code == 200
        assert descriptors(process_at(proxy.app)) <= before + 4  # the app sees none of them
        with suppress(ssl.SSLError, OSError):  # a byte now and then gives no more time
            until(lambda: dripping.sendall(b"x") or readable(dripping))
        assert {status_of(connection) for connection in slow} <= {0, 408}
        assert proxy.get().status_code == 200


def readable(connection: socket.socket) -> bool:
    """Whether the other side has answered or ended."""
    try:
        connection.recv(1)
    except TimeoutError:
        return False
    return True


def test_one_address_has_so_many_connections_and_others_go_on(proxy: Proxy) -> None:
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
    before = descriptors(process_at(proxy.app))
    with ExitStack() as stack:
        held = [proxy.sends(stack, head) for _ in range(PER_ADDRESS)]
        until(lambda: proxy.get().status_code == 503)
        assert proxy.get(source="127.0.0.2").status_code == 200
        assert descriptors(process_at(proxy.app)) <= before + 4
        for connection in held:
            connection.close()
        until(lambda: proxy.get().status_code == 200)


def test_one_address_opens_so_many_tabs_at_once(proxy: Proxy) -> None:
    """Faster than the rate, on one connection."""
    transport = httpx.HTTPTransport(verify=proxy.tls, local_address="127.0.0.3")
    with httpx.Client(transport=transport, timeout=PATIENCE) as client:
        until(lambda: client.get(f"{proxy.address}_stcore/stream").status_code == 503)
        assert client.get(f"{proxy.address}_stcore/health").status_code == 200
    assert proxy.get("_stcore/stream", source="127.0.0.4").status_code != 503


def test_a_body_over_the_limit_is_not_read(proxy: Proxy) -> None:
    with ExitStack() as stack:
        size = 50 * 1024 * 1024 + 1
        head = f"PUT /_stcore/upload_file/x/y HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n"
        assert status_of(proxy.sends(stack, head.encode())) == 413


def test_large_messages_need_a_sign_in_here_too(proxy: Proxy) -> None:
    with proxy.tab() as tab:
        assert refuses(tab, large(SMALL_MESSAGE))
