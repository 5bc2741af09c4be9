"""Devices that pods have by ResourceClaims count against shares, whatever becomes of the claims."""

from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pytest

from plugins.contrib.coscheduling.plugin import Coscheduling
from scheduler import framework as fw
from scheduler.api.decoding import reread
from scheduler.api.devices import IMPLICIT_PREFIX, ResourceClaim
from scheduler.api.objects import PodResourceClaim, PodResourceClaimStatus
from scheduler.config.defaults import DEFAULT_PLUGINS
from scheduler.explain.shares import report_on_shares
from scheduler.framework.events import RESOURCE_CLAIM
from scheduler.framework.shares import DeclaredShare
from scheduler.runtime.profile_spec import PluginRef, PluginSet
from scheduler.testing import a_pod
from tests.fakes import a_plugin
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.quota.kueue_objects import a_flavor, a_local_queue, a_namespace, a_queue, as_stored
from tests.unit.quota.waiting.shares import Sharing

GPU = f"{IMPLICIT_PREFIX}gpu"
TEAM = DeclaredShare("team", maximum={GPU: 4}, namespaces=("a",))
Json = dict[str, Any]


def exactly(count: int = 1, cls: str = "gpu", **fields: Any) -> Json:
    request = {"deviceClassName": cls, "allocationMode": "ExactCount", "count": count, **fields}
    return {"name": "q", "exactly": request}


def all_of(cls: str = "gpu") -> Json:
    return {"name": "q", "exactly": {"deviceClassName": cls, "allocationMode": "All"}}


def either(*alternatives: tuple[str, int]) -> Json:
    """The first of these classes, each with its number of devices, that can be had."""
    return {
        "name": "q",
        "firstAvailable": [
            {"name": f"s{place}", "deviceClassName": cls, "allocationMode": "ExactCount", "count": count}
            for place, (cls, count) in enumerate(alternatives)
        ],
    }


class Stage(Sharing):
    """Claims are watched, but nothing else than the share waits for them."""

    def __init__(self, *shares: DeclaredShare, also: tuple[type[fw.Plugin], ...] = (), **options: Any) -> None:
        watching = a_plugin("Watching", fw.PostBindPlugin)
        watching.reads = (RESOURCE_CLAIM,)
        default = [each for each in DEFAULT_PLUGINS.multi_point.enabled if each.name != "DynamicResources"]
        own = [PluginRef(name) for name in ("CapacityScheduling", "Watching", *(each.name for each in also))]
        only = replace(DEFAULT_PLUGINS, multi_point=PluginSet((*default, *own)))
        super().__init__(*shares, also=(watching, *also), only=only, **options)

    def claim(
        self, name: str, *requests: Json, namespace: str = "a", of: str = "1", has: dict[str, int] | None = None
    ) -> ResourceClaim:
        """Let the watch show a claim, the one of that name of which `of` is the number.

        `has`: request → devices that are allocated for it.
        """
        self._versions += 1
        metadata = {"name": name, "namespace": namespace, "uid": f"{name}-{of}", "resourceVersion": str(self._versions)}
        status: Json = {}
        if has:
            devices = [{"request": each} for each, count in has.items() for _ in range(count)]
            status = {"allocation": {"devices": {"results": devices}}}
        content = {"metadata": metadata, "spec": {"devices": {"requests": list(requests)}}, "status": status}
        claim = reread(content, ResourceClaim)
        self.engine.object_handlers.object_changed(RESOURCE_CLAIM, claim)
        return claim

    def drop_claim(self, name: str) -> None:
        gone = self.engine.objects.get(RESOURCE_CLAIM, name, "a")
        self.engine.object_handlers.object_deleted(RESOURCE_CLAIM, gone)

    def claiming(self, name: str, *claims: str, template: str = "", **fields: Any) -> fw.Pod:
        """Let the watch show a pod with these claims, and with one that is made of a template."""
        written = [PodResourceClaim(name=each, resource_claim_name=each) for each in claims]
        if template:
            written.append(PodResourceClaim(name="made", resource_claim_template_name=template))
        pod = a_pod(name, **{"namespace": "a", "requests": {"cpu": "1"}, "scheduler_name": PROFILE, **fields})
        spec = msgspec.structs.replace(pod.spec, resource_claims=tuple(written))
        pod = fw.Pod(metadata=pod.metadata, spec=spec, status=pod.status)
        self.under_test.see(pod)
        return pod

    async def try_claiming(self, name: str, *claims: str, **fields: Any) -> fw.Pod:
        """Let the watch show a pod with these claims, then try all that may be tried."""
        pod = self.claiming(name, *claims, **fields)
        await self.schedule()
        return pod

    def devices(self, share: str = "team") -> int:
        return self.used(share, GPU)


