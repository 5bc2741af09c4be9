"""GET over HTTPS from a scheduler under test, which nobody has signed a certificate for."""

import atexit
import http.client
import ssl
from collections import defaultdict

TIMEOUT = 5.0


def any_certificate() -> ssl.SSLContext:
    """A client's context that asks for no signature."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


_ANY = any_certificate()

_idle: dict[tuple[str, int], list[http.client.HTTPSConnection]] = defaultdict(list)
"""Kept, as a test that looks many times a second would otherwise be taken for an attack."""


def http_get(
    port: int, path: str, host: str = "127.0.0.1", *, token: str = "", context: ssl.SSLContext | None = None
) -> tuple[int, str]:
    """Status and body; status 0 if nobody answers. May be called in several threads.

    `context`: one that shows a client certificate; its connection is not kept.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    idle = None if context else _idle[host, port]
    while idle:
        try:
            kept = idle.pop()
        except IndexError:  # another thread took it
            break
        try:
            return _ask(kept, path, headers, idle)
        except (OSError, http.client.HTTPException):
            kept.close()  # closed by the server meanwhile: perhaps it is another one by now
    new = http.client.HTTPSConnection(host, port, timeout=TIMEOUT, context=context or _ANY)
    try:
        return _ask(new, path, headers, idle)
    except (OSError, http.client.HTTPException):
        new.close()
        return 0, ""


def _ask(
    connection: http.client.HTTPSConnection,
    path: str,
    headers: dict[str, str],
    idle: list[http.client.HTTPSConnection] | None,
) -> tuple[int, str]:
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    result = answer.status, answer.read().decode()
    if answer.will_close or idle is None:
        connection.close()
    else:
        idle.append(connection)
    return result


@atexit.register
def _close_all() -> None:
    for connections in _idle.values():
        for connection in connections:
            connection.close()
