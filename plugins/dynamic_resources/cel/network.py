"""IP addresses and networks in CEL expressions: `ip('10.0.0.1')`, `cidr('10.0.0.0/8').containsIP('10.0.0.1')`.

Rules: k8s.io/apiserver pkg/cel/library/ip.go and cidr.go at v0.36.3, and net/netip of Go. There is neither `string(ip)`
nor `string(cidr)`: the CEL library allows no further overloads of its own functions.
"""

import re
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Final, TypeAlias

from plugins.dynamic_resources.cel.declarations import BOOL, INT, MAP, STRING, Overload, Value, declared, succeeds

_IP, _CIDR = "ip", "cidr"
_BITS: Final = re.compile(r"0|[1-9]\d{0,2}", re.ASCII)

Address: TypeAlias = IPv4Address | IPv6Address


def parse_address(text: str) -> Address:
    """Read an address. Raises ValueError, also for zones and IPv4 addresses that are written as IPv6."""
    if "%" in text:
        raise ValueError(f"IP address {text!r} with zone value is not allowed")
    try:
        found: Address = IPv6Address(text) if ":" in text else IPv4Address(text)
    except AddressValueError as error:
        raise ValueError(f"IP Address {text!r} parse error during conversion from string: {error}") from error
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        raise ValueError(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return found


def _ip(text: str) -> Value:
    return {_IP: str(parse_address(text))}


def _cidr(text: str) -> Value:
    address_text, slash, bits = text.rpartition("/")
    if not slash:
        raise ValueError(f"network address parse error during conversion from string: no '/' in {text!r}")
    address = parse_address(address_text)
    if not _BITS.fullmatch(bits) or int(bits) > address.max_prefixlen:
        raise ValueError(f"network address parse error during conversion from string: bad bits in {text!r}")
    return {_CIDR: f"{address}/{bits}"}


def _address_of(value: Value) -> Address:
    if _IP not in value:
        raise ValueError("no such overload")
    return parse_address(value[_IP])


def _network_of(value: Value) -> tuple[Address, IPv4Network | IPv6Network]:
    """The address as it was written, and the network."""
    if _CIDR not in value:
        raise ValueError("no such overload")
    text = value[_CIDR]
    address = parse_address(text.rpartition("/")[0])
    return address, IPv6Network(text, strict=False) if address.version == 6 else IPv4Network(text, strict=False)


def _as_overload_error(convert: Callable[[str], Value], text: str) -> Value:
    try:
        return convert(text)
    except ValueError as error:
        raise ValueError("no such overload") from error


def _contains_ip(value: Value, other: Value) -> bool:
    return _address_of(other) in _network_of(value)[1]


def _contains_cidr(value: Value, other: Value) -> bool:
    mine, theirs = _network_of(value)[1], _network_of(other)[1]
    return mine.version == theirs.version and mine.prefixlen <= theirs.prefixlen and mine.overlaps(theirs)


def _masked(value: Value) -> Value:
    return {_CIDR: str(_network_of(value)[1])}


def _is_link_local_multicast(value: Value) -> bool:
    address = _address_of(value)
    if isinstance(address, IPv4Address):
        return int(address) >> 8 == 0xE00000
    return int(address) >> 112 & 0xFF0F == 0xFF02


def _is_global_unicast(value: Value) -> bool:
    address = _address_of(value)
    if isinstance(address, IPv4Address) and int(address) == 0xFFFFFFFF:
        return False
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or _is_link_local(address))


def _is_link_local(address: Address) -> bool:
    return int(address) >> 16 == 0xA9FE if isinstance(address, IPv4Address) else int(address) >> 118 == 0xFE80 >> 6


def _of_ip(returns: Any, compute: Callable[[Address], Any]) -> Overload:
    return Overload(returns, [MAP], lambda value: compute(_address_of(value)))


NETWORK_FUNCTIONS: Final = (
    declared(
        "ip",
        Overload(MAP, [STRING], _ip, is_member=False),
        Overload(MAP, [MAP], lambda value: {_IP: str(_network_of(value)[0])}),
    ),
    declared("isIP", Overload(BOOL, [STRING], succeeds(parse_address), is_member=False)),
    declared(
        "ip.isCanonical", Overload(BOOL, [STRING], lambda text: str(parse_address(text)) == text, is_member=False)
    ),
    declared("family", _of_ip(INT, lambda address: address.version)),
    declared("isUnspecified", _of_ip(BOOL, lambda address: address.is_unspecified)),
    declared("isLoopback", _of_ip(BOOL, lambda address: address.is_loopback)),
    declared("isLinkLocalMulticast", Overload(BOOL, [MAP], _is_link_local_multicast)),
    declared("isLinkLocalUnicast", _of_ip(BOOL, _is_link_local)),
    declared("isGlobalUnicast", Overload(BOOL, [MAP], _is_global_unicast)),
    declared("cidr", Overload(MAP, [STRING], _cidr, is_member=False)),
    declared("isCIDR", Overload(BOOL, [STRING], succeeds(_cidr), is_member=False)),
    declared(
        "containsIP",
        Overload(BOOL, [MAP, STRING], lambda value, text: _contains_ip(value, _as_overload_error(_ip, text))),
        Overload(BOOL, [MAP, MAP], _contains_ip),
    ),
    declared(
        "containsCIDR",
        Overload(BOOL, [MAP, STRING], lambda value, text: _contains_cidr(value, _as_overload_error(_cidr, text))),
        Overload(BOOL, [MAP, MAP], _contains_cidr),
    ),
    declared("prefixLength", Overload(INT, [MAP], lambda value: _network_of(value)[1].prefixlen)),
    declared("masked", Overload(MAP, [MAP], _masked)),
)
