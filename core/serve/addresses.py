"""Whether a host is this machine alone; imports nothing of Ambiscope."""

from __future__ import annotations

import ipaddress


def is_local(host: str) -> bool:
    """An address of this machine alone, or a name that always means one."""
    name = host.strip("[]").partition("%")[0].rstrip(".").lower()
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def asked_host(header: str) -> str:
    """The host of a Host header, without its port."""
    return header[: header.find("]") + 1] if header.startswith("[") else header.partition(":")[0]
