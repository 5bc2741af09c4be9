"""URLs in CEL expressions: `url(device.attributes["d"].home).getHostname() == "example.com"`.

Rules: k8s.io/apiserver pkg/cel/library/urls.go at v0.36.3, and Go's net/url (ParseRequestURI, Parse), which takes and
refuses other texts than Python's urllib does.
"""

import re
import string
from typing import Final, NamedTuple

from cel_expr_python import cel

from plugins.dynamic_resources.cel.declarations import BOOL, MAP, STRING, Overload, Value, declared, succeeds
from plugins.dynamic_resources.cel.network import parse_address

_URL: Final = "url"
_MAX_PARAMETERS: Final = 10_000

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_UNRESERVED: Final = frozenset(f"{string.ascii_letters}{string.digits}-._~".encode())
_IN_PATH: Final = _UNRESERVED | frozenset(b"$&+,/:;=@")
_IN_ENCODED_PATH: Final = _IN_PATH | frozenset(b"!'()*[]%")
_IN_HOST: Final = _UNRESERVED | frozenset(b"!\"$&'()*+,:;<=>[]")
_HEX: Final = frozenset(string.hexdigits.encode())


class _Parts(NamedTuple):
    scheme: str = ""
    host: str = ""
    path: str = ""
    """As it is written, and escaped where it must be."""
    query: str = ""


def _parsed(text: str) -> _Parts:
    """Read a URL. Raises ValueError. Rule: parse, once for a request and once with its fragment."""
    _parse(text, for_request=True)
    before, _, fragment = text.partition("#")
    found = _parse(before, for_request=False)
    _unescape(fragment.encode())
    return found


def _parse(text: str, *, for_request: bool) -> _Parts:
    if _CONTROL.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if not text and for_request:
        raise ValueError("empty url")
    if text == "*":
        return _Parts(path="*")
    if text.startswith(":"):
        raise ValueError("missing protocol scheme")
    match = _SCHEME.match(text)
    scheme = match[1].lower() if match is not None else ""
    rest, _, query = (text if match is None else text[match.end() :]).partition("?")
    if not rest.startswith("/"):
        if scheme:
            return _Parts(scheme, query=query)
        if for_request:
            raise ValueError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    host = ""
    if rest.startswith("//") and (scheme or (not for_request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        host = _host(scheme, authority)
    return _Parts(scheme, host, _path(rest), query)


def _host(scheme: str, authority: str) -> str:
    """Rule: parseAuthority, parseHost."""
    user, at, host = authority.rpartition("@")
    found = _literal_host(host) if "[" in host else _named_host(scheme, host)
    if at:
        if not _USER.fullmatch(user):
            raise ValueError("net/url: invalid userinfo")
        _unescape(user.encode())
    return found


def _literal_host(host: str) -> str:
    name, bracket, port = host[1:].rpartition("]")
    if host.rfind("[") > 0 or not bracket or not _PORT.fullmatch(port):
        raise ValueError(f"invalid IP-literal in {host!r}")
    address, zone_mark, zone = name.partition("%25")
    plain = _unescape(address.encode(), of_host=True) + (_unescape((zone_mark + zone).encode()) if zone_mark else "")
    number, percent, zone = plain.partition("%")
    if (percent and not zone) or ":" not in number:
        raise ValueError(f"invalid host: {plain!r}")
    try:
        parse_address(number)
    except ValueError as error:
        if "IPv4-mapped" not in str(error):
            raise
    return f"[{plain}]{port}"


def _named_host(scheme: str, host: str) -> str:
    first = host.find(":")
    if first != -1:
        colon = first if scheme in ("http", "https") else host.rfind(":")
        if not _PORT.fullmatch(host[colon:]):
            raise ValueError(f"invalid port {host[colon:]!r} after host")
    return _unescape(host.encode(), of_host=True)


def _unescape(text: bytes, *, of_host: bool = False) -> str:
    """Raises ValueError for malformed text, and for characters that a host may not have. Rule: unescape."""
    found = bytearray()
    i = 0
    while i < len(text):
        byte = text[i]
        if byte == ord("%"):
            digits = text[i + 1 : i + 3]
            if len(digits) < 2 or not _HEX.issuperset(digits):
                raise ValueError(f"invalid URL escape {text[i : i + 3]!r}")
            if of_host and digits[0] < ord("8") and digits != b"25":
                raise ValueError(f"invalid URL escape {text[i : i + 3]!r}")
            byte = int(digits, 16)
            i += 2
        elif of_host and byte < 0x80 and byte not in _IN_HOST:
            raise ValueError(f"invalid character {chr(byte)!r} in host name")
        found.append(byte)
        i += 1
    return found.decode(errors="replace")


def _path(written: str) -> str:
    """Return the path with what must be escaped. Rule: setPath, EscapedPath."""
    _unescape(written.encode())
    if _IN_ENCODED_PATH.issuperset(written.encode()):
        return written
    plain = re.sub(rb"%([0-9A-Fa-f]{2})", lambda match: bytes((int(match[1], 16),)), written.encode())
    return "".join(chr(byte) if byte in _IN_PATH else f"%{byte:02X}" for byte in plain)


def _query(value: Value) -> dict[str, list[str]]:
    """Rule: ParseQuery, of which errors are ignored."""
    found: dict[str, list[str]] = {}
    query = _parts_of(value).query
    if query.count("&") >= _MAX_PARAMETERS:
        return found
    for pair in query.split("&"):
        if not pair or ";" in pair:
            continue
        name, _, text = pair.replace("+", " ").partition("=")
        try:
            plain_name, plain_text = _unescape(name.encode()), _unescape(text.encode())
        except ValueError:
            continue
        found.setdefault(plain_name, []).append(plain_text)
    return found


def _url(text: str) -> Value:
    _parsed(text)
    return {_URL: text}


def _is_url(text: str) -> None:
    _parse(text, for_request=True)


def _parts_of(value: Value) -> _Parts:
    if _URL not in value:
        raise ValueError("no such overload")
    return _parsed(value[_URL])


def _split_host(value: Value) -> tuple[str, str]:
    """Rule: splitHostPort."""
    host, port = _parts_of(value).host, ""
    colon = host.rfind(":")
    if colon != -1 and _PORT.fullmatch(host[colon:]):
        host, port = host[:colon], host[colon + 1 :]
    return (host[1:-1] if host.startswith("[") and host.endswith("]") else host), port


URL_FUNCTIONS: Final = (
    declared("url", Overload(MAP, [STRING], _url, is_member=False)),
    declared("isURL", Overload(BOOL, [STRING], succeeds(_is_url), is_member=False)),
    declared("getScheme", Overload(STRING, [MAP], lambda value: _parts_of(value).scheme)),
    declared("getHost", Overload(STRING, [MAP], lambda value: _parts_of(value).host)),
    declared("getHostname", Overload(STRING, [MAP], lambda value: _split_host(value)[0])),
    declared("getPort", Overload(STRING, [MAP], lambda value: _split_host(value)[1])),
    declared("getEscapedPath", Overload(STRING, [MAP], lambda value: _parts_of(value).path)),
    declared("getQuery", Overload(cel.Type.Map(STRING, cel.Type.List(STRING)), [MAP], _query)),
)