@pytest.fixture
def stage() -> Stage:
    return Stage(TEAM)


async def test_devices_of_claims_count_against_the_share(stage: Stage) -> None:
    for name in ("one", "two"):
        stage.claim(name, exactly(3))
    first = await stage.try_claiming("first", "one")
    second = await stage.try_claiming("second", "two")

    assert stage.placed == ["first"]
    assert stage.devices() == 3
    assert f'share "team" has no space: 2 of {GPU} more than it has' in stage.note(second)
    assert await stage.schedule() == 0

    await stage.end(first)

    assert stage.placed == ["second"]


@pytest.mark.parametrize(
    ("requests", "count"),
    [
        ([exactly(3)], 3),
        ([exactly(1), exactly(2)], 3),
        ([exactly(1), exactly(2, "disk")], 1),
        ([exactly(2, adminAccess=True)], 0),
        ([all_of("disk")], 0),
        ([either(("gpu", 2), ("gpu", 2))], 2),
        ([either(("disk", 2), ("nic", 1))], 0),
        ([exactly(2**62), exactly(2**62)], None),
        ([all_of()], None),
        ([either(("gpu", 2), ("gpu", 1))], None),
        ([either(("gpu", 2), ("disk", 2))], None),
    ],
)
async def test_the_requests_of_a_claim_say_how_many_devices_it_counts(requests: list[Json], count: int | None) -> None:
    stage = Stage(TEAM)
    stage.claim("c", *requests)

    await stage.try_claiming("pod", "c")

    assert stage.placed == ([] if count is None else ["pod"])
    assert stage.devices() == (count or 0)


@pytest.mark.parametrize(
    ("request_", "results", "count"),
    [
        (all_of(), {"q": 3}, 3),
        (either(("gpu", 2), ("gpu", 1)), {"q/s1": 1}, 1),
        (either(("gpu", 2), ("disk", 2)), {"q/s1": 2}, 0),
    ],
)
async def test_what_is_known_once_devices_are_allocated_is_counted_then(
    request_: Json, results: dict[str, int], count: int
) -> None:
    stage = Stage(TEAM)
    stage.claim("c", request_)
    pod = await stage.try_claiming("pod", "c")
    assert (
        'share "team" counts devices: ResourceClaim "a/c", request "q": how many devices of a class it gets is not '
        "known before they are allocated"
    ) in stage.note(pod)

    stage.claim("c", request_, has=results)
    await stage.schedule()

    assert stage.placed == ["pod"]
    assert stage.devices() == count


async def test_a_pod_waits_for_a_claim_that_does_not_exist_and_is_woken_when_it_comes(stage: Stage) -> None:
    pod = await stage.try_claiming("pod", "c")
    assert 'share "team" counts devices: could not find ResourceClaim "a/c"' in stage.note(pod)
    stage.pods(1)
    assert await stage.schedule() == 1, "only the other pod is tried"

    stage.claim("c", exactly(2))
    await stage.schedule()

    assert stage.placed == ["a-0", "pod"]
    assert stage.devices() == 2


async def test_a_claim_of_a_template_counts_once_it_is_made(stage: Stage) -> None:
    pod = await stage.try_claiming("pod", template="t")
    assert 'share "team" counts devices: pod "a/pod": ResourceClaim not created yet' in stage.note(pod)

    stage.claim("pod-made", exactly(2))
    made = (PodResourceClaimStatus(name="made", resource_claim_name="pod-made"),)
    stage.under_test.see(newer(pod, resource_claim_statuses=made))
    await stage.schedule()

    assert stage.placed == ["pod"]
    assert stage.devices() == 2


