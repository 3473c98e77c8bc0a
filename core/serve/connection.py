"""HTTP to a service, in which every failure becomes one clear message and every wait and size is bounded.

No redirect is followed, cookies are refused, and the environment's proxies and `.netrc` are ignored, so that the key goes to the configured
address only.  Replies are requested and read without compression, so that the size limit applies to what is parsed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, TypeVar

import httpx

from core import __version__, json_io
from core.errors import CancelledError, FormatError, ServiceError
from core.models.language.address import check_url
from core.serve.protocol import API_HEADER, API_VERSION, ERROR, STREAM_TYPE, error_from_json, messages, one_line
from core.settings import Settings
from core.trace import from_json

CONNECT_SECONDS = 5.0
MAX_BYTES = 32 * 1024 * 1024  # of one response: 500 passages take 2 MB, the vectors of 100 texts 1 to 9 MB
MAX_VALUES = 500_000  # of one JSON text, by its commas: a value takes up to 100 times its text in memory

T = TypeVar("T")


class Connection:
    """Thread-safe.  Every method raises ServiceError if the service is down, slow, of another version, or not Ambiscope, and
    otherwise the error that the service reports."""

    def __init__(self, settings: Settings) -> None:
        """Raises InputError for an invalid address and for one that must not receive the key."""
        self.url = check_url(settings.engine_url, settings.engine_key, "ENGINE", "http://127.0.0.1:8700", "")
        self._seconds = float(settings.engine_timeout)
        headers = {"accept-encoding": "identity"}
        if settings.engine_key:
            headers["authorization"] = f"Bearer {settings.engine_key}"
        # an answer may take any time: the service sends a keep-alive line every second
        seconds = httpx.Timeout(self._seconds, connect=min(CONNECT_SECONDS, self._seconds))
        self._http = httpx.Client(
            headers=headers,
            timeout=seconds,
            trust_env=False,
            limits=httpx.Limits(max_connections=256),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    def get(self, path: str, kind: type[T], **params: Any) -> T:
        """The reply, read as the expected record (core.serve.replies)."""
        with self._response("GET", path, params=params) as response:
            return self.record(kind, self._json(response))

    def post(self, path: str, body: Mapping[str, Any], kind: type[T]) -> T:
        """The reply, read as the expected record."""
        with self._response("POST", path, json=body) as response:
            return self.record(kind, self._json(response))

    def record(self, kind: type[T], body: Any) -> T:
        """A record from its JSON. Fields of a later version are ignored.  Raises ServiceError."""
        try:
            return from_json(kind, body)
        except FormatError as error:
            raise self.unreadable(f"a reply that cannot be read ({error})") from None

    def events(self, path: str, body: Mapping[str, Any], cancelled: Callable[[], bool]) -> Iterator[tuple[str, Any]]:
        """(name, body) of each server-sent event.  Closing it, or `cancelled`, ends the work.  Raises CancelledError if
        cancelled."""

        def check() -> None:
            if cancelled():
                raise CancelledError("the run was stopped")

        with self._response("POST", path, json=body, headers={"accept": STREAM_TYPE}) as response:
            for name, data in messages(self._lines(response, check)):
                event = self._read(data)
                if name == ERROR:
                    raise error_from_json(event) or self.unreadable("an error without a message")
                yield name, event

    # ------------------------------------------------------------ one response

    @contextmanager
    def _response(self, method: str, path: str, **more: Any) -> Iterator[httpx.Response]:
        try:
            with self._http.stream(method, self.url + path, **more) as response:
                self._check(response)
                yield response
        except httpx.TimeoutException as error:
            waited = CONNECT_SECONDS if isinstance(error, httpx.ConnectTimeout) else self._seconds
            raise ServiceError(
                f"the service at {self.url} did not answer within {min(waited, self._seconds):g} seconds; "
                "see whether it runs and is not overloaded, or raise AMBISCOPE_ENGINE_TIMEOUT"
            ) from None
        except (httpx.ConnectError, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise ServiceError(
                f"the service at {self.url} cannot be reached ({_line(error)}); start it with `python -m core serve`, "
                "or correct AMBISCOPE_ENGINE_URL"
            ) from None
        except httpx.HTTPError as error:
            raise ServiceError(f"the connection to the service at {self.url} broke ({_line(error)}); ask again") from None

    def _check(self, response: httpx.Response) -> None:
        """Raises for any reply that isn't a success of a service with this API version."""
        api = response.headers.get(API_HEADER)
        if api is None:
            kind = one_line(response.headers.get("content-type", "").partition(";")[0], 80) or "nothing that says what it is"
            raise ServiceError(
                f"{self.url} answers with {kind} (HTTP {response.status_code}) and is no service of Ambiscope; "
                "correct AMBISCOPE_ENGINE_URL, or what stands between"
            )
        if api != str(API_VERSION):
            raise ServiceError(
                f"the service at {self.url} speaks form {one_line(api, 20)}, and this Ambiscope ({__version__}) form {API_VERSION}: "
                "install the same version on both sides"
            )
        if response.status_code == 401:
            raise ServiceError(
                f"the service at {self.url} refuses the key: AMBISCOPE_ENGINE_KEY must be its AMBISCOPE_SERVE_KEY"
            )
        if not response.is_success:
            raise error_from_json(self._json(response)) or self.unreadable(f"HTTP {response.status_code}")

    def _parts(self, response: httpx.Response) -> Iterator[bytes]:
        """The body as it arrives.  It is never decompressed, because a small compressed body may expand to any size."""
        if (packing := response.headers.get("content-encoding", "identity")) != "identity":
            raise self.unreadable(f"a body packed as {one_line(packing, 20)}, which was not asked for")
        for part in response.iter_raw():
            if response.num_bytes_downloaded > MAX_BYTES:
                raise self.unreadable("a response that does not end")
            yield part

    def _json(self, response: httpx.Response) -> Any:
        """The JSON of a response that arrives in time.  A service that sends one byte at a time is given up."""
        end, body = time.monotonic() + 4 * self._seconds, bytearray()
        for part in self._parts(response):
            body += part
            if time.monotonic() > end:
                raise self.unreadable("a response that does not end")
        return self._read(bytes(body))

    def _lines(self, response: httpx.Response, check: Callable[[], None]) -> Iterator[str]:
        """The lines of a stream, without their ends; `check` is called whenever something arrives."""
        line = bytearray()
        for part in self._parts(response):
            check()
            head, *lines = part.split(b"\n")
            line += head
            for start in lines:
                yield line.decode("utf-8", "replace").removesuffix("\r")
                line[:] = start

    def _read(self, raw: str | bytes) -> Any:
        try:
            text = raw if isinstance(raw, str) else raw.decode()
            if text.count(",") > MAX_VALUES:
                raise self.unreadable(f"more than {MAX_VALUES} values at once")
            return json_io.parse(text)
        except UnicodeDecodeError:
            raise self.unreadable("something that is not UTF-8") from None
        except FormatError as error:
            raise self.unreadable(f"something that is no JSON ({error.problem.partition(';')[0]})") from None

    def unreadable(self, content: str) -> ServiceError:
        return ServiceError(f"the service at {self.url} sent {content}; install the same version of Ambiscope on both sides")


def _line(error: Exception) -> str:
    return one_line(str(error), 200) or type(error).__name__
