"""The API server's version, whether Loadmaster is made for it, and its clock."""

import re
import time
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

import aiohttp
import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import Client, content_of, reason_of

OLDEST, NEWEST = (1, 34), (1, 37)
"""The minor versions that Loadmaster is tested with."""

SECONDS: Final = 10.0

_MINOR: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?!\d)", re.ASCII)


class ApiServer(NamedTuple):
    """Its own description."""

    version: str
    """As `v1.36.3`; empty if it does not say."""

    ahead: float | None = None
    """Seconds by which its clock is ahead of this machine's, to a second or so; None if it does not show the time."""


def minor_of(version: str) -> tuple[int, int] | None:
    """Major and minor version of `v1.36.3` or `0.2.0`; None for what is no version."""
    match = _MINOR.match(version)
    return (int(match[1]), int(match[2])) if match else None


def version_problem(version: str) -> str:
    """Say how an API server's version is outside of what Loadmaster is tested with; empty if it is not."""
    minor = minor_of(version)
    if minor is None:
        return f"the API server's version, {version[:40]!r}, cannot be read"
    oldest, newest = (".".join(map(str, each)) for each in (OLDEST, NEWEST))
    if minor < OLDEST:
        return f"the API server is {version}, older than the oldest that Loadmaster is tested with, {oldest}"
    if minor > NEWEST:
        return f"the API server is {version}, newer than the newest that Loadmaster is tested with, {newest}"
    return ""


async def ask_api_server(client: Client) -> ApiServer:
    """Raises ClusterError without an answer."""
    session, credentials = await client.authorized_session(), client.credentials
    try:
        began = time.time()
        async with session.get(
            f"{credentials.server}/version",
            timeout=aiohttp.ClientTimeout(total=SECONDS),
            allow_redirects=False,
            server_hostname=credentials.server_hostname,
            ssl=credentials.ssl_context,
        ) as response:
            middle = (began + time.time()) / 2
            body = await content_of(response, 1 << 16)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ClusterError(f"cannot ask the API server: {reason_of(error)}") from error
    if response.status in (401, 403):
        raise ClusterError(f"the API server does not say its version: HTTP {response.status}")
    try:
        version = _decoder.decode(body).git_version
    except Unreadable:
        version = ""
    return ApiServer(version, _ahead(response.headers.get("Date", ""), middle))


def _ahead(date: str, now: float) -> float | None:
    try:
        # Whole seconds, cut off: half a second is right on average.
        return parsedate_to_datetime(date).timestamp() + 0.5 - now
    except ValueError:
        return None


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


_decoder: Final[Decoder[_Version]] = Decoder(_Version)
