"""Tables of scheduler-plugins, CapacityScheduling and ElasticQuota, played with objects and pods from the watch.

What is used in a case before it begins is a pod that runs.
"""

from dataclasses import replace
from typing import Any

from plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from scheduler import framework as fw
from scheduler.api.objects import PodStatus
from scheduler.config.defaults import default_plugins
from scheduler.config.types import DEFAULT_GATES
from scheduler.runtime.profile_spec import PluginRef, PluginSet
from scheduler.testing import a_node, a_pod
from tests.fakes import Eviction
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.quota.tables import SCHEDULER_PLUGINS, of_cases, table
from tests.unit.quota.waiting.shares import Sharing

TABLE = table("capacity_scheduling", SCHEDULER_PLUGINS)
OF_QUOTAS = table("elastic_quota", SCHEDULER_PLUGINS)
DECLARED = {
    **{f"new: {name}": {"added": case, **case} for name, case in OF_QUOTAS["TestNewElasticQuotaInfo"].items()},
    **TABLE["TestAddElasticQuota"],
    **TABLE["TestUpdateElasticQuota"],
}
DEFAULT = default_plugins(DEFAULT_GATES)
WITHOUT_DEFAULT_PREEMPTION = replace(
    DEFAULT,
    multi_point=PluginSet(
        (
            *(each for each in DEFAULT.multi_point.enabled if each.name != "DefaultPreemption"),
            PluginRef("CapacityScheduling"),
        )
    ),
)


