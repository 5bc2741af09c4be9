"""A whole engine behind the real intake, with an API server whose events do not arrive as they should."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeVar

from scheduler.api.pods.pod import Pod
from scheduler.framework.errors import BindRejected
from scheduler.framework.queued import Entry
from scheduler.kube.informers.intake import Intake, node_intake, pod_intake
from tests.fakes import settle
from tests.unit.cycle.api_truth import NODES, PODS, ApiTruth, Change, Raw
from tests.unit.cycle.fakes import PROFILE, an_engine
from tests.unit.kube.fake_api import watch_line

T = TypeVar("T")

NAMES: Final = ("n1", "n2", "n3")
"""Of all nodes that ever exist."""

UNKNOWN_NODE: Final = "nowhere"


class Logged(logging.Handler):
    """Collects what the intake logs."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class World:
    """What test_disordered_events.py lets happen, and what must be true after each step and in the end."""

    def __init__(self) -> None:
        self.events = asyncio.new_event_loop()
        self.truth = ApiTruth()
        self.engine = an_engine()
        self.engine.world.hangs = True
        self.engine.world.exists = lambda uid: uid in self.truth.objects[PODS]
        self.engine.world.delete = lambda uid: self.truth.remove(PODS, uid)
        handlers, metrics = self.engine.handlers, self.engine.metrics
        self.intakes: dict[str, Intake[Any]] = {
            PODS: pod_intake(handlers, metrics),
            NODES: node_intake(handlers, metrics),
        }
        self.compared: dict[str, int] = {}
        """Resource → version of the last list that was compared."""
        self.lists: dict[str, tuple[set[str], list[Any], str]] = {}
        """Resource → UIDs, differences and version of a list that was not compared to its end."""
        self.deleted: set[str] = set()
        """UIDs of all objects of which the watch has said that they are deleted."""
        self.node_versions: dict[str, int] = {}
        """Node → the version that we had of it at the last check."""
        self.decided: dict[str, Exception | None] = {}
        """UID → the answer to a binding, which has not arrived yet."""
        self.reported: dict[str, int] = {}
        """UID → newest version that came and could not be read, since the object was last deleted."""
        self.reports = 0
        self.log = Logged()
        logging.getLogger("scheduler.kube").addHandler(self.log)

    # What happens.

    def mend(self, uid: str) -> None:
        del self.truth.faults[uid]
        resource = next(resource for resource, objects in self.truth.objects.items() if uid in objects)
        self.truth.put(resource, self.truth.objects[resource][uid])

    def tell(self, change: Change) -> None:
        """Let the watch report a change, and let all parts act on it."""
        if change.type == "DELETED":
            self.reported.pop(change.uid, None)
            self.deleted.add(change.uid)
        else:
            self.expect_report(change)
        self.intakes[change.resource].from_line(watch_line(change.type, change.raw))
        self.let_bindings_go_on()

    def expect_report(self, change: Change) -> None:
        """What cannot be read is reported, unless something newer is known or was reported, or a list was newer."""
        known = self.known(change.resource).get(change.uid)
        if change.type == "LISTED":
            newest = 0
        elif known is None:
            newest = self.compared.get(change.resource, 0)
        else:
            newest = int(known.metadata.resource_version)
        if change.fault and int(change.version) > max(newest, self.reported.get(change.uid, 0)):
            self.reported[change.uid] = int(change.version)
            self.reports += 1

    def tell_garbage(self, resource: str, type_: str, raw: Raw) -> None:
        """Let the watch report something that cannot be attributed to an object."""
        before = dict(self.known(resource))
        self.intakes[resource].from_line(watch_line(type_, raw))
        self.reports += 1
        assert self.known(resource) == before

    def compare(self, resource: str) -> None:
        self.read_list(resource)
        self.repair(resource)

    def read_list(self, resource: str) -> None:
        """The first half of a comparison, as the relister makes it; much may happen before the second."""
        intake = self.intakes[resource]
        intake.start_listing()
        items = self.truth.listed(resource)
        for item in items:
            self.expect_report(item)
        page = intake.read_page(self.truth.page(items))
        version = page.metadata.resource_version
        different = [item for item in page.items if intake.difference(item, version)]
        self.lists[resource] = {item.metadata.uid for item in page.items}, different, version

    def repair(self, resource: str) -> None:
        """The second half of a comparison."""
        intake = self.intakes[resource]
        listed, different, version = self.lists.pop(resource)
        before = dict(self.known(resource))
        for item in different:
            if intake.difference(item, version):
                intake.take(item)
        for uid in intake.uids():
            if uid not in listed and intake.is_missing(uid, version):
                intake.drop(uid)
        intake.compared(version)
        self.compared[resource] = int(version)
        intake.end_listing()
        after = self.known(resource).keys()
        newer = {uid for uid, known in before.items() if int(known.metadata.resource_version) > int(version)}
        assert newer <= after, "a list took away what is newer than it"
        assert not (after - before.keys()) & self.deleted, "a list brought back what was deleted since"
        self.let_bindings_go_on()

    def let_bindings_go_on(self) -> None:
        if self.engine.loop.bindings:
            self.run(settle())

    def place(self, queued: Entry) -> None:
        """Try a pod that was popped."""
        self.run(self._place(queued))

    async def _place(self, queued: Entry) -> None:
        self.engine.loop.schedule_one(queued)
        await settle()

    def undecided(self) -> list[str]:
        return [uid for uid in self.engine.world.hanging if uid not in self.decided]

    def decide(self, uid: str, *, refuse: bool = False) -> None:
        """The API server looks at a binding; its answer comes later."""
        bound = not refuse and self.truth.bind(uid, dict(self.engine.world.asked)[uid])
        self.decided[uid] = None if bound else BindRejected("the server says no")

    def answer(self, uid: str) -> None:
        self.run(self.engine.world.answer_binding(uid, self.decided.pop(uid)))

    def is_in_flight(self, uid: str) -> bool:
        return any(queued.pod.uid == uid for queued in self.engine.queue.in_flight_pods())

    def counted(self) -> dict[str, dict[str, int]]:
        """Node → UID → thousandths of a core, of all pods that the cache counts."""
        table = self.engine.cache.table
        found = {name: table.pods_on(name) for name in (*NAMES, UNKNOWN_NODE)}
        return {name: {pod.uid: pod.requests.get("cpu", 0) for pod in pods} for name, pods in found.items() if pods}

    def known(self, resource: str) -> Mapping[str, Any]:
        handlers = self.engine.handlers
        return handlers.known_pods() if resource == PODS else handlers.known_nodes()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.events.run_until_complete(coroutine)

    def close(self) -> None:
        logging.getLogger("scheduler.kube").removeHandler(self.log)
        self.run(self.engine.loop.finish(0))
        self.events.close()

    # What always holds.

    def check(self) -> None:
        """Raise AssertionError if anything that we believe is inconsistent."""
        self.engine.check()
        self.every_pod_is_where_its_newest_known_version_says()
        self.every_node_is_the_one_that_is_known()
        self.what_cannot_be_read_is_counted_and_logged_once_a_version()
        assert not self.engine.world.doubled, "a binding was asked for twice at once"

    def every_pod_is_where_its_newest_known_version_says(self) -> None:
        engine, known = self.engine, self.engine.handlers.known_pods()
        for uid, pod in known.items():
            if pod.node_name:
                counted = engine.cache.get(uid)
                assert counted is not None, f"{uid} is not counted"
                assert counted.node_name == pod.node_name, uid
                assert uid not in engine.queue, f"{uid} is bound and waits"
            elif pod.spec.scheduler_name == PROFILE and not pod.is_deleting:
                assert (uid in engine.queue) != engine.cache.is_assumed(uid) or self.is_in_flight(uid), f"{uid} is lost"
        for pods in engine.queue.pending_pods().values():
            assert all(queued.pod is known.get(queued.pod.uid) for queued in pods), "an old version waits"
        assert {uid for uids in self.counted().values() for uid in uids} <= known.keys(), "a ghost is counted"

    def every_node_is_the_one_that_is_known(self) -> None:
        known, table = self.engine.handlers.known_nodes(), self.engine.cache.table
        assert sorted(node.name for node in known.values()) == sorted(table.node_names())
        assert all(table.node(node.name) is node for node in known.values())
        versions = {node.name: int(node.metadata.resource_version) for node in known.values()}
        older = [name for name, version in versions.items() if version < self.node_versions.get(name, 0)]
        assert not older, f"late news took us back in time: {older}"
        self.node_versions = versions

    def what_cannot_be_read_is_counted_and_logged_once_a_version(self) -> None:
        found: dict[str, float] = {}
        for sample in next(iter(self.engine.metrics.watch_errors.collect())).samples:
            if sample.name.endswith("_total"):
                reason = sample.labels["reason"]
                found[reason] = found.get(reason, 0) + sample.value
        assert found == ({"unreadable": self.reports} if self.reports else {})
        assert self.log.lines == ["An object cannot be read"] * self.reports

    # What holds in the end.

    def heal(self) -> None:
        """Mend all, lose the rest of the news, compare, and see that all is as it should be."""
        engine, truth = self.engine, self.truth
        for uid in sorted(truth.faults):
            self.mend(uid)
        for _ in range(8):
            truth.on_the_way.clear()
            for resource in (NODES, PODS):
                self.compare(resource)
            engine.wait(301)
            while (queued := engine.queue.pop_nowait()) is not None:
                self.place(queued)
            while engine.world.hanging:
                for uid in self.undecided():
                    self.decide(uid)
                for uid in sorted(self.decided):
                    self.answer(uid)
        for resource in (NODES, PODS):
            self.compare(resource)
        self.check()
        assert versions(self.known(PODS)) == raw_versions(truth, PODS)
        assert versions(self.known(NODES)) == raw_versions(truth, NODES)
        assert self.counted() == truth.pods_by_node()
        assert list(engine.cache.assumed_pods()) == []
        assert engine.queue.in_flight_pods() == ()
        assert engine.loop.bindings == 0
        self.what_waits_is_right()

    def what_waits_is_right(self) -> None:
        queue, nodes = self.engine.queue, self.engine.handlers.known_nodes().values()
        free = {
            node.name: int((node.status.allocatable or {})["cpu"]) * 1000
            - sum(self.counted().get(node.name, {}).values())
            for node in nodes
        }
        waiting = [queued.pod for pods in queue.pending_pods().values() for queued in pods]
        ours = [pod for pod in self.engine.handlers.known_pods().values() if waits_for_us(pod)]
        assert sorted(pod.uid for pod in waiting if not pod.is_deleting) == sorted(pod.uid for pod in ours)
        for pod in ours:
            fits = [name for name, cpu in free.items() if cpu - self.promised(name, pod) >= pod.requests["cpu"]]
            assert pod.spec.scheduling_gates or not fits, f"{pod.uid} would fit on {fits}"

    def promised(self, node_name: str, pod: Pod) -> int:
        """Thousandths of a core on a node that other pods were promised to which this one has to yield."""
        others = self.engine.nominator.nominated_pods(node_name)
        return sum(other.requests["cpu"] for other in others if other.priority >= pod.priority and other.uid != pod.uid)


def waits_for_us(pod: Pod) -> bool:
    return pod.spec.scheduler_name == PROFILE and not pod.node_name and not pod.is_deleting


def versions(known: Mapping[str, Any]) -> dict[str, str]:
    return {uid: found.metadata.resource_version for uid, found in known.items()}


def raw_versions(truth: ApiTruth, resource: str) -> dict[str, str]:
    return {uid: raw["metadata"]["resourceVersion"] for uid, raw in truth.objects[resource].items()}
