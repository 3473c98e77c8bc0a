"""HTTP to a service: what can go wrong with it becomes one clear message, and nothing waits without end.

No redirect is followed, and the environment's proxies and `.netrc` are ignored, so that the key goes to the configured address only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from core.errors import AmbiscopeError, CancelledError, ServiceError
from core.installation.version import application_version
from core.models.language.address import check_url
from core.serve.protocol import API, API_HEADER, ERROR, STREAM, error_from_json, messages
from core.settings import Settings

CONNECT_SECONDS = 5.0
MOST_BYTES = 256 * 1024 * 1024  # of one response


class Connection:
    """Thread-safe.  Every method raises ServiceError where the service is away, slow, of another version, or none of ours, and else the
    error that the service tells of."""

    def __init__(self, settings: Settings) -> None:
        """Raises InputError for what is no address, and for one that must not receive the key."""
        self.where = check_url(settings.engine_url, settings.engine_key, "ENGINE", "http://127.0.0.1:8700", "")
        self._seconds = float(settings.engine_timeout)
        headers = {"authorization": f"Bearer {settings.engine_key}"} if settings.engine_key else None
        # an answer may take as long as it likes: the service says every second that it is there
        seconds = httpx.Timeout(self._seconds, connect=min(CONNECT_SECONDS, self._seconds))
        self._http = httpx.Client(headers=headers, timeout=seconds, trust_env=False, limits=httpx.Limits(max_connections=256))

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        with self._response("GET", path, params=params) as response:
            return self._object(response)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        with self._response("POST", path, json=body) as response:
            return self._object(response)

    def events(self, path: str, body: Mapping[str, Any], cancelled: Callable[[], bool]) -> Iterator[tuple[str, Any]]:
        """(name, body) of each server-sent event.  Closing it, or `cancelled`, ends the work.  Raises CancelledError for the latter."""

        def look() -> None:
            if cancelled():
                raise CancelledError("the run was stopped")

        with self._response("POST", path, json=body, headers={"accept": STREAM}) as response:
            for name, data in messages(response.iter_lines(), look):
                found = self._read(data)
                if name == ERROR:
                    raise error_from_json(found) or self._strange("an error without a message")
                yield name, found

    # ------------------------------------------------------------ one response

    @contextmanager
    def _response(self, method: str, path: str, **more: Any) -> Iterator[httpx.Response]:
        try:
            with self._http.stream(method, self.where + path, **more) as response:
                self._check(response)
                yield response
        except httpx.TimeoutException as error:
            waited = CONNECT_SECONDS if isinstance(error, httpx.ConnectTimeout) else self._seconds
            raise ServiceError(
                f"the service at {self.where} did not answer within {min(waited, self._seconds):g} seconds; "
                "see whether it runs and is not overloaded, or raise AMBISCOPE_ENGINE_TIMEOUT"
            ) from None
        except (httpx.ConnectError, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise ServiceError(
                f"the service at {self.where} cannot be reached ({_line(error)}); start it with `python -m core serve`, "
                "or correct AMBISCOPE_ENGINE_URL"
            ) from None
        except httpx.HTTPError as error:
            raise ServiceError(f"the connection to the service at {self.where} broke ({_line(error)}); ask again") from None

    def _check(self, response: httpx.Response) -> None:
        """Raises for whatever is no success of a service of this form."""
        said = response.headers.get(API_HEADER)
        if said is None:
            kind = response.headers.get("content-type", "").partition(";")[0] or "nothing that says what it is"
            raise ServiceError(
                f"{self.where} answers with {kind} (HTTP {response.status_code}) and is no service of Ambiscope; "
                "correct AMBISCOPE_ENGINE_URL, or what stands between"
            )
        if said != str(API):
            raise ServiceError(
                f"the service at {self.where} speaks form {said[:20]}, and this Ambiscope ({application_version()}) form {API}: "
                "install the same version on both sides"
            )
        if response.status_code == 401:
            raise ServiceError(
                f"the service at {self.where} refuses the key: AMBISCOPE_ENGINE_KEY must be its AMBISCOPE_SERVE_KEY"
            )
        if not response.is_success:
            raise error_from_json(self._object(response)) or self._strange(f"HTTP {response.status_code}")

    def _object(self, response: httpx.Response) -> dict[str, Any]:
        """The JSON object of a response that is small and comes in time, even from a service that sends a byte at a time."""
        end, parts, size = time.monotonic() + 4 * self._seconds, list[bytes](), 0
        for part in response.iter_bytes():
            parts.append(part)
            size += len(part)
            if time.monotonic() > end or size > MOST_BYTES:
                raise self._strange("a response that does not end")
        found = self._read(b"".join(parts))
        if not isinstance(found, dict):
            raise self._strange("JSON that is no object")
        return found

    def _read(self, text: str | bytes) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            raise self._strange("something that is no JSON") from None

    def _strange(self, what: str) -> AmbiscopeError:
        return ServiceError(f"the service at {self.where} sent {what}; install the same version of Ambiscope on both sides")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
