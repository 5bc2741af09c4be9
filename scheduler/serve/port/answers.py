"""The port's answers, in kube-scheduler's words: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters."""

import json
from collections.abc import AsyncGenerator
from html import escape
from typing import Final, NamedTuple

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"

LEADING: Final = "X-Loadmaster-Leading"
"""The header that says whether the replica that answers leads: a client of the Service may want another one."""


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    body: bytes | AsyncGenerator[bytes, None]
    """A generator makes it while it is sent."""

    content_type: str = TEXT
    close: bool = False
    """Whether the connection ends with it."""

    goes_on: bool = False
    """Whether the generator goes on for as long as the reader wants: see scheduler.serve.port.streams."""

    headers: tuple[tuple[str, str], ...] = ()
    """Headers in addition to those of every answer."""


EMPTY: Final = Answer(200, b"")
NOT_FOUND: Final = Answer(404, b"404 page not found\n")
NO_METHOD: Final = Answer(405, b"only GET and HEAD are served\n", close=True)
NOT_ACCEPTABLE: Final = Answer(406, b"only text, and JSON as config.k8s.io has it, are served\n")
NO_METHOD_BUT_PUT: Final = Answer(406, b"unsupported http method", close=True)
NO_BODY: Final = Answer(413, b"a request has no body here\n", close=True)
TOO_LONG: Final = Answer(413, b"that is too long\n", close=True)


def _status(code: int, reason: str, message: str, details: dict[str, str] | None = None) -> bytes:
    fields = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    fields["reason"] = reason
    if details is not None:
        fields["details"] = details
    return (
        json.dumps({**fields, "code": code}, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"
    )


UNAUTHORIZED: Final = Answer(401, _status(401, "Unauthorized", "Unauthorized"), JSON, close=True)
"""Its connection ends: each token that is tried costs its sender a new one, and these are limited."""


def forbidden(user: str, verb: str, path: str, reason: str) -> Answer:
    """`reason`: the authorizer's, perhaps empty."""
    message = escape(f"forbidden: User {json.dumps(user)} cannot {verb} path {json.dumps(path)}", quote=False)
    return Answer(403, _status(403, "Forbidden", f"{message}: {reason}" if reason else message, {}), JSON)


def internal_error(path: str, error: Exception) -> Answer:
    """`path`: with its query, as it was asked for."""
    message = escape(f"Internal Server Error: {json.dumps(path)}: {error}", quote=False)
    return Answer(500, message.encode(errors="replace") + b"\n")
