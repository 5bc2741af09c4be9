"""An engine with groups of our own rules, whose clock is also that of the kubelets, and what reserves nodes in it."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from scheduler import framework as fw
from scheduler.api.objects import OwnerReference
from scheduler.config.types import GroupBackfill, LoadmasterSettings
from scheduler.cycle.steps import in_one_go
from scheduler.groups.reservations.keeper import Reservations
from scheduler.testing import a_pod
from tests.fakes import Unschedulable
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.groups.coscheduling import Coscheduled

WAIT = 60.0
"""Seconds that a group waits before nodes are reserved for it."""

START = 1_700_000_000.0
"""Seconds since 1970 when the engine's clock is at 0: 2023-11-14 22:13:20."""


class Stage(Coscheduled):
    """Its nodes have two cores each, unless the test says otherwise; the first of them are `full`."""

    def __init__(self, *plugins: type[fw.Plugin], full: int = 0, **options: Any) -> None:
        super().__init__(*plugins, **options)
        self.clock = self.under_test.clock
        self.use()
        self.reservations.wall_clock = lambda: START + self.clock()
        self.fill(*(f"n{number}" for number in range(full)))

    @property
    def reservations(self) -> Reservations:
        found = self.engine.group_parts.reservations
        assert found is not None
        return found

    def use(self, seconds: float = WAIT, backfill: GroupBackfill = GroupBackfill.PROMISED) -> None:
        """Use other settings."""
        self.reservations.use(LoadmasterSettings(group_reservation_seconds=seconds, group_backfill=backfill))

    def small(self, name: str, cpu: str = "1", deadline: int | None = None, **fields: Any) -> fw.Pod:
        """Let the watch show a pod that has no group."""
        pod = a_pod(name, requests={"cpu": cpu}, scheduler_name=PROFILE, **fields)
        spec = msgspec.structs.replace(pod.spec, active_deadline_seconds=deadline)
        pod = msgspec.structs.replace(pod, spec=spec)
        self.under_test.see(pod)
        return pod

    def running(self, name: str, node: str, deadline: int | None = None, cpu: str = "1", **fields: Any) -> fw.Pod:
        """Let the watch show a pod that has started on a node now."""
        pod = a_pod(name, requests={"cpu": cpu}, node_name=node, **fields)
        started = datetime.fromtimestamp(START + self.clock(), UTC)
        pod = msgspec.structs.replace(
            pod,
            spec=msgspec.structs.replace(pod.spec, active_deadline_seconds=deadline),
            status=msgspec.structs.replace(pod.status, start_time=started),
        )
        self.under_test.see(pod)
        return pod

    def fill(self, *nodes: str, **fields: Any) -> list[fw.Pod]:
        """Let the watch show a pod on each of these nodes that takes all of it."""
        return [self.running(f"on-{node}", node, cpu="2", **fields) for node in nodes]

    def of_daemon_set(self, pod: fw.Pod) -> fw.Pod:
        """Let the watch show this pod as one of a DaemonSet."""
        owner = OwnerReference(kind="DaemonSet", name="agent", uid="agent", controller=True)
        pod = newer(pod, owner_references=(owner,))
        self.under_test.see(pod)
        return pod

    def end(self, pod: fw.Pod) -> None:
        """Let the watch show that a pod is gone."""
        self.engine.handlers.pod_deleted(pod)

    async def wait(self, seconds: float) -> None:
        """Let time pass, have what waits tried, and the reservation looked at."""
        self.under_test.wait(seconds)
        await self.schedule()
        in_one_go(self.reservations.look())
        await self.schedule()

    async def waiting_long(self, count: int, minimum: int, group: str = "a", **fields: Any) -> list[fw.Pod]:
        """Let a group come, be refused, and have nodes reserved for it."""
        pods = self.annotated(count, minimum, group, **fields)
        await self.wait_long()
        return pods

    async def wait_long(self) -> None:
        """Let the group that waits be refused, and have nodes reserved for it."""
        await self.schedule()
        await self.wait(WAIT + 1)

    @property
    def reserved(self) -> dict[str, int]:
        """Node → thousandths of a core that are kept there."""
        reservation = self.engine.group_parts.reserved.reservation
        return {} if reservation is None else dict(zip(reservation.nodes, reservation.kept["cpu"], strict=True))

    @property
    def ends(self) -> dict[str, int]:
        """How reservations have ended → how many."""
        outcomes = ("placed", "replaced", "given up", "gone", "turned off")
        name = "loadmaster_podgroup_reservations_total"
        counts = {each: self.under_test.count(name, outcome=each) for each in outcomes}
        return {outcome: int(count) for outcome, count in counts.items() if count}

    @property
    def said(self) -> list[tuple[str, str, str]]:
        """The Events about reservations: type, reason and note of each."""
        events = self.under_test.world.group_events
        return [(each.type, each.reason, each.note) for each in events if each.reason != "FailedScheduling"]

    def refusals(self, pod: fw.Pod) -> list[str]:
        """What the conditions of a pod said, in order."""
        return [each.message for each in self.under_test.world.written(Unschedulable) if each.pod == str(pod)]
