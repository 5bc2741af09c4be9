"""Whatever happens in any order: usage is that of the pods, nobody is above a maximum, and nobody waits in vain."""

import asyncio
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler import framework as fw
from scheduler.framework.shares import DeclaredShare
from tests.unit.cycle.fakes import newer
from tests.unit.quota.waiting.shares import Sharing

NAMESPACES = ("a", "b", "c", "free")
SHARES = (
    DeclaredShare("root", maximum={"cpu": "12"}),
    DeclaredShare("left", "root", minimum={"cpu": "4"}, lending_limit={"cpu": "2"}),
    DeclaredShare("c", "left", minimum={"cpu": "2"}, maximum={"cpu": "6"}, namespaces=("c",)),
    DeclaredShare("gpu", "root", minimum={"cpu": "2"}, borrowing_limit={"cpu": "1"}, pod_labels={"team": "gpu"}),
)

amounts = st.integers(1, 6).map(str)


class SharesMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stage = self.loop.run_until_complete(self._make())
        self.maximum: dict[str, int] = {}
        self.pods: dict[str, fw.Pod] = {}
        self.number = 0

    async def _make(self) -> Sharing:
        return Sharing(*SHARES)

    def teardown(self) -> None:
        self.loop.close()

    @rule(namespace=st.sampled_from(NAMESPACES[:2]), minimum=amounts, more=st.integers(0, 4))
    def set_quota(self, namespace: str, minimum: str, more: int) -> None:
        maximum = int(minimum) + more
        self.stage.quota(namespace, minimum={"cpu": minimum}, maximum={"cpu": str(maximum)})

    @rule(namespace=st.sampled_from(NAMESPACES[:2]))
    def drop_quota(self, namespace: str) -> None:
        if self.stage.engine.objects.get("scheduling.x-k8s.io/ElasticQuota", "quota", namespace) is not None:
            self.stage.drop(namespace)

    @rule(
        namespace=st.sampled_from(NAMESPACES),
        cpu=st.sampled_from(("500m", "1", "2", "3")),
        count=st.integers(1, 4),
        is_gpu=st.booleans(),
        priority=st.integers(0, 2),
    )
    def create(self, namespace: str, cpu: str, count: int, is_gpu: bool, priority: int) -> None:
        fields: dict[str, Any] = {"labels": {"team": "gpu"}} if is_gpu else {}
        made = self.stage.pods(count, namespace, first=self.number, requests={"cpu": cpu}, priority=priority, **fields)
        self.number += count
        self.pods.update({pod.uid: pod for pod in made})

    @rule(namespace=st.sampled_from(NAMESPACES), cpu=st.sampled_from(("1", "5")))
    def others_bind(self, namespace: str, cpu: str) -> None:
        pod = self.stage.pod(
            f"theirs-{self.number}", namespace=namespace, requests={"cpu": cpu}, scheduler_name="another", node_name="n"
        )
        self.number += 1
        self.pods[pod.uid] = pod

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        self.stage.delete(self.stage.engine.pods.get(uid) or self.pods[uid])
        self.stage.under_test.world.bound.pop(uid, None)
        del self.pods[uid]

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), team=st.sampled_from(("gpu", "other")))
    def edit_labels(self, data: st.DataObject, team: str) -> None:
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        self.stage.under_test.see(newer(self.stage.engine.pods[uid], labels={"team": team}))

    @rule()
    def confirm(self) -> None:
        self.stage.confirm()

    @rule()
    def schedule(self) -> None:
        before = self._overused()
        self.loop.run_until_complete(self.stage.schedule())
        assert self._overused() <= before

    @rule()
    def schedule_all(self) -> None:
        """After this nobody waits for whom there is space."""
        while self.loop.run_until_complete(self.stage.schedule()):
            pass
        for queued in self.stage.under_test.queue.pending_pods()["gated"]:
            assert self.stage.shares.refusal(queued.pod) is not None, str(queued.pod)
        for queued in self.stage.under_test.queue.pending_pods()["unschedulable"]:
            if "CapacityScheduling" in queued.unschedulable_plugins:
                assert self.stage.shares.refusal(queued.pod) is not None, str(queued.pod)

    def _overused(self) -> set[str]:
        """The shares that use more than their maximum: others bind pods, and maxima fall."""
        return {
            name
            for ledger in self.stage.shares.ledgers
            for name, share in ledger.tree.shares.items()
            for resource, maximum in share.maximum.items()
            if ledger.tree.usage(name, resource) > maximum
        }

    @invariant()
    def all_is_consistent(self) -> None:
        self.stage.under_test.check()


TestShares = SharesMachine.TestCase
TestShares.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)
