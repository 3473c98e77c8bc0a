"""What an address is: of this machine alone, or of which network; imports nothing of Ambiscope."""

from __future__ import annotations

import ipaddress
from functools import lru_cache


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


@lru_cache(4096)
def network(address: str) -> str:
    """What counts as one address: of IPv6 the first 64 bits, which one customer has.  Empty for none, or for what is no address.

    >>> [network(a) for a in ("192.0.2.7", "::ffff:192.0.2.7", "2001:db8:1:2:3::4", "nonsense")]
    ['192.0.2.7', '192.0.2.7', '2001:db8:1:2::', '']
    """
    try:
        found = ipaddress.ip_address(address.strip().strip("[]").partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False).network_address)
    return str(found)