async def test_a_claim_that_a_template_was_not_needed_for_counts_nothing(stage: Stage) -> None:
    pod = stage.claiming("pod", template="t")
    stage.under_test.see(newer(pod, resource_claim_statuses=(PodResourceClaimStatus(name="made"),)))

    await stage.schedule()

    assert stage.placed == ["pod"]
    assert stage.devices() == 0


async def test_a_claim_made_again_with_more_devices_does_not_let_a_waiting_pod_escape(stage: Stage) -> None:
    stage.claim("one", exactly(4))
    first = await stage.try_claiming("first", "one")
    stage.claim("two", exactly(1))
    await stage.try_claiming("second", "two")
    stage.drop_claim("two")
    stage.claim("two", exactly(5), of="2")

    await stage.end(first)

    assert stage.placed == []


async def test_a_claim_made_again_with_fewer_devices_lets_a_waiting_pod_start(stage: Stage) -> None:
    stage.claim("c", exactly(5))
    await stage.try_claiming("pod", "c")
    stage.drop_claim("c")

    stage.claim("c", exactly(4), of="2")
    await stage.schedule()

    assert stage.placed == ["pod"]
    assert stage.devices() == 4


async def test_a_running_pod_counts_as_it_did_though_its_claim_is_gone(stage: Stage) -> None:
    stage.claim("c", exactly(3))
    pod = await stage.try_claiming("pod", "c")
    stage.drop_claim("c")
    stage.confirm()
    assert stage.devices() == 3
    stage.claim("c", exactly(1), of="2")
    stage.under_test.see(newer(stage.engine.pods[pod.uid], labels={"new": "version"}))
    assert stage.devices() == 3
    stage.under_test.check()

    stage.delete(stage.engine.pods[pod.uid])
    assert stage.devices() == 0


async def test_a_pod_that_others_placed_counts_once_its_claim_is_known(stage: Stage) -> None:
    stage.claim("one", exactly(1))
    pod = stage.claiming("pod", "one", "two", node_name="n")
    gone = stage.claiming("gone", "two", node_name="n")
    assert stage.devices() == 1
    stage.under_test.check()
    stage.delete(gone)

    stage.claim("two", exactly(2))
    assert stage.devices() == 3
    stage.under_test.check()

    stage.delete(pod)
    assert stage.devices() == 0


async def test_nothing_is_kept_for_a_pod_that_others_placed_while_it_waited_for_its_claim(stage: Stage) -> None:
    pod = await stage.try_claiming("pod", "late")
    stage.under_test.see(newer(pod, node_name="n"))

    stage.claim("late", exactly(2))
    stage.claim("c", exactly(2))
    await stage.try_claiming("then", "c")

    assert stage.placed == ["pod", "then"]
    assert stage.devices() == 4


async def test_a_nominated_pod_counts_with_the_devices_of_its_newest_claim(stage: Stage) -> None:
    for name, count in (("c", 1), ("two", 2), ("one", 1)):
        stage.claim(name, exactly(count))
    nominated = stage.claiming("nominated", "c", scheduler_name="other", priority=10)
    stage.under_test.see(newer(nominated, nominated_node_name="n"))
    await stage.try_claiming("first", "two")
    assert stage.placed == ["first"]

    stage.drop_claim("c")
    stage.claim("c", exactly(2), of="2")
    await stage.try_claiming("second", "one")

    assert stage.placed == ["first"]


async def test_a_claim_counts_with_each_pod_that_names_it_and_once_for_a_pod(stage: Stage) -> None:
    stage.claim("c", exactly(2))
    for name in ("one", "two", "three"):
        stage.claiming(name, "c", "c")

    await stage.schedule()

    assert len(stage.placed) == 2
    assert stage.devices() == 4


async def test_devices_asked_for_as_an_extended_resource_count_beside_those_of_claims(stage: Stage) -> None:
    stage.claim("c", exactly(3))
    stage.claiming("pod", "c", requests={GPU: "1"}, node_name="n")

    assert stage.devices() == 4


