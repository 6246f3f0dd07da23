"""Addresses that requests may be sent to: those of a host, checked in every form that reaches another host.

Private addresses need `private: true`. Services of clouds that give credentials to their machines are never asked.
"""

import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from AntiSSRF import IPAddressRanges

Networks = tuple[IPv4Network | IPv6Network, ...]
Target = tuple[socket.AddressFamily, Any]  # the arguments of `socket.socket` and of `connect`

# Credentials of clouds: at a link-local address almost everywhere, also here.
CREDENTIALS = (
    *("169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.0.23", "169.254.42.42"),
    *("100.100.100.200", "100.96.0.96", "168.63.129.16", "192.0.0.192"),  # Alibaba, Volcengine, Azure, Oracle
)
CREDENTIALS_6 = (
    "fd00:ec2::/32",
    "fd20:ce::/64",
    "fd00:a9fe:a9fe::/48",
    "fd00:42::42",
)  # Amazon, Google, Akamai, Scaleway
NEVER: Networks = tuple(
    map(ip_network, (*CREDENTIALS, *CREDENTIALS_6, *IPAddressRanges.link_local, *IPAddressRanges.multicast))
)
NOT_PUBLIC: Networks = tuple(map(ip_network, IPAddressRanges.recommended_latest))
# Prefixes of translators that everyone uses, and `::a.b.c.d`.
TRANSLATED = tuple(map(IPv6Network, (*IPAddressRanges.ipv4_ipv6_translat, "::/96")))
# Bytes of an address of IPv6 that hold one of IPv4, for each length of a translator's prefix (RFC 6052).
POSITIONS = ((4, 5, 6, 7), (5, 6, 7, 9), (6, 7, 9, 10), (7, 9, 10, 11), (9, 10, 11, 12), (12, 13, 14, 15))


class ForbiddenAddressError(Exception):
    """A host has an address to which nothing may be sent."""


def resolve(host: str, port: int, *, private: bool) -> list[Target]:
    """Return the addresses of a host. Raises ForbiddenAddressError if one of them may not be used, and OSError."""
    infos = socket.getaddrinfo(host, port, socket.AF_UNSPEC, socket.SOCK_STREAM)
    targets: list[Target] = list(dict.fromkeys((family, address) for family, _, _, _, address in infos))
    if not targets or not all(is_allowed(str(address[0]), private=private) for _, address in targets):
        raise ForbiddenAddressError
    return targets


def is_allowed(text: str, *, private: bool) -> bool:
    """Return whether requests may be sent to an address, and to each address that it may stand for."""
    address = ip_address(text)
    meant: set[IPv4Address | IPv6Address] = {address}
    if isinstance(address, IPv6Address):
        # A translator of the site may have any prefix, so only whole known addresses count.
        if any(str(one) in CREDENTIALS for one in _list_translated(address)):
            return False
        meant.update(_list_meant(address))
    forbidden = NEVER if private else NEVER + NOT_PUBLIC
    return not any(one in network for one in meant for network in forbidden)


def _list_meant(address: IPv6Address) -> Iterator[IPv4Address]:
    """Yield the addresses of IPv4 that an address of IPv6 stands for by its prefix."""
    yield from filter(None, (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())))
    if any(address in network for network in TRANSLATED):
        yield from _list_translated(address)


def _list_translated(address: IPv6Address) -> Iterator[IPv4Address]:
    for positions in POSITIONS:
        yield IPv4Address(bytes(address.packed[position] for position in positions))
