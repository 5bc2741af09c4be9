"""What went through the proxies: every binding with its result, and what each scheduler was told of pods and nodes.

Times are those of `time.monotonic`. An incarnation is a process of a replica: after a restart there is another one.
"""

import gzip
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.chaos.wire import Request


@dataclass(slots=True)
class Post:
    """One binding request."""

    uid: str
    pod: str
    """namespace/name"""
    node: str
    incarnation: str
    received: float
    status: int = 0
    """What the API server answered; 0: nothing, or the proxy did not forward it."""
    forwarded: bool = False
    treatment: str = "forward"


@dataclass(frozen=True, slots=True)
class Read:
    """A pod that an incarnation has asked for, and was told."""

    pod: str
    """namespace/name"""
    incarnation: str
    answered: float


@dataclass(slots=True)
class Told:
    """What an incarnation was told of the pods on nodes, and of nodes: UID → when first."""

    bound: dict[str, float] = field(default_factory=dict)
    nodes: dict[str, float] = field(default_factory=dict)


class Record:
    """Of one round, or of a whole run."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.posts: list[Post] = []
        self.reads: list[Read] = []
        self.told: defaultdict[str, Told] = defaultdict(Told)
        self._now = now

    def post(self, request: Request, incarnation: str) -> Post:
        """Note a binding that has come."""
        binding = orjson.loads(request.body)
        meta = binding["metadata"]
        name = f"{meta.get('namespace', '')}/{meta['name']}"
        post = Post(meta.get("uid", ""), name, binding["target"]["name"], incarnation, self._now())
        self.posts.append(post)
        return post

    def read(self, pod: str, incarnation: str) -> None:
        """Note that somebody has read a pod."""
        self.reads.append(Read(pod, incarnation, self._now()))

    def successes(self) -> dict[str, list[Post]]:
        """UID → the bindings of it that the API server has carried out."""
        found: dict[str, list[Post]] = {}
        for post in self.posts:
            if 200 <= post.status < 300:
                found.setdefault(post.uid, []).append(post)
        return found

    def line_told(self, incarnation: str, line: bytes) -> None:
        """Note a line of a watch that has been passed on."""
        event = parse(line)
        if isinstance(event, dict) and event.get("type") in ("ADDED", "MODIFIED"):
            self._objects(incarnation, [event["object"]])

    def list_told(self, incarnation: str, body: bytes, *, gzipped: bool) -> None:
        """Note a page of a list that has been passed on."""
        page = parse(gzip.decompress(body) if gzipped else body)
        if not isinstance(page, dict) or page.get("kind") not in ("PodList", "NodeList"):
            return
        kind = page["kind"].removesuffix("List")
        self._objects(incarnation, ({"kind": kind, **item} for item in page.get("items") or ()))

    def _objects(self, incarnation: str, objects: Iterable[dict[str, Any]]) -> None:
        told, now = self.told[incarnation], self._now()
        for obj in objects:
            uid = obj["metadata"]["uid"]
            if obj.get("kind") == "Pod" and obj["spec"].get("nodeName"):
                told.bound.setdefault(uid, now)
            elif obj.get("kind") == "Node":
                told.nodes.setdefault(uid, now)


def parse(text: bytes) -> Any:
    """The JSON value, None for one that is too deep for us: such objects are part of the attack."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