async def test_quotas_begin_and_cease_to_name_devices_while_pods_run_and_wait() -> None:
    stage = Stage()
    stage.claim("c", exactly(3))
    quota = {"cpu": "64", "memory": "64Gi", "ephemeral-storage": "1Gi"}
    stage.quota(minimum=quota)
    await stage.try_claiming("running", "c")
    assert stage.shares.devices is None

    stage.quota(minimum={**quota, GPU: "4"}, maximum={**quota, GPU: "4"})
    stage.claiming("large", "c")
    await stage.try_claiming("early", "missing")
    assert stage.used(resource=GPU) == 3
    assert stage.placed == ["running"]
    stage.under_test.check()

    stage.quota(minimum=quota)
    await stage.schedule()
    assert stage.placed == ["early", "large", "running"]
    assert stage.shares.devices is None


async def test_devices_count_in_the_flavor_of_a_cluster_queue() -> None:
    stage = Stage(arguments={"kueue_queues": True})
    see = stage.engine.object_handlers.object_changed
    see(*as_stored(a_flavor("any")))
    see(*as_stored(a_queue("all", groups=[{"any": {"cpu": ["9"], GPU: ["4"]}}])))
    see(*as_stored(a_local_queue("a", "default", "all")))
    see(*as_stored(a_namespace("a")))
    stage.claim("c", exactly(3))
    for name in ("one", "two"):
        stage.claiming(name, "c")

    await stage.schedule()

    assert len(stage.placed) == 1
    assert stage.used("ClusterQueue/all", f"any/{GPU}") == 3


async def test_reports_add_up_the_devices_that_pods_wait_for_and_do_not_look_for_them_on_nodes() -> None:
    stage = Stage(DeclaredShare("team", minimum={GPU: 4}, namespaces=("a",)))
    for name, count in (("one", 5), ("two", 6)):
        stage.claim(name, exactly(count))
        stage.claiming(name, name)
    await stage.schedule()

    (share,) = (await report_on_shares(stage.engine)).shares

    assert [(each.resource, each.guaranteed, each.waiting) for each in share.resources] == [(GPU, 4, 11)]
    assert not list(stage.engine.share_parts.excess())


async def test_pods_of_shares_without_devices_do_not_wait_for_claims() -> None:
    other = DeclaredShare("other", maximum={"cpu": "8"}, namespaces=("b",))
    stage = Stage(other)
    stage.quota(minimum={"cpu": "64", GPU: "4"})
    stage.claiming("pod", "missing", namespace="b")

    await stage.try_claiming("free", "missing", namespace="c")

    assert stage.placed == ["free", "pod"]


async def test_claims_are_not_looked_at_where_no_share_names_devices() -> None:
    stage = Stage(DeclaredShare("team", maximum={"cpu": "8"}, namespaces=("a",)))

    await stage.try_claiming("pod", "missing")

    assert stage.placed == ["pod"]
    assert stage.shares.devices is None


async def test_a_pod_waits_where_no_profile_watches_claims(stage: Stage) -> None:
    stage.engine.objects.unwatch(RESOURCE_CLAIM)

    pod = await stage.try_claiming("pod", "c")

    assert "no profile watches ResourceClaims, which the plugin DynamicResources does" in stage.note(pod)


async def test_a_group_is_charged_for_the_devices_of_all_its_pods() -> None:
    stage = Stage(TEAM, also=(Coscheduling,))
    labels = stage.group("g", 2)
    for name, count in (("one", 2), ("two", 3), ("less", 1)):
        stage.claim(name, exactly(count))
    stage.claiming("one", "one", labels=labels)
    await stage.try_claiming("two", "two", labels=labels)
    assert stage.placed == []

    await stage.try_claiming("three", "less", labels=labels)

    assert len(stage.placed) == 2
    assert stage.devices() <= 4


async def test_a_group_waits_for_the_claims_of_as_many_pods_as_it_needs() -> None:
    stage = Stage(TEAM, also=(Coscheduling,))
    labels = stage.group("g", 2)
    stage.claim("one", exactly(1))
    stage.claiming("one", "one", labels=labels)
    stage.claiming("two", "two", labels=labels)
    last = await stage.try_claiming("three", template="t", labels=labels)
    assert stage.placed == []
    assert await stage.schedule() == 0

    stage.claim("last", exactly(2))
    made = (PodResourceClaimStatus(name="made", resource_claim_name="last"),)
    stage.under_test.see(newer(last, resource_claim_statuses=made))
    await stage.schedule()

    assert stage.placed == ["one", "three"]
    assert stage.devices() == 3


