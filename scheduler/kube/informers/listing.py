"""All objects of some resources as the API server has them now, page by page.

LIST ──page────────────────► CONTINUE   until there is no further page
 │ ──404───────────────────► (nothing)  the resource is not served
 │ ──429, 5xx, no answer───► LIST       after a wait, a few times; then it fails
 │ ──401───────────────────► LIST       likewise, if we were known before: credentials end, and are renewed
 └──else───────────────────► (fails)
CONTINUE ──410, with a new place─► CONTINUE   what follows is of a later moment
         ──410, once more────────► (fails)    Expired: to be listed again from its beginning
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.files.memory import check_memory
from scheduler.framework.errors import ClusterError
from scheduler.framework.nodes.resources import ApiResource
from scheduler.kube.http.client import BadStatus, Client, NoReply, Reply
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import Meaning, RetryPolicy, meaning_of

PAGE: Final = 500
TRIES: Final = RetryPolicy(first=0.5, limit=4.0, tries=4)
SECONDS: Final = 30.0
"""For one page."""

BEGINNINGS: Final = 3
"""How often a list is begun, if the API server forgets it meanwhile."""

Pause = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a list."""

    kind: str
    """Of the objects: `Pod`."""

    items: list[msgspec.Raw]
    whole: msgspec.Raw
    """The page as it came."""

    is_later: bool = False
    """Whether it is of a later moment than the page before: the list has become too old."""


class Expired(ClusterError):
    """The API server has forgotten how the list was when it was begun."""


class _ListMeta(msgspec.Struct, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None
    kind: str = ""


_decoder: Final[Decoder[_List]] = Decoder(_List)


class Lister:
    """Lists resources, and is patient with an API server that is busy."""

    def __init__(
        self,
        client: Client,
        on_retry: Callable[[str], None] = lambda _: None,
        pause: Pause = asyncio.sleep,
    ) -> None:
        """`on_retry` is called with the failure, before each retry."""
        self._client = client
        self._on_retry = on_retry
        self._pause = pause
        self._operation = Operation("GET", "lists", CallLimit(1), SECONDS)
        self._is_known = False
        """Whether the API server has accepted our credentials."""

    async def whole(self, resource: ApiResource, counted: Callable[[int], None]) -> list[Page]:
        """Return all pages, begun again where the API server forgets the list. Raises ClusterError, MemoryError.

        `counted` is called after each page with the number of objects so far.
        """
        for beginning in range(BEGINNINGS):
            pages, count = list[Page](), 0
            try:
                async for page in self.pages(resource):
                    check_memory()
                    pages.append(page)
                    count += len(page.items)
                    counted(count)
                return pages
            except Expired as error:
                if beginning + 1 == BEGINNINGS:
                    raise
                self._on_retry(f"{error}; reading it again")
        raise AssertionError("the last beginning returns or raises")

    async def pages(self, resource: ApiResource, query: str = "") -> AsyncIterator[Page]:
        """Yield the pages of a resource; none if it is not served. Raises ClusterError.

        `query`: what else is asked for, each part after a `&`.
        """
        more, is_later = "", False
        while True:
            reply = await self._page(resource, f"{query}&continue={quote(more)}" if more else query)
            if reply.status == 404 and not more:
                return
            if reply.status == 410 and more:
                more, was_later, is_later = _place_after(reply), is_later, True
                if not more or was_later:
                    raise Expired(f"listing {resource.name}: {reply.message}")
                continue
            page = reply.read(_decoder, f"listing {resource.name}")
            if not page.kind.endswith("List"):
                raise ClusterError(f"listing {resource.name}: this is no list: {page.kind or 'it has no kind'}")
            yield Page(page.kind.removesuffix("List"), page.items or [], msgspec.Raw(reply.body), is_later)
            former, more, is_later = more, page.metadata.continue_, False
            if not more:
                return
            if more == former:
                raise ClusterError(f"listing {resource.name}: after a page comes the same one again")

    async def _page(self, resource: ApiResource, query: str) -> Reply:
        """Return an answer that says something. Raises ClusterError if none comes."""
        for failures in range(TRIES.tries):
            outcome: Reply | NoReply
            try:
                outcome = await self._client.page(self._operation, resource.path, PAGE, query)
            except NoReply as error:
                outcome = error
            if isinstance(outcome, Reply) and meaning_of(outcome) is Meaning.SETTLED:
                self._is_known = True
                return outcome
            if failures + 1 < TRIES.tries and (outcome.status != 401 or self._is_known):
                self._on_retry(f"listing {resource.name}: {outcome.message}; trying again")
                # A Retry-After has been waited for by the client.
                await self._pause(TRIES.wait(failures))
                continue
            if isinstance(outcome, Reply):
                raise BadStatus(f"listing {resource.name}", outcome)
            raise ClusterError(f"listing {resource.name}: {outcome.message}") from outcome
        raise AssertionError("the last try returns or raises")


def _place_after(reply: Reply) -> str:
    """The token to continue a list that is too old; empty if the answer has none."""
    try:
        return _decoder.decode(reply.body).metadata.continue_
    except Unreadable:
        return ""
