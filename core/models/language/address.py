"""The address of a language model's endpoint, checked before anything is sent."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from core.errors import InputError
from core.settings import Settings


@dataclass(frozen=True, slots=True)
class Address:
    """Where and how to call.  `key` is kept out of repr."""

    url: str  # without a trailing slash
    model: str
    key: str = field(default="", repr=False)
    timeout: float = 60.0  # seconds of one call, retries included
    concurrency: int = 8
    retries: int = 3
    max_bytes: int = 1 << 20
    first_pause: float = 0.5  # seconds before the first retry; doubled each time

    @classmethod
    def from_settings(cls, settings: Settings) -> Address:
        """Raises InputError for an invalid address, or one that must not receive the key."""
        return cls(
            check_url(settings.lm_url, settings.lm_key),
            settings.lm_model,
            settings.lm_key,
            settings.lm_timeout,
            settings.lm_concurrency,
            settings.lm_retries,
            settings.lm_max_response_kb * 1024,
        )


def check_url(url: str, key: str = "", owner: str = "LM", example: str = "http://127.0.0.1:8123/v1", path: str = "/v1") -> str:
    """The address without a trailing slash, with `path` if it has none.  `owner`: LM or ENGINE, the word in the names of its settings.

    Raises InputError for another scheme than http and https, for an address with a user, a query or a fragment, and for a key that would be
    sent unencrypted to an address that is not local (`near`).  Host names are not resolved here: `near` is checked again on connecting.
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise InputError(f"AMBISCOPE_{owner}_URL is not an address ({error}); it should look like {example}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise InputError(f"AMBISCOPE_{owner}_URL must begin with http:// or https:// and name a host, such as {example}")
    if parts.username is not None or parts.query or parts.fragment:
        raise InputError(f"AMBISCOPE_{owner}_URL has a user, a query or a fragment; remove them and set AMBISCOPE_{owner}_KEY")
    if key and parts.scheme == "http" and not _may_be_near(host):
        raise InputError(f"the key would be sent unencrypted to {host}; use https in AMBISCOPE_{owner}_URL")
    if any(ord(c) < 33 or ord(c) > 126 for c in key):
        raise InputError(f"AMBISCOPE_{owner}_KEY contains a space, a line break or another invalid character; set it again")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or path}"


NEAR = tuple(map(ipaddress.ip_network, ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")))
METADATA = ipaddress.ip_address("fd00:ec2::254")  # cloud metadata, inside fc00::/7; the others are link-local or outside NEAR
NEAR_NAMES = (".localhost", ".local", ".internal", ".lan")


def near(address: str) -> bool:
    """True for this machine and private networks (RFC 1918, RFC 4193); false for link-local addresses, which serve cloud metadata."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return ip != METADATA and any(ip in network for network in NEAR if network.version == ip.version)


def _may_be_near(host: str) -> bool:
    """Whether a host may be local: by its number, in any form that connecting accepts (0xA9FEA9FE, 127.1), or by its name: without a dot (a
    container) or under one of NEAR_NAMES."""
    if not host.isascii():  # such as full-width digits and dots, which are normalised on connecting
        return False
    try:
        return near(socket.inet_ntoa(socket.inet_aton(host)))
    except OSError:
        pass
    return near(host) if ":" in host else "." not in host.rstrip(".") or host.rstrip(".").endswith(NEAR_NAMES)