async def test_a_group_that_waits_hears_of_claims_that_its_pods_name_later() -> None:
    stage = Stage(TEAM, also=(Coscheduling,))
    labels = stage.group("g", 2)
    stage.claim("large", exactly(3))
    pods = [stage.claiming(name, "large", labels=labels) for name in ("one", "two")]
    last = await stage.try_claiming("three", template="t", labels=labels)
    assert stage.placed == []
    made = (PodResourceClaimStatus(name="made", resource_claim_name="late"),)
    stage.under_test.see(newer(last, resource_claim_statuses=made))
    for pod in pods:
        stage.under_test.see(newer(pod, labels={**labels, "new": "version"}))
    await stage.schedule()
    assert stage.placed == []

    stage.claim("late", exactly(1))
    await stage.schedule()

    assert len(stage.placed) == 2
    assert stage.devices() == 4


async def test_devices_that_others_borrow_are_taken_back() -> None:
    company = DeclaredShare("company")
    own, other = (
        DeclaredShare(name, "company", minimum={GPU: 2}, reclaim="Any", namespaces=(name,)) for name in ("a", "b")
    )
    stage = Stage(company, own, other)
    for number in range(4):
        stage.claim(f"c{number}", exactly(1))
        stage.claiming(f"borrower-{number}", f"c{number}")
    await stage.schedule()
    stage.confirm()
    assert stage.devices("a") == 4

    stage.claim("c", exactly(2), namespace="b")
    await stage.try_claiming("owner", "c", namespace="b")

    assert len(stage.evicted) == 2


async def test_a_group_whose_claim_is_gone_says_so_and_another_that_asks_for_as_much_its_own_reason() -> None:
    stage = Stage(DeclaredShare("team", maximum={GPU: 4, "cpu": 2}, namespaces=("a",)), also=(Coscheduling,))
    for name in ("kept", "gone"):
        stage.claim(name, exactly(1, "disk"))
    await stage.try_pod("running")
    sick, sound = stage.group("sick", 2), stage.group("sound", 2)
    pods = [stage.claiming(name, name, labels=sick, requests={"cpu": "2"}) for name in ("kept", "gone")]
    pods += [stage.claiming(f"sound-{number}", labels=sound) for number in range(2)]
    await stage.schedule()
    stage.drop_claim("gone")

    refusals = [stage.shares.pending_refusal(*stage.shares.request_of(pod)) for pod in pods[1:3]]

    assert [refusal.message.partition(":")[0] for refusal in refusals if refusal is not None] == [
        'share "team" counts devices',
        'share "team" has no space for 2 pods that start together',
    ]


@pytest.mark.parametrize("seed", range(5))
async def test_no_order_of_events_lets_a_team_have_more_than_its_maximum(seed: int) -> None:
    stage, random, alive = Stage(TEAM), Random(seed), dict[str, fw.Pod]()
    claims, given = [f"c{number}" for number in range(6)], dict[str, int]()
    for step in range(150):
        claim, known = random.choice(claims), stage.engine.objects.list(RESOURCE_CLAIM, "a")
        match random.randrange(5):
            case 0 if claim in {each.metadata.name for each in known}:
                stage.drop_claim(claim)
            case 0 | 1 if claim not in {each.metadata.name for each in known}:
                stage.claim(claim, exactly(random.randint(1, 5)), of=str(step))
            case 2:
                alive[f"p{step}"] = stage.claiming(f"p{step}", *random.sample(claims, random.randint(1, 2)))
            case 3 if alive:
                name = random.choice(list(alive))
                pod = alive.pop(name)
                stage.delete(stage.engine.pods.get(pod.uid, pod))
                given.pop(name, None)
            case _:
                before = set(stage.placed)
                sizes = {each.metadata.name: each.requests[0].exactly.count for each in known}
                await stage.schedule()
                for name in set(stage.placed) - before:
                    written = alive[name].spec.resource_claims or ()
                    given[name] = sum(sizes[each.name] for each in written)
                stage.confirm()
        assert stage.devices() == sum(given.values()) <= 4
        stage.under_test.check()
