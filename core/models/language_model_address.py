"""Where a language model's endpoint is, checked before anything is sent there."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from core.errors import InputError
from core.settings import Settings


@dataclass(frozen=True, slots=True)
class Address:
    """Where and how to call.  `key` is kept out of repr."""

    url: str  # without a slash at its end
    model: str
    key: str = field(default="", repr=False)
    timeout: float = 60.0  # seconds of one call, retries included
    concurrency: int = 8
    retries: int = 3
    max_bytes: int = 1 << 20
    backoff: float = 0.5  # seconds before the first retry; doubled each time

    @classmethod
    def of(cls, settings: Settings) -> Address:
        """Raises InputError for an address that is none, or that the key must not go to."""
        return cls(
            check_url(settings.lm_url, settings.lm_key),
            settings.lm_model,
            settings.lm_key,
            settings.lm_timeout,
            settings.lm_concurrency,
            settings.lm_retries,
            settings.lm_max_response_kb * 1024,
        )


def check_url(url: str, key: str = "") -> str:
    """The address without a slash at its end, with /v1 where it has no path.

    Raises InputError for another scheme than http and https, for an address with a user, a query or a fragment, and for a key that would go
    unencrypted to a public address.
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise InputError(f"AMBISCOPE_LM_URL is no address ({error}); it looks like http://127.0.0.1:8123/v1") from None
    if parts.scheme not in ("http", "https") or not host:
        raise InputError("AMBISCOPE_LM_URL must begin with http:// or https:// and name a host, as http://127.0.0.1:8123/v1")
    if parts.username is not None or parts.query or parts.fragment:
        raise InputError(
            "AMBISCOPE_LM_URL has a user, a query or a fragment; put the key into AMBISCOPE_LM_KEY and leave them out"
        )
    if key and parts.scheme == "http" and not _near(host):
        raise InputError(f"the key would go unencrypted to {host}; use https in AMBISCOPE_LM_URL")
    if any(ord(c) < 33 or ord(c) > 126 for c in key):
        raise InputError("AMBISCOPE_LM_KEY has a blank, a line break or a character that no key has; set it again")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or '/v1'}"


def _near(host: str) -> bool:
    """This machine or a private network: loopback, RFC 1918, a name without a dot (a container's) or under .local, .internal, .lan."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal", ".lan"))
    return address.is_private and not address.is_unspecified
