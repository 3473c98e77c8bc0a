"""Addresses of a language model's endpoint and of a service, checked before anything is sent."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from core.errors import InputError


def check_url(url: str, key: str = "", owner: str = "LM", example: str = "http://127.0.0.1:8123/v1", path: str = "/v1") -> str:
    """The address without a trailing slash, and with `path` if it has none.  `owner` is LM or ENGINE, the word in the names of
    its settings.

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
    """Whether a host may be local.  A number counts in any form that connecting accepts (0xA9FEA9FE, 127.1); a name counts if
    it has no dot (a container) or is under one of NEAR_NAMES."""
    if not host.isascii():  # such as full-width digits and dots, which are normalised on connecting
        return False
    try:
        return near(socket.inet_ntoa(socket.inet_aton(host)))
    except OSError:
        pass
    return near(host) if ":" in host else "." not in host.rstrip(".") or host.rstrip(".").endswith(NEAR_NAMES)
