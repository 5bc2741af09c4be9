"""All objects of some resources as the API server has them now, page by page."""

from collections.abc import AsyncIterator, Iterable
from typing import Any, Final
from urllib.parse import quote

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.framework.errors import ClusterError
from scheduler.framework.resources import ApiResource
from scheduler.kube.client import BadStatus, CallLimit, Client, Operation

PAGE: Final = 500
_SECONDS: Final = 60.0


class _ListMeta(msgspec.Struct, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _ListMeta = _ListMeta()
    items: list[Any] | None = None
    kind: str = ""
    api_version: str = ""


_decoder: Decoder[_List] = Decoder(_List)


async def list_pages(client: Client, resources: Iterable[ApiResource]) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield the plural of each resource and the pages of its list. One that is not served has none.

    Raises ClusterError.
    """
    operation = Operation("GET", "lists", CallLimit(1), _SECONDS)
    for resource in resources:
        more = ""
        while True:
            reply = await client.page(operation, resource.path, PAGE, f"&continue={quote(more)}" if more else "")
            if reply.status == 404:
                break
            if not reply.ok:
                raise BadStatus(f"listing {resource.plural}", reply)
            try:
                page = _decoder.decode(reply.body)
            except Unreadable as error:
                raise ClusterError(f"listing {resource.plural}: {error}") from error
            yield resource.plural, {"kind": page.kind, "apiVersion": page.api_version, "items": page.items or []}
            more = page.metadata.continue_
            if not more:
                break