def written(amounts: dict[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()}


def with_quotas(quotas: dict[str, list[dict[str, int]]], **options: Any) -> Sharing:
    """Return an engine with quotas: namespace → minimum, maximum, used."""
    sharing = Sharing(**options)
    for namespace, (minimum, maximum, used) in quotas.items():
        sharing.quota(namespace, minimum=written(minimum), maximum=written(maximum))
        if used:
            sharing.pod("used", namespace=namespace, requests=written(used), node_name="n")
    return sharing


def made(pod: list[Any], node: str = "", **fields: Any) -> fw.Pod:
    name, namespace, memory, cpu, priority = pod
    requests = written({"memory": memory, "cpu": cpu})
    return a_pod(
        name,
        namespace=namespace,
        requests=requests,
        priority=priority,
        node_name=node,
        scheduler_name=PROFILE,
        **fields,
    )


def with_pods(case: dict[str, Any]) -> Sharing:
    """Return an engine whose only node is full of the pods of a case, which are what its quotas use."""
    quotas = {namespace: [minimum, maximum, {}] for namespace, (minimum, maximum, _) in case["quotas"].items()}
    sharing = with_quotas(quotas, node=a_node("node-a", cpu="64", memory="150"), only=WITHOUT_DEFAULT_PREEMPTION)
    for pod in case["existing"]:
        sharing.under_test.see(made(pod, "node-a"))
    return sharing


def used(sharing: Sharing, namespace: str = "ns1") -> dict[str, int]:
    resources = ("cpu", "memory")
    return {each: amount for each in resources if (amount := sharing.used(f"{namespace}/quota", each))}


@of_cases(TABLE["TestPreFilter"])
def test_a_pod_is_refused_where_scheduler_plugins_refuses_it(case: dict[str, Any]) -> None:
    sharing = with_quotas(case["quotas"])

    found = [sharing.shares.refusal(made(pod)) is None for pod in case["pods"]]

    assert found == case["fits"]


@of_cases(DECLARED)
def test_a_quota_guarantees_and_limits_what_it_does_there(case: dict[str, Any]) -> None:
    sharing = Sharing()
    for spec in (case["added"], case.get("updated")):
        if spec is not None:
            sharing.quota("ns1", minimum=spec.get("min"), maximum=spec.get("max"))

    share = next(each.tree for each in sharing.shares.ledgers if "ns1/quota" in each.tree.shares).shares["ns1/quota"]

    assert share.minimum == case["minimum"]
    assert share.maximum == case["maximum"]


@of_cases(TABLE["TestDeleteElasticQuota"])
def test_a_quota_that_is_deleted_is_gone(case: dict[str, Any]) -> None:
    sharing = Sharing()
    sharing.quota("ns1", minimum=case["added"]["min"], maximum=case["added"]["max"])

    sharing.drop("ns1")

    assert not any("ns1/quota" in each.tree.shares for each in sharing.shares.ledgers)


@of_cases(TABLE["TestReserve"])
def test_pods_are_counted_in_their_own_quota_only(case: dict[str, Any]) -> None:
    sharing = with_quotas(case["quotas"])

    for pod, amounts in zip(case["pods"], case["used"], strict=True):
        sharing.under_test.see(made(pod, "n"))
        assert used(sharing) == amounts


@of_cases(TABLE["TestUnreserve"])
def test_only_pods_that_are_counted_are_taken_off(case: dict[str, Any]) -> None:
    sharing = Sharing()
    minimum, maximum, before = case["quotas"]["ns1"]
    sharing.quota("ns1", minimum=written(minimum), maximum=written(maximum))
    pods = {pod[0]: pod for pod in case["pods"]}
    counted = {name: made(pods[name], "n") for name in case["counted"] if name in pods}
    rest = before["memory"] - sum(pods[name][2] for name in counted)
    for pod in (*counted.values(), made(["t1-p4", "ns1", rest, 0, 100], "n")):
        sharing.under_test.see(pod)
    assert used(sharing) == before

    for name, amounts in zip(pods, case["used"], strict=True):
        if name in counted:
            sharing.delete(counted[name])
        assert used(sharing) == amounts


@of_cases(TABLE["TestAddPod"])
def test_pods_add_up(case: dict[str, Any]) -> None:
    sharing = with_quotas(case["quotas"])

    for pod in case["pods"]:
        sharing.under_test.see(made(pod, "n"))

    assert used(sharing) == case["used"]


@of_cases(TABLE["TestUpdatePod"])
def test_a_pod_that_has_ended_does_not_count(case: dict[str, Any]) -> None:
    sharing = with_quotas(case["quotas"])
    first, second = case["phases"]

    pod = made(case["pods"][0], "n", status=PodStatus(phase=first))
    sharing.under_test.see(pod)
    sharing.under_test.see(newer(pod, phase=second))

    assert used(sharing) == case["used"]


@of_cases(TABLE["TestDeletePod"])
def test_a_pod_that_is_deleted_does_not_count(case: dict[str, Any]) -> None:
    sharing = with_quotas(case["quotas"])
    pods = {pod[0]: made(pod, "n") for pod in case["pods"]}
    for pod in pods.values():
        sharing.under_test.see(pod)

    sharing.delete(*(pods[name] for name in case["deleted"]))

    assert used(sharing) == case["used"]


@of_cases(TABLE["TestPostFilter"])
async def test_a_pod_is_nominated_where_others_have_to_go(case: dict[str, Any]) -> None:
    sharing = with_pods(case)
    pod = made(case["pod"])
    sharing.under_test.see(pod)

    await sharing.schedule()

    assert [each.name for each in sharing.engine.nominator.nominated_pods(case["nominated"])] == [pod.name]


@of_cases(TABLE["TestDryRunPreemption"])
async def test_those_have_to_go_whom_scheduler_plugins_evicts(case: dict[str, Any]) -> None:
    sharing = with_pods(case)
    sharing.under_test.see(made(case["pod"]))

    await sharing.schedule()

    victims = [each.victim.partition("/")[2] for each in sharing.under_test.world.written(Eviction)]
    assert {"node-a": victims} == case["victims"]


@of_cases(TABLE["TestPodEligibleToPreemptOthers"])
async def test_the_same_pods_may_evict(case: dict[str, Any]) -> None:
    sharing = with_quotas(
        case["quotas"], node=a_node("node-a", cpu="64", memory="64Gi"), only=WITHOUT_DEFAULT_PREEMPTION
    )
    for each in case.get("existing", ()):
        sharing.under_test.see(made(each, "node-a"))
    for each in case.get("terminating", ()):
        sharing.under_test.see(newer(made(each, "node-a"), deletion_timestamp="2026-01-01T00:00:00Z"))
    given = case["pod"]
    pod = a_pod(
        given["name"],
        namespace=given.get("namespace", "default"),
        priority=given["priority"],
        status=PodStatus(nominated_node_name=given.get("nominatedNodeName")),
        scheduler_name=PROFILE,
    )
    pod = newer(pod, preemption_policy=given.get("preemptionPolicy"))
    refusal = fw.unresolvable("") if case.get("nominated node is unresolvable") else fw.unschedulable("")
    plugin = next(iter(sharing.engine.frameworks.values())).plugins.by_name["CapacityScheduling"]
    reclaim = sharing.shares.reclaim(pod)
    assert isinstance(plugin, CapacityScheduling)
    assert reclaim is not None

    found = plugin.ineligibility(reclaim, pod, {"node-a": refusal})

    assert (found is None) is case["eligible"]
