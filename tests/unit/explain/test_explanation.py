"""What is said of pending pods, and that what is suggested works."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from scheduler import framework as fw
from scheduler.api import objects
from scheduler.api.decoding import convert
from scheduler.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from scheduler.api.wording.text import printable
from scheduler.cycle.algorithm import Placed
from scheduler.explain.changes import change
from scheduler.explain.documents import Explanation, PodReport
from scheduler.explain.explanation import explain
from scheduler.explain.groups import NamedObstacle, NodeGroup
from scheduler.explain.screen import Screen, lines_of, short_reason
from scheduler.explain.suggestions import of_preemption, suggestions
from scheduler.framework.cycle_state import CycleState
from scheduler.testing import a_container, a_node, a_pod, a_requirement, a_term, required
from tests.fakes import run
from tests.unit.cycle.fakes import EngineUnderTest, an_engine

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
GPU = fw.Taint(key="dedicated", value="gpu", effect="NoSchedule")
HARDWARE = "it keeps special hardware for pods that use it"


def a_cluster(*seen: fw.Node | fw.Pod) -> EngineUnderTest:
    scheduler = an_engine()
    scheduler.see(*seen)
    return scheduler


def explained(scheduler: EngineUnderTest, pod: fw.Pod) -> Any:
    return msgspec.to_builtins(run(explain(scheduler.engine, pod)))


def reason(document: Any) -> str:
    return short_reason(convert(document, Explanation))


def facts(document: Any) -> list[tuple[int, list[str]]]:
    return [(group["count"], [each["fact"] for each in group["obstacles"]]) for group in document["groups"]]


def helps(document: Any) -> list[str]:
    return [each["text"] for each in document["suggestions"]]


def with_spec(pod: fw.Pod, **spec: Any) -> fw.Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **spec))


def spreading(key: str, **more: Any) -> tuple[objects.TopologySpreadConstraint, ...]:
    selector = objects.LabelSelector(match_labels={"app": "web"})
    return (
        objects.TopologySpreadConstraint(
            max_skew=1, topology_key=key, when_unsatisfiable="DoNotSchedule", label_selector=selector, **more
        ),
    )


def affinity(kind: str, key: str, **labels: str) -> objects.Affinity:
    terms = [{"labelSelector": {"matchLabels": labels}, "topologyKey": key}]
    return convert({kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}, objects.Affinity)


ZONES = [a_node(f"n{i}", labels={ZONE: "ab"[i % 2], HOSTNAME: f"n{i}"}) for i in range(4)]


@pytest.mark.parametrize(
    ("used", "requests", "expected"),
    [
        ({"cpu": 1}, {"cpu": 4}, ["3 cpu short of 4, 2 of it even without any pod there"]),
        ({"cpu": 2}, {"cpu": 1, "example.com/gpu": 1}, ["1 cpu short of 1", "has no example.com/gpu"]),
    ],
)
def test_what_would_be_missing_without_any_pod_there_does_not_count_the_pods(
    used: Any, requests: Any, expected: list[str]
) -> None:
    scheduler = a_cluster(a_node("n", cpu="2"), a_pod("other", requests=used, node_name="n"))
    assert facts(explained(scheduler, a_pod(requests=requests))) == [(1, expected)]


def test_a_request_that_no_node_offers_can_be_dropped() -> None:
    document = explained(a_cluster(a_node("n")), a_pod(requests={"example.com/gpu": 1}))
    assert helps(document) == ["drop the request for example.com/gpu of container main"]


def test_the_request_of_an_init_container_is_lowered() -> None:
    init = a_container("init", requests={"cpu": 4})
    pod = with_spec(a_pod(requests={"cpu": 1}), init_containers=(init,))
    (found,) = explained(a_cluster(a_node("n", cpu="3")), pod)["suggestions"]
    assert found["text"] == "ask for 1 cpu less in init container init"
    assert found["patch"] == [
        {"op": "replace", "path": "/spec/initContainers/0/resources/requests/cpu", "value": "3000m"}
    ]


def test_one_change_is_suggested_that_removes_two_obstacles() -> None:
    """Without its nodeSelector the pod is not spread over the labelled nodes alone."""
    scheduler = a_cluster(
        a_node("a", labels={ZONE: "a", "disk": "ssd"}, cpu="1"),
        a_node("b", labels={ZONE: "b"}),
        a_pod("web-0", labels={"app": "web"}, requests={"cpu": 1}, node_name="a"),
    )
    pod = with_spec(
        a_pod(labels={"app": "web"}, requests={"cpu": 1}, node_selector={"disk": "ssd"}),
        topology_spread_constraints=spreading(ZONE),
    )
    assert "drop nodeSelector disk=ssd" in helps(explained(scheduler, pod))


def test_nodes_with_the_same_obstacles_are_one_group_and_the_nearest_miss_is_first() -> None:
    scheduler = a_cluster(
        a_node("full", cpu="4"),
        a_node("fuller", cpu="4"),
        *(a_node(f"gpu-{i}", cpu="1", taints=[GPU]) for i in range(3)),
        a_pod("a", requests={"cpu": 3}, node_name="full"),
        a_pod("b", requests={"cpu": "3500m"}, node_name="fuller"),
    )
    document = explained(scheduler, a_pod(requests={"cpu": 2}))
    assert facts(document) == [
        (2, ["1 to 1.5 cpu short of 2"]),
        (3, ["taint dedicated=gpu:NoSchedule", "1 cpu short of 2, even without any pod there"]),
    ]
    assert reason(document) == "none of 5 nodes takes it; nearest is full: 1 cpu short of 2"


@pytest.mark.parametrize(
    ("seen", "pod", "fact", "remedy"),
    [
        pytest.param(
            [a_node("n", cpu="1")],
            a_pod(requests={"cpu": "1400m"}),
            "0.4 cpu short of 1.4, even without any pod there",
            "ask for 0.4 cpu less in container main",
            id="cpu",
        ),
        pytest.param(
            [a_node("n", memory="1Gi")],
            a_pod(requests={"memory": "1536Mi"}),
            "512Mi memory short of 1.5Gi, even without any pod there",
            "ask for 512Mi memory less in container main",
            id="memory",
        ),
        pytest.param(
            [a_node("n", taints=[GPU])],
            a_pod(),
            "taint dedicated=gpu:NoSchedule",
            f"tolerate dedicated=gpu:NoSchedule ({HARDWARE})",
            id="taint",
        ),
        pytest.param([a_node("n", unschedulable=True)], a_pod(), "cordoned", "uncordon n", id="cordoned"),
        pytest.param(
            [a_node("n", labels={"disk": "hdd"})],
            a_pod(node_selector={"disk": "ssd"}),
            "nodeSelector disk=ssd, and the node has 'hdd'",
            "drop nodeSelector disk=ssd",
            id="node selector",
        ),
        pytest.param(
            [a_node("n")],
            a_pod(node_affinity=required(a_term(a_requirement("disk", "In", "ssd", "nvme")))),
            "node affinity disk In [ssd nvme], and the node has no such label",
            "drop node affinity disk In [ssd nvme]",
            id="node affinity",
        ),
        pytest.param(
            [
                *ZONES,
                *(a_pod(f"web-{i}", labels={"app": "web"}, node_name="n0") for i in range(2)),
            ],
            with_spec(
                a_pod(labels={"app": "web"}, node_selector={ZONE: "a"}),
                topology_spread_constraints=spreading(ZONE, node_affinity_policy="Ignore"),
            ),
            f"spread over {ZONE}: a has 2 matching pods, b has the fewest, 0, and maxSkew is 1; b counts although the "
            "node selector or affinity leaves its nodes out",
            f"set whenUnsatisfiable: ScheduleAnyway for spreading over {ZONE}",
            id="spread",
        ),
        pytest.param(
            [a_node("n", labels={HOSTNAME: "n"})],
            with_spec(a_pod(), affinity=affinity("podAffinity", HOSTNAME, app="cache")),
            f"pod affinity to app=cache on {HOSTNAME}: no such pod on the node",
            f"drop the pod affinity to app=cache on {HOSTNAME}",
            id="pod affinity",
        ),
        pytest.param(
            [a_node("n", labels={ZONE: "a"}), a_pod("db-0", labels={"app": "db"}, node_name="n")],
            with_spec(a_pod(), affinity=affinity("podAntiAffinity", ZONE, app="db")),
            f"pod anti-affinity to app=db on {ZONE}: such a pod is in {ZONE}=a (default/db-0)",
            f"drop the pod anti-affinity to app=db on {ZONE}",
            id="pod anti-affinity",
        ),
    ],
)
def test_an_obstacle_is_told_with_what_would_remove_it(
    seen: Sequence[fw.Node | fw.Pod], pod: fw.Pod, fact: str, remedy: str
) -> None:
    document = explained(a_cluster(*seen), pod)
    assert fact in facts(document)[0][1]
    assert remedy in helps(document)


def test_an_anti_affinity_of_a_pod_on_a_node_is_told_by_its_name() -> None:
    lonely = with_spec(a_pod("lonely", node_name="n"), affinity=affinity("podAntiAffinity", HOSTNAME, app="web"))
    document = explained(a_cluster(a_node("n", labels={HOSTNAME: "n"}), lonely), a_pod(labels={"app": "web"}))
    expected = f"a pod on the node has an anti-affinity to this one on {HOSTNAME} (default/lonely)"
    assert facts(document) == [(1, [expected])]


def test_a_host_port_is_told_with_who_uses_it() -> None:
    port = objects.ContainerPort(host_port=8080, protocol="TCP")
    scheduler = a_cluster(a_node("n"), a_pod("first", ports=[port], node_name="n"))
    assert facts(explained(scheduler, a_pod("second", ports=[port]))) == [
        (1, ["host port 8080/TCP is in use (by default/first)"])
    ]


def test_a_node_that_is_ill_is_not_to_be_tolerated() -> None:
    taint = fw.Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
    document = explained(a_cluster(a_node("ill", taints=[taint])), a_pod())
    assert facts(document) == [(1, ["taint node.kubernetes.io/not-ready:NoSchedule"])]
    assert not any("tolerate" in text for text in helps(document))


def test_a_cordoned_node_has_one_obstacle_though_two_plugins_see_it() -> None:
    taint = fw.Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    scheduler = a_cluster(a_node("away", unschedulable=True, taints=[taint, GPU]), a_node("full", cpu="1"))
    document = explained(scheduler, a_pod(requests={"cpu": 2}))
    assert facts(document) == [
        (1, ["1 cpu short of 2, even without any pod there"]),
        (1, ["cordoned", "taint dedicated=gpu:NoSchedule"]),
    ]
    assert f"uncordon away and tolerate dedicated=gpu:NoSchedule ({HARDWARE})" in helps(document)


def test_every_change_of_the_pod_that_is_suggested_places_it() -> None:
    scheduler = a_cluster(
        a_node("small", cpu="1", labels={"disk": "ssd"}),
        a_node("other", cpu="8", labels={"disk": "hdd"}),
        a_node("gpu", cpu="8", labels={"disk": "ssd"}, taints=[GPU]),
        a_node("away", cpu="8", labels={"disk": "ssd"}, unschedulable=True),
    )
    two = (a_container("a", requests={"cpu": 1}), a_container("b", requests={"cpu": "500m"}))
    pod = a_pod(containers=two, node_selector={"disk": "ssd"})
    suggestions = [
        each for each in explained(scheduler, pod)["suggestions"] if "patch" in each and "command" not in each
    ]
    assert {each["names"][0] for each in suggestions} >= {"small", "other", "gpu"}
    for each in suggestions:
        changed, _ = change(pod, [fw.Change(one["op"], one["path"], one.get("value")) for one in each["patch"]])
        placed = scheduler.engine.algorithm.schedule(scheduler.framework, CycleState(), changed)
        assert isinstance(placed, Placed), each["text"]
        assert placed.node_name in each["names"], each["text"]


def test_what_is_more_than_enough_is_not_suggested() -> None:
    scheduler = a_cluster(a_node("n", labels={"disk": "hdd"}), a_node("gpu", taints=[GPU]))
    document = explained(scheduler, a_pod(node_selector={"disk": "ssd"}))
    assert "drop nodeSelector disk=ssd" in helps(document)
    assert "tolerate dedicated=gpu:NoSchedule and drop nodeSelector disk=ssd" not in helps(document)


def test_pods_of_lower_priority_are_named_with_the_reason_why_they_stay() -> None:
    scheduler = a_cluster(a_node("n", cpu="2"), a_pod("low", requests={"cpu": 2}, priority=1, node_name="n"))
    pod = with_spec(a_pod("high", requests={"cpu": 1}, priority=10), preemption_policy="Never")
    (found,) = (each for each in explained(scheduler, pod)["suggestions"] if "lower priority" in each["text"])
    assert found["text"] == "delete 1 pod of lower priority on n (default/low)"
    assert found["command"] == "kubectl delete pod --namespace default low"
    assert found["obstacle"] == "preemption is not eligible due to preemptionPolicy=Never"


def test_one_pod_elsewhere_is_suggested_before_three_of_less_priority_here() -> None:
    scheduler = a_cluster(
        a_node("a", cpu="3"),
        a_node("b", cpu="3"),
        *(a_pod(f"small-{i}", requests={"cpu": 1}, priority=1, node_name="a") for i in range(3)),
        a_pod("large", requests={"cpu": 3}, priority=5, node_name="b"),
    )
    document = explained(scheduler, a_pod("high", requests={"cpu": 3}, priority=10))
    deletions = [text for text in helps(document) if text.startswith("delete")]
    assert deletions[0] == "delete 1 pod of lower priority on b (default/large)"
    assert deletions[1].startswith("delete 3 pods of lower priority on a")


def test_one_pod_that_is_enough_is_found_where_a_preemption_would_take_two() -> None:
    scheduler = a_cluster(
        a_node("n", cpu="4"),
        a_pod("important", requests={"cpu": 2}, priority=5, node_name="n"),
        *(a_pod(f"small-{i}", requests={"cpu": 1}, priority=1, node_name="n") for i in range(2)),
    )
    document = explained(scheduler, a_pod("high", requests={"cpu": 2}, priority=10))
    assert "delete 1 pod of lower priority on n (default/important)" in helps(document)


@pytest.mark.parametrize(("priority", "of"), [(10, "lower"), (1, "the same")])
def test_a_pod_is_found_that_is_in_the_way_from_another_node(priority: int, of: str) -> None:
    lonely = with_spec(
        a_pod("lonely", requests={"cpu": 4}, priority=1, node_name="full"),
        affinity=affinity("podAntiAffinity", ZONE, app="web"),
    )
    taints = [fw.Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")]
    scheduler = a_cluster(a_node("full", labels={ZONE: "a"}, taints=taints), a_node("free", labels={ZONE: "a"}), lonely)
    document = explained(scheduler, a_pod(labels={"app": "web"}, priority=priority))
    (found,) = (each for each in document["suggestions"] if each["text"].startswith("delete"))
    assert found["text"] == f"delete 1 pod of {of} priority on full (default/lonely)"
    assert found["names"] == ["free"]
    assert found["obstacle"] == "preemption deletes pods only on the node that it makes room on"


def test_a_pod_is_found_that_has_the_device_of_another_node_than_the_nearest() -> None:
    device = {"driver": "gpu.example.com", "pool": "n2", "device": "d0"}
    pool = {"name": "n2", "generation": 1, "resourceSliceCount": 1}
    slice_spec = {"driver": "gpu.example.com", "nodeName": "n2", "pool": pool, "devices": [{"name": "d0"}]}
    asked = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    user = {"resource": "pods", "name": "user", "uid": "default/user"}
    taken = {"allocation": {"devices": {"results": [{"request": "gpu", **device}]}}, "reservedFor": [user]}
    scheduler = a_cluster(
        a_node("n1"),
        a_node("n2"),
        with_spec(a_pod("user", node_name="n2"), resource_claims=_claims("of-user")),
    )
    for resource, kind, name, content in (
        (fw.DEVICE_CLASS, DeviceClass, "gpu", {"spec": {}}),
        (fw.RESOURCE_SLICE, ResourceSlice, "slice", {"spec": slice_spec}),
        (fw.RESOURCE_CLAIM, ResourceClaim, "of-user", {"spec": asked, "status": taken}),
        (fw.RESOURCE_CLAIM, ResourceClaim, "own", {"spec": asked}),
    ):
        metadata = {"name": name, "uid": name, "namespace": "default" if resource is fw.RESOURCE_CLAIM else ""}
        scheduler.engine.object_handlers.object_changed(resource, convert({"metadata": metadata, **content}, kind))

    document = explained(scheduler, with_spec(a_pod(), resource_claims=_claims("own")))

    assert facts(document) == [(2, ["too few free devices for ResourceClaim own (class gpu)"])]
    assert "delete 1 pod of the same priority on n2 (default/user)" in helps(document)


def _claims(name: str) -> tuple[objects.PodResourceClaim, ...]:
    return (objects.PodResourceClaim(name="gpu", resource_claim_name=name),)


def test_the_only_pod_that_an_affinity_matches_is_in_the_way_of_one_that_could_be_the_first_elsewhere() -> None:
    web = a_pod("web-0", labels={"app": "web"}, requests={"cpu": 4}, node_name="full")
    taints = [fw.Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")]
    nodes = [a_node("full", labels={HOSTNAME: "full"}, taints=taints), a_node("free", labels={HOSTNAME: "free"})]
    pod = with_spec(a_pod(labels={"app": "web"}, priority=10), affinity=affinity("podAffinity", HOSTNAME, app="web"))
    document = explained(a_cluster(*nodes, web), pod)
    (found,) = (each for each in document["suggestions"] if each["text"].startswith("delete"))
    assert (found["text"], found["names"]) == ("delete 1 pod of lower priority on full (default/web-0)", ["free"])


def test_a_remedy_that_fails_is_not_suggested() -> None:
    def broken(node: fw.Node) -> fw.Node:
        raise TypeError("no")

    remedies = tuple(fw.Remedy(f"make it {how.__name__}", (), "kubectl x", how) for how in (broken, nothing))
    obstacle = NamedObstacle("P", "Unschedulable", fw.Obstacle("in the way", remedies))
    scheduler = a_cluster(a_node("n"))
    pod = a_pod()
    found = suggestions(scheduler.engine, pod, [NodeGroup(["n"], [obstacle], {})], ())
    assert not any(each is not None and each.command for each in found)


def nothing(node: fw.Node) -> Any:
    return None


def test_the_budgets_are_named_that_deleting_pods_would_violate() -> None:
    room = fw.PossiblePreemption("n", (a_pod("low"),), budgets=("default/a", "default/b"))
    assert of_preemption(room).text == (
        "delete 1 pod of lower priority on n (default/low), against the disruption budgets default/a and default/b"
    )


def in_zones(*zones: str, **fields: Any) -> list[fw.Node]:
    return [a_node(f"n-{zone}", labels={ZONE: zone, HOSTNAME: f"n-{zone}"}, **fields) for zone in zones]


@pytest.mark.parametrize(
    ("others", "selector", "policies", "fact"),
    [
        pytest.param(
            in_zones("b", "c", cpu="0"),
            None,
            {},
            "b and 1 more have the fewest, 0, and maxSkew is 1",
            id="several domains have the fewest",
        ),
        pytest.param(
            in_zones("b", taints=[GPU]),
            None,
            {},
            "b has the fewest, 0, and maxSkew is 1; b counts although the pod does not tolerate the taints of its node",
            id="taints are ignored",
        ),
        pytest.param(
            in_zones("b", "c"),
            {ZONE: "a"},
            {"min_domains": 3},
            "maxSkew is 1, and minDomains is 3: while only 1 domain counts, the fewest are taken to be 0; "
            "b does not count, for the node selector or affinity leaves its node out",
            id="too few domains count",
        ),
    ],
)
def test_it_is_told_which_domain_has_the_fewest_pods_and_why_the_pod_does_not_go_there(
    others: list[fw.Node], selector: dict[str, str] | None, policies: dict[str, Any], fact: str
) -> None:
    scheduler = a_cluster(*in_zones("a"), *others, a_pod("web-0", labels={"app": "web"}, node_name="n-a"))
    pod = a_pod(labels={"app": "web"}, requests={"cpu": 1}, node_selector=selector)
    document = explained(scheduler, with_spec(pod, topology_spread_constraints=spreading(ZONE, **policies)))
    assert f"spread over {ZONE}: a has 1 matching pod, {fact}" in [
        each for _, found in facts(document) for each in found
    ]


def test_a_node_with_more_pods_than_it_may_have_says_so() -> None:
    scheduler = a_cluster(a_node("n", pods=1), a_pod("a", node_name="n"), a_pod("b", node_name="n"))
    assert facts(explained(scheduler, a_pod())) == [(1, ["has 2 pods, and may have 1"])]


def test_one_more_node_of_a_zone_with_too_many_pods_is_no_help() -> None:
    scheduler = a_cluster(
        a_node("n0", labels={ZONE: "a", HOSTNAME: "n0"}),
        a_node("n1", labels={ZONE: "b", HOSTNAME: "n1"}, cpu="1"),
        a_pod("web-0", labels={"app": "web"}, node_name="n0"),
        a_pod("full", requests={"cpu": 1}, node_name="n1"),
    )
    pod = with_spec(a_pod(labels={"app": "web"}, requests={"cpu": 1}), topology_spread_constraints=spreading(ZONE))
    document = explained(scheduler, pod)
    assert f"spread over {ZONE}: a has 1 matching pod, b has the fewest, 0, and maxSkew is 1" in str(document)
    assert [text for text in helps(document) if "one more" in text] == ["one more node like n1 would do"]


def test_one_more_node_helps_against_pods_on_the_node_itself() -> None:
    seen: list[fw.Node | fw.Pod] = [
        a_node("n", labels={HOSTNAME: "n"}),
        a_pod("db-0", labels={"app": "db"}, node_name="n"),
    ]
    pod = with_spec(a_pod(), affinity=affinity("podAntiAffinity", HOSTNAME, app="db"))
    assert "one more node like n would do" in helps(explained(a_cluster(*seen), pod))


def test_a_node_that_pre_filter_leaves_out_is_told_in_the_words_of_the_plugin() -> None:
    terms = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}]}
    required_names = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    document = explained(a_cluster(a_node("n")), with_spec(a_pod(), affinity=convert(required_names, objects.Affinity)))
    assert facts(document) == [(1, ["node affinity metadata.name In [gone]"])]
    assert helps(document) == ["drop node affinity metadata.name In [gone]"]


def test_what_several_plugins_say_in_the_same_words_is_told_once() -> None:
    obstacles = [{"plugin": plugin, "code": "", "fact": "no claim"} for plugin in ("One", "Two", "One")]
    nodes = {"count": 1, "fitting": 0, "names": []}
    document = {"nodes": nodes, "gates": [], "obstacles": obstacles, "groups": [], "suggestions": []}
    assert reason(document) == "no claim"
    assert "  no claim (One, Two)" in list(lines_of(on_screen(document), Screen()))


def test_nodes_that_differ_only_in_the_pods_that_are_in_the_way_are_one_group() -> None:
    nodes = [a_node(f"n{i}", labels={HOSTNAME: f"n{i}"}) for i in range(3)]
    others = [a_pod(f"web-{i}", labels={"app": "web"}, node_name=f"n{i}") for i in range(3)]
    pod = with_spec(a_pod(), affinity=affinity("podAntiAffinity", HOSTNAME, app="web"))
    fact = f"pod anti-affinity to app=web on {HOSTNAME}: such a pod is on the node (for example default/web-0)"
    assert facts(explained(a_cluster(*nodes, *others), pod)) == [(3, [fact])]


def test_the_only_node_is_named_and_one_more_like_it_helps() -> None:
    document = explained(a_cluster(a_node("n", unschedulable=True)), a_pod())
    assert "one more node like n would do" in helps(document)
    assert reason(document) == "the only node, n, does not take it: cordoned"


def test_one_more_node_of_a_pool_is_suggested_where_an_empty_one_would_do() -> None:
    scheduler = a_cluster(
        a_node("large-1", cpu="4", labels={"pool": "large"}),
        a_node("small-1", cpu="1", labels={"pool": "small"}),
        a_pod("runs", requests={"cpu": 4}, node_name="large-1"),
    )
    found = helps(explained(scheduler, a_pod(requests={"cpu": 3})))
    assert "one more node of pool=large, like large-1, would do" in found
    assert not any("pool=small" in text for text in found)


def test_gates_are_told_by_name_and_what_would_be_without_them() -> None:
    pod = with_spec(a_pod(), scheduling_gates=(objects.PodSchedulingGate(name="example.com/quota"),))
    document = explained(a_cluster(a_node("n")), pod)
    assert reason(document) == "scheduling gate example.com/quota"
    screen = "\n".join(lines_of(on_screen(document), Screen()))
    assert "without that, it would fit 1 node (n)" in screen


def test_a_pod_that_fits_is_told_where() -> None:
    document = explained(a_cluster(a_node("a"), a_node("b", unschedulable=True)), a_pod())
    assert reason(document) == "fits 1 node of 2 now"
    assert document["suggestions"] == []


def test_without_nodes_that_is_the_reason() -> None:
    assert reason(explained(a_cluster(), a_pod())) == "there are no nodes"


def test_asking_changes_nothing() -> None:
    scheduler = a_cluster(a_node("n", cpu="2"), a_pod("low", requests={"cpu": 2}, priority=1, node_name="n"))
    pod = a_pod("high", requests={"cpu": 1}, priority=10)
    explained(scheduler, pod)
    profile = scheduler.framework.name
    assert scheduler.count("scheduler_preemption_attempts_total") == 0
    for plugin in ("NodeResourcesFit", "NodeAffinity"):
        labels = {"plugin": plugin, "extension_point": "Filter", "profile": profile}
        assert scheduler.count("scheduler_plugin_evaluation_total", **labels) == 0


def test_a_screen_is_as_wide_as_it_may_be_and_shows_no_control_characters() -> None:
    assert printable("web\x1b[31m\n\u202e\u200bé") == "web\\x1b[31m\\n\\u202e\\u200bé"
    scheduler = a_cluster(*(a_node(f"a-node-with-a-rather-long-name-{i}", taints=[GPU]) for i in range(9)))
    for width in (40, 60, 120):
        lines = list(lines_of(on_screen(explained(scheduler, a_pod())), Screen(width)))
        assert max(len(line) for line in lines if not line.startswith("      kubectl ")) <= width


def test_a_command_is_in_one_line_to_be_copied() -> None:
    scheduler = a_cluster(a_node("a-node-with-a-rather-long-name", taints=[GPU]))
    lines = list(lines_of(on_screen(explained(scheduler, a_pod())), Screen(40)))
    assert "      kubectl taint nodes a-node-with-a-rather-long-name dedicated=gpu:NoSchedule-" in lines


def on_screen(document: Any) -> Any:
    report = {"namespace": "default", "name": "web", "found": True, "state": "pending", "explanation": document}
    return convert(report, PodReport)


def test_a_command_to_copy_runs_nothing_else() -> None:
    """Files may have what the API server would refuse."""
    document = explained(a_cluster(a_node("n")), a_pod(node_selector={"disk": "$(reboot)"}))
    (found,) = (each for each in document["suggestions"] if each.get("command"))
    assert found["command"] == "kubectl label node n 'disk=$(reboot)'"
