"""The questions that checks may ask a cluster: every answer is bounded in size, and no question waits for long."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import orjson

from scheduler.api.decoding import Decoder, Unreadable, convert
from scheduler.api.reviews import User
from scheduler.doctor.evidence.objects import Page
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.framework.nodes.resources import ApiResource
from scheduler.kube.http.client import BadStatus, Client, Reply
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.informers.served import Served
from scheduler.kube.permissions import Permission, missing_permissions
from scheduler.kube.services.api_server import ApiServer, ask_api_server
from scheduler.kube.services.reviews import Reviews
from scheduler.kube.services.service_proxy import DOCTOR, RunningScheduler

PAGE: Final = 500
MAX_PAGES: Final = 20
"""Of a list: 10,000 objects."""

SECONDS: Final = 10.0
"""For one call."""

S = TypeVar("S")
T = TypeVar("T")


class NotThere(ClusterError):
    """There is no such object, or nothing of its kind."""


class NotAllowed(ClusterError):
    """The user may not read it."""


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """A list, or its beginning."""

    items: tuple[T, ...]
    is_whole: bool
    count: int | None = None
    """How many there are, if the API server says."""


class Cluster:
    """Raises ClusterError for whatever is not answered as it should be."""

    def __init__(self, client: Client, namespace: str, service: str) -> None:
        self._client = client
        self._scheduler = RunningScheduler(client, namespace, service, DOCTOR)
        self._get = Operation("GET", "doctor", CallLimit(4), SECONDS)
        self._post = Operation("POST", "selfsubjectreviews", CallLimit(1), SECONDS, fenced=False)

    async def server(self) -> ApiServer:
        """Version and clock of the API server."""
        return await ask_api_server(self._client)

    async def get(self, path: str, type_: type[T]) -> T:
        """Read an object. Raises NotThere, too."""
        reply = await self._client.call(self._get, path)
        if reply.status == 404:
            raise NotThere(reply.message)
        if not reply.ok:
            raise _refused(reply)
        return _read(Decoder[T](type_).decode, reply.body, path)

    async def list(self, path: str, type_: type[T], pages: int = MAX_PAGES, **query: str) -> Listed[T]:
        """Read a list, up to so many pages; empty if its kind is not served."""
        items = list[T]()
        base = "".join(f"&{key}={quote(value, safe='')}" for key, value in query.items())
        more = ""
        for _ in range(pages):
            reply = await self._client.page(self._get, path, PAGE, f"{base}{more}")
            if reply.status == 404:
                return Listed((), is_whole=True)
            if not reply.ok:
                raise _refused(reply)
            page = _read(Decoder[Page](Page).decode, reply.body, path)
            items += (_read(lambda item: convert(item, type_), each, path) for each in page.items or ())
            if not page.metadata.continue_:
                return Listed(tuple(items), is_whole=True, count=len(items))
            more = f"&continue={quote(page.metadata.continue_, safe='')}"
        left = page.metadata.remaining_item_count
        return Listed(tuple(items), is_whole=False, count=None if left is None else len(items) + left)

    async def user(self) -> str:
        """The name by which the API server knows us."""
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        reply = await self._client.call(self._post, path, orjson.dumps(review))
        if not reply.ok:
            raise _refused(reply)
        status = _read(Decoder[dict[str, Any]](dict).decode, reply.body, path).get("status")
        info = status.get("userInfo") if isinstance(status, Mapping) else None
        return str(info.get("username", "")) if isinstance(info, Mapping) else ""

    async def missing(self, permissions: Sequence[Permission], account: str = "") -> Sequence[Permission]:
        """The permissions that an account, as `namespace/name`, has not; without one, those that we have not."""
        user = user_of(account) if account and await self.user() != user_of(account).username else None
        try:
            return await missing_permissions(self._client, permissions, user)
        except ConfigError as error:
            raise ClusterError(str(error)) from error
        except BadStatus as error:
            if error.status == 403:
                raise _not_allowed(str(error)) from error
            raise

    async def may_read(self, account: str, path: str) -> bool:
        """Whether an account may `get` a path of the scheduler's port."""
        return (await Reviews(self._client).review_access(user_of(account), path, "get")).allowed

    async def serves(self, resource: ApiResource) -> bool:
        return await Served(self._client, resource).ask()

    async def page(self, path: str) -> bytes:
        return await self._scheduler.page(path)


def user_of(account: str) -> User:
    """A service account, `namespace/name`, as the API server knows it."""
    namespace, _, name = account.partition("/")
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(username=f"system:serviceaccount:{namespace}:{name}", groups=groups)


def _refused(reply: Reply) -> ClusterError:
    return _not_allowed(reply.message) if reply.status == 403 else BadStatus("the API server", reply)


def _not_allowed(message: str) -> NotAllowed:
    """In the API server's words, without the name of the user."""
    _, found, what = message.partition(" cannot ")
    return NotAllowed(f"you cannot {what}" if found else message)


def _read(read: Callable[[S], T], value: S, path: str) -> T:
    try:
        return read(value)
    except Unreadable as error:
        raise ClusterError(f"{path}: what the API server answers cannot be read: {error}") from error
