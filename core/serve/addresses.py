"""IP addresses: which ones are this machine's, and the network that each belongs to.  Imports nothing of Ambiscope."""

from __future__ import annotations

import ipaddress
from functools import lru_cache


def is_local(host: str) -> bool:
    """Whether a host is a loopback address, or a name that always means one."""
    name = host.strip("[]").partition("%")[0].rstrip(".").lower()
    try:
        ip = ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


def host_of(header: str) -> str:
    """The host of a Host header, without its port."""
    return header[: header.find("]") + 1] if header.startswith("[") else header.partition(":")[0]


@lru_cache(4096)
def network(address: str) -> str:
    """The network that counts as one client: an IPv4 address, or the /64 of an IPv6 address, which one customer has.  Empty for
    anything that isn't an address.

    >>> [network(a) for a in ("192.0.2.7", "::ffff:192.0.2.7", "2001:db8:1:2:3::4", "nonsense")]
    ['192.0.2.7', '192.0.2.7', '2001:db8:1:2::', '']
    """
    try:
        ip = ipaddress.ip_address(address.strip().strip("[]").partition("%")[0])
    except ValueError:
        return ""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((ip, 64), strict=False).network_address)
    return str(ip)
