"""The API server's version and its clock."""

import time
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

import aiohttp
import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import BadStatus, Client, Reply, content_of, reason_of

SECONDS: Final = 10.0


class ApiServer(NamedTuple):
    """The API server's own description."""

    version: str
    """As `v1.36.3`; empty if it does not say."""

    ahead: float | None = None
    """Seconds by which its clock is ahead of this machine's, to a second or so; None if it does not show the time."""


async def ask_api_server(client: Client) -> ApiServer:
    """Raises ClusterError without an answer."""
    try:
        began = time.time()
        async with await client.request("GET", "/version", timeout=aiohttp.ClientTimeout(total=SECONDS)) as response:
            middle = (began + time.time()) / 2
            body = await content_of(response, 1 << 16)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ClusterError(f"cannot ask the API server: {reason_of(error)}") from error
    if response.status in (401, 403):
        raise BadStatus("asking the API server", Reply(response.status, body))
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
