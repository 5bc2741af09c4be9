"""Extenders that answer as a test says, without HTTP."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler.api.pods.pod import Pod
from scheduler.config.extenders import Extender as Settings
from scheduler.engine.engine import ExtenderAccess
from scheduler.extenders.chain import Extenders, FoundPod
from scheduler.extenders.extender import CallFailed, Extender
from scheduler.extenders.roster import Roster
from scheduler.extenders.wire import Body
from scheduler.framework.errors import ClusterError
from scheduler.process.metrics import Metrics
from tests.fakes.world import settle

Answer = Callable[[dict[str, Any]], Any]
"""What a verb answers to the JSON that it is sent: anything for JSON, bytes as they are, or an exception to raise."""

URL = "http://extender"
DEFAULTS = Settings(
    url_prefix=URL,
    filter_verb="filter",
    prioritize_verb="prioritize",
    preempt_verb="preempt",
    weight=1,
    node_cache_capable=True,
)


def everything(question: dict[str, Any]) -> dict[str, Any]:
    """Every node will do."""
    return {"NodeNames": question["NodeNames"]}


def only(*names: str, **failed: str) -> Answer:
    """These nodes will do, and the others not; `failed`: node → why."""
    return lambda question: {
        "NodeNames": [name for name in question["NodeNames"] if name in names],
        "FailedNodes": failed,
    }


def rated(**scores: int) -> Answer:
    """Node → score."""
    return lambda _: [{"Host": name, "Score": score} for name, score in scores.items()]


@dataclass
class FakeExtender:
    """One extender behind a transport that remembers what it was asked."""

    settings: Settings = DEFAULTS
    answers: dict[str, Answer] = field(default_factory=dict)
    """Verb → what it answers; the others agree to everything."""
    hangs: bool = False
    """Whether questions wait until `answer` is called."""
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    waiting: list["asyncio.Future[None]"] = field(default_factory=list)
    is_closed: bool = False

    async def post(self, verb: str, body: Body, check: Callable[[], None] | None = None) -> bytes:
        assert not self.is_closed, "asked after its connections were closed"
        if check is not None:
            check()
        question = json.loads(b"".join(body))
        self.asked.append((verb, question))
        if self.hangs:
            future = asyncio.get_running_loop().create_future()
            self.waiting.append(future)
            await future
        answer = self.answers.get(verb, _AGREES[verb])(question)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    def refresh(self) -> None:
        """There are no certificates."""

    async def close(self) -> None:
        assert not self.waiting, "closed while it is asked"
        self.is_closed = True

    async def answer(self, count: int = 0) -> None:
        """Let the questions that wait be answered, or the first of them, and wait for what follows."""
        for future in self.waiting[: count or None]:
            if not future.done():
                future.set_result(None)
        del self.waiting[: count or None]
        await settle()

    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.asked]

    def nodes(self, place: int = -1) -> list[str]:
        """The names that one of the questions had."""
        names: list[str] = sorted(self.asked[place][1]["NodeNames"])
        return names


_AGREES: dict[str, Answer] = {
    "filter": everything,
    "prioritize": lambda _: [],
    "bind": lambda _: {},
    "preempt": lambda question: {"NodeNameToMetaVictims": question["NodeNameToMetaVictims"]},
}


@dataclass
class FakePods:
    """Where whole pods come from."""

    found: dict[str, FoundPod | ClusterError | None] = field(default_factory=dict)
    """UID → what is read, if not just the pod itself, unbound."""
    read_uids: list[str] = field(default_factory=list)

    async def read(self, pod: Pod) -> FoundPod | None:
        self.read_uids.append(pod.uid)
        found = self.found.get(pod.uid, FoundPod(json.dumps({"metadata": {"name": pod.name}}).encode(), ""))
        if isinstance(found, ClusterError):
            raise found
        return found


def failing(text: str = "it is away", *, was_sent: bool = True) -> Answer:
    """No answer."""
    return lambda _: CallFailed(text, "connection", was_sent=was_sent)


def an_extender(answers: dict[str, Answer] | None = None, /, *, hangs: bool = False, **settings: Any) -> FakeExtender:
    """An extender that knows the nodes and all verbs but bind, with these answers and settings."""
    return FakeExtender(replace(DEFAULTS, **settings), answers or {}, hangs)


def extenders_of(*fakes: FakeExtender) -> Extenders:
    return roster_of(*fakes).extenders


def roster_of(*fakes: FakeExtender) -> Roster:
    by_settings = {fake.settings: fake for fake in fakes}
    assert len(by_settings) == len(fakes)
    return Roster(lambda settings, _: by_settings[settings], Metrics(), [fake.settings for fake in fakes])


def extender_access(*fakes: FakeExtender, pods: FakePods | None = None) -> ExtenderAccess:
    """What an engine needs to ask these."""
    return ExtenderAccess(roster_of(*fakes), pods or FakePods())


def names_of(extenders: Sequence[Extender]) -> list[str]:
    return [extender.name for extender in extenders]
