"""What kube-scheduler 1.37 decides otherwise than 1.36, and how one sees that a recorded case shows it.

    python -m tests.conformance.rows

asks 1.36 about the recorded cases, and prints how many show each row, and about how many of these 1.36 says something
else there. `tests/unit/conformance/test_rows.py` holds that none of these rows is without a case.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from tests.conformance.compare import differences
from tests.conformance.oracle import VARIABLE, VERSIONS, Oracle
from tests.conformance.recorded import read_cases
from tests.conformance.run import kind_of

Json = dict[str, Any]
Shown = Callable[[Json], bool]
"""Whether a recorded case, `{"case", "expected"}`, shows a row."""

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def of_kind(recorded: Json, kind: str) -> Iterator[Json]:
    """The objects of a kind."""
    return (each for each in recorded["case"]["objects"] if each["kind"] == kind)


def says(words: str) -> Shown:
    """The message of a pod, or the reason of a node, has these words."""

    def shown(recorded: Json) -> bool:
        return any(words in text for text in texts(recorded))

    return shown


def texts(recorded: Json) -> Iterator[str]:
    """All that is said about pods and nodes."""
    for pod in recorded["expected"]["pods"]:
        yield pod["message"]
        for node in pod["nodes"].values():
            yield from node.get("reasons") or ()


def scores(recorded: Json, plugin: str) -> set[int]:
    """What a plugin gives."""
    nodes = (node for pod in recorded["expected"]["pods"] for node in pod["nodes"].values())
    return {node["scores"][plugin] for node in nodes if plugin in (node.get("scores") or {})}


def has_shape(recorded: Json) -> bool:
    """VolumeBinding has a shape of its own, and it counts."""
    profiles = recorded["case"]["config"]["profiles"]
    given = [each for profile in profiles for each in profile.get("pluginConfig", ())]
    return any("shape" in each["args"] for each in given if each["name"] == "VolumeBinding") and is_filled(recorded)


def is_filled(recorded: Json) -> bool:
    """Free storage makes one node better than another."""
    return len(scores(recorded, "VolumeBinding")) > 1


def has_no_total(recorded: Json) -> bool:
    """A capacity says only how large a volume may be, where capacities count."""
    return any("capacity" not in each for each in of_kind(recorded, "CSIStorageCapacity")) and is_filled(recorded)


def is_resized(recorded: Json) -> bool:
    """A running pod has other resources than its spec, at the level of the pod and of containers."""
    pods = (each["status"] for each in of_kind(recorded, "Pod") if "nodeName" in each["spec"])
    return any("allocatedResources" in status and "containerStatuses" in status for status in pods)


def has_image_volume(recorded: Json) -> bool:
    """A pod has an image as a volume, and images count."""
    pods = of_kind(recorded, "Pod")
    return any("image" in volume for pod in pods for volume in pod["spec"].get("volumes", ())) and bool(
        scores(recorded, "ImageLocality") - {0}
    )


def selects_unlabelled(recorded: Json) -> bool:
    """A term selects namespaces by what they do not have, and one of them has no labels."""
    unlabelled = any("labels" not in each["metadata"] for each in of_kind(recorded, "Namespace"))
    return unlabelled and any(
        each["operator"] in {"NotIn", "DoesNotExist"}
        for pod in of_kind(recorded, "Pod")
        for term in terms(pod)
        for each in term.get("namespaceSelector", {}).get("matchExpressions", ())
    )


def terms(pod: Json) -> Iterator[Json]:
    """The required terms between pods."""
    affinity = pod["spec"].get("affinity", {})
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from affinity.get(kind, {}).get(REQUIRED, ())


def has_two_budgets(recorded: Json) -> bool:
    """A victim that could be is selected by two budgets."""
    preempts = any(pod.get("preemptions") for pod in recorded["expected"]["pods"])
    budgets = [
        (each["metadata"]["namespace"], each["spec"].get("selector", {}).get("matchLabels"))
        for each in of_kind(recorded, "PodDisruptionBudget")
    ]
    return preempts and any(
        sum(selects(budget, pod["metadata"]) for budget in budgets) > 1 for pod in of_kind(recorded, "Pod")
    )


def selects(budget: tuple[str, Json | None], metadata: Json) -> bool:
    """Whether a budget with labels to match selects a pod."""
    namespace, labels = budget
    if not labels or namespace != metadata["namespace"]:
        return False
    return all(metadata.get("labels", {}).get(key) == value for key, value in labels.items())


def requests(recorded: Json) -> Iterator[Json]:
    """What claims ask for, alternatives too."""
    for claim in of_kind(recorded, "ResourceClaim"):
        for each in claim["spec"]["devices"]["requests"]:
            yield from each.get("firstAvailable") or [each["exactly"]]


def given(recorded: Json) -> Iterator[Json]:
    """The allocations that claims would get."""
    for pod in recorded["expected"]["pods"]:
        for node in pod["nodes"].values():
            yield from (node.get("claims") or {}).values()


def is_distinct(recorded: Json) -> bool:
    """A claim must have different values of an attribute, with a request for several devices."""
    claims = (each["spec"]["devices"] for each in of_kind(recorded, "ResourceClaim"))
    return any(
        "distinctAttribute" in constraint
        and any(each.get("exactly", {}).get("count", 1) > 1 for each in claim["requests"])
        for claim in claims
        for constraint in claim.get("constraints", ())
    )


def wants_all_of_shared(recorded: Json) -> bool:
    """A request is for all devices, some of which are shared and partly used."""
    used = (each.get("status", {}).get("allocation", {}) for each in of_kind(recorded, "ResourceClaim"))
    partly = any("shareID" in result for each in used for result in each.get("devices", {}).get("results", ()))
    return partly and any(each.get("allocationMode") == "All" for each in requests(recorded))


def has_pools_of_one_name(recorded: Json) -> bool:
    """Two drivers have counters in pools that are called alike, and parts of them are given."""
    counted = [each["spec"] for each in of_kind(recorded, "ResourceSlice") if "sharedCounters" in each["spec"]]
    pools = [spec["pool"]["name"] for spec in counted]
    return len(pools) > len(set(pools)) and any(given(recorded))


def has_groups(recorded: Json) -> bool:
    """A slice has devices in groups, which it may not while the gate for that is off."""
    slices = (each["spec"].get("devices", ()) for each in of_kind(recorded, "ResourceSlice"))
    used = (each for devices in slices for device in devices for each in device.get("consumesCounters", ()))
    return any("compatibilityGroups" in each for each in used)


def is_configured(recorded: Json) -> bool:
    """An allocation comes with configuration."""
    return any(each["devices"].get("config") for each in given(recorded))


def looks_into_lists(recorded: Json) -> bool:
    """A selector is about an attribute that is a list."""
    found = (each["cel"]["expression"] for wish in requests(recorded) for each in wish.get("selectors", ()))
    return any(".tags" in expression for expression in found)


def is_silent_about_devices(recorded: Json) -> bool:
    """A pod with claims that no eviction helps is not told that no devices could be taken back."""
    with_claims = {each["metadata"]["name"] for each in of_kind(recorded, "Pod") if "resourceClaims" in each["spec"]}
    said = (pod["message"] for pod in recorded["expected"]["pods"] if pod["name"] in with_claims)
    return any("Preemption is not helpful" in text and "deallocate" not in text for text in said)


def registers(recorded: Json, plugin: str, resource: str, action: str) -> bool:
    """A plugin asks for these events, in a case with questions about events."""
    return any(
        each["resource"] == resource and action in each["actions"]
        for each in recorded["expected"]["registered"].get(plugin, ())
    )


def flushes_gated(recorded: Json) -> bool:
    """In a script of the queue, a flush of what was left over changes a gated pod."""
    steps = zip(recorded["case"]["queue"]["operations"], recorded["expected"]["steps"], strict=True)
    return any(operation["do"] == "flush leftover" and any(map(is_gated, step.values())) for operation, step in steps)


def nominates_gated(recorded: Json) -> bool:
    """In a script of the queue, a gated pod is nominated to a node."""
    state: Json = {}
    for step in recorded["expected"]["steps"]:
        state |= step
        named = state.get("(nominated)", "").replace(":", "").replace(";", "").split()
        if any(is_gated(place) and name in named for name, place in state.items()):
            return True
    return False


def is_gated(place: str) -> bool:
    """What the queue says of a pod."""
    return place.startswith("gated")


def has_in_effect(recorded: Json, point: str) -> bool:
    """A profile has plugins at an extension point."""
    profiles = recorded["expected"].get("plugins") or {}
    return any(plugins.get(point, {}).get("Enabled") for plugins in profiles.values())


def begins_with_the_name(recorded: Json) -> bool:
    """NodeName is asked before NodeUnschedulable."""
    profiles = recorded["expected"].get("plugins") or {}
    names = ([each["Name"] for each in plugins["Filter"].get("Enabled") or ()] for plugins in profiles.values())
    return any(len(filters) > 10 and filters[:2] == ["NodeName", "NodeUnschedulable"] for filters in names)


SHOWN: Final[Mapping[str, Shown]] = {
    "free storage in scores": is_filled,
    "a shape for free storage": has_shape,
    "a capacity without a total": has_no_total,
    "a driver that is missing": says("CSI driver is not installed on the node"),
    "rules that taint devices": lambda recorded: any(of_kind(recorded, "DeviceTaintRule")),
    "requests of a pod that is being resized": is_resized,
    "image volumes": has_image_volume,
    "selectors of namespaces without labels": selects_unlabelled,
    "two budgets of one pod": has_two_budgets,
    "options of mounts": says("didn't match Pod's required features"),
    "different values within a request": is_distinct,
    "an amount without a number": says("cannot be represented in the device's range arithmetic"),
    "all devices, some partly used": wants_all_of_shared,
    "counters of pools of one name": has_pools_of_one_name,
    "more devices than a claim may have": says("exceeds the claim limit of"),
    "groups of devices that are not on": has_groups,
    "configuration of an allocation": is_configured,
    "hints in errors of selectors": says("no such key"),
    "lists in selectors": looks_into_lists,
    "derived attributes that are not on": says("cannot handle request with derived attributes"),
    "devices that cannot be taken back": is_silent_about_devices,
    "where a preemption makes room": says("found a potential placement for pod on node"),
}
"""What changed for a single pod → whether a recorded case shows it."""

ANYWHERE: Final = frozenset({"message", "reasons", "claims", "node"})
PLACES: Final[Mapping[str, frozenset[str]]] = {
    "free storage in scores": frozenset({"score of VolumeBinding"}),
    "a shape for free storage": frozenset({"config"}),
    "a capacity without a total": frozenset({"score of VolumeBinding"}),
    "requests of a pod that is being resized": frozenset({"reasons", "score of NodeResourcesFit"}),
    "image volumes": frozenset({"score of ImageLocality"}),
    "selectors of namespaces without labels": frozenset({"reasons", "score of InterPodAffinity"}),
    "two budgets of one pod": frozenset({"preemption"}),
}
"""Where 1.36 says something else."""

SHOWN_BY_HINTS: Final[Mapping[str, Shown]] = {
    "pods that wait, by themselves": lambda known: registers(
        known, "TaintToleration", "TargetPod", "UpdatePodToleration"
    ),
    "pods with a node, by themselves": lambda known: registers(known, "NodePorts", "AssignedPod", "Delete"),
    "claims that are deleted": lambda known: registers(
        known, "DynamicResources", "resource.k8s.io/ResourceClaim", "Delete"
    ),
    "taints that do not matter to a plugin": lambda known: (
        registers(known, "NodeResourcesFit", "Node", "Add")
        and not registers(known, "NodeResourcesFit", "Node", "UpdateNodeTaint")
    ),
}
SHOWN_BY_QUEUES: Final[Mapping[str, Shown]] = {
    "gated pods at the flush": flushes_gated,
    "gated pods that are nominated": nominates_gated,
}
SHOWN_BY_CONFIGURATIONS: Final[Mapping[str, Shown]] = {
    "plugins after a group failed": lambda known: has_in_effect(known, "PodGroupPostFilter"),
    "the order of default plugins": begins_with_the_name,
    "a shape in arguments": lambda known: "shape:" in known["case"]["text"] and bool(known["expected"].get("config")),
}


def groups(recorded: Json) -> Iterator[Json]:
    """What became of each group."""
    yield from recorded["expected"].get("groups", ())


def a_group_says(words: str) -> Shown:
    """A group, a part of it or one of its pods is told these words."""

    def shown(recorded: Json) -> bool:
        return any(words in text for group in groups(recorded) for text in texts_of(group))

    return shown


def texts_of(group: Json) -> Iterator[str]:
    """All that is said about a group."""
    yield group["message"]
    yield from group["gated"].values()
    yield from (member.get("message", "") for member in group["members"])
    yield from (part["message"] for part in group.get("parts", {}).values())


def specs(recorded: Json, *kinds: str) -> Mapping[str, Json]:
    """Name → spec of the groups of some kinds."""
    return {each["metadata"]["name"]: each["spec"] for kind in kinds for each in of_kind(recorded, kind)}


def preempts_in_a_topology(recorded: Json) -> bool:
    """A group with a topology evicts others."""
    of_groups = specs(recorded, "PodGroup", "CompositePodGroup")
    return any(group["victims"] and "schedulingConstraints" in of_groups[group["name"]] for group in groups(recorded))


def is_placed_in_part(recorded: Json) -> bool:
    """A group has what it needs, and a member for which there is no node."""
    placed = (group for group in groups(recorded) if group["code"] == "Success")
    return any("message" in member for group in placed for member in group["members"])


def ends_early(recorded: Json) -> bool:
    """A group that cannot have its minimum any more has members that were not tried."""
    return any(
        member.get("message", "").startswith("minCount") for group in groups(recorded) for member in group["members"]
    )


def stays_scheduled(recorded: Json) -> bool:
    """A group that was scheduled once has a cycle without success, and says nothing of it."""
    return any(
        group["code"] != "Success" and (group["condition"] or {}).get("status") == "True" for group in groups(recorded)
    )


def checks_pods_with_nodes(recorded: Json) -> bool:
    """A group is not tried for the priority of a pod that has a node."""
    waiting = {each["spec"]["priority"] for each in of_kind(recorded, "Pod") if "nodeName" not in each["spec"]}
    said = (re.search(r"priority, got (-?\d+) and", text) for group in groups(recorded) for text in texts_of(group))
    return any(int(found[1]) not in waiting for found in said if found)


def whole_victims(recorded: Json, kind: str, *, alone: bool) -> bool:
    """All pods of a group that is disrupted as a whole are evicted, for one pod or for a group."""
    whole = {name for name, spec in specs(recorded, kind).items() if "all" in spec.get("disruptionMode", {})}
    parents = {name: spec.get("parentCompositePodGroupName") for name, spec in specs(recorded, "PodGroup").items()}
    of = "pods" if alone else "groups"
    victims = {victim for each in recorded["expected"].get(of, ()) for victim in each["victims"]}
    gone: Counter[str] = Counter()
    for each in of_kind(recorded, "Pod"):
        name = each["spec"].get("schedulingGroup", {}).get("podGroupName")
        above = name if kind == "PodGroup" else parents.get(name)
        if above in whole and f"{each['metadata']['namespace']}/{each['metadata']['name']}" in victims:
            gone[above] += 1
    return any(count > 1 for count in gone.values())


def is_gated_in_part(recorded: Json) -> bool:
    """One gated pod keeps all groups of a tree out."""
    return any(
        len(group.get("parts", {})) > 1
        and any(why.startswith("SchedulingGates") for why in group["gated"].values())
        and not group["members"]
        for group in groups(recorded)
    )


def nests_topologies(recorded: Json) -> bool:
    """A part of a tree has a topology below that of the tree, and both have their placement."""
    parts, trees = specs(recorded, "PodGroup"), specs(recorded, "CompositePodGroup")
    return any(
        group["code"] == "Success" and "schedulingConstraints" in trees.get(group["name"], {})
        for group in groups(recorded)
        for name, part in group.get("parts", {}).items()
        if part["code"] == "Success" and "schedulingConstraints" in parts[name]
    )


SHOWN_BY_GROUPS: Final[Mapping[str, Shown]] = {
    "pods for several schedulers": a_group_says("the same .spec.schedulerName set"),
    "pods with another priority": a_group_says("the same priority as the pod group's priority"),
    "pods with another policy": a_group_says("the same preemption policy, got"),
    "a policy that is not the group's": a_group_says("the same preemption policy as the pod group's"),
    "pods on nodes that do not agree": checks_pods_with_nodes,
    "the early end of a cycle": ends_early,
    "members beyond the minimum": is_placed_in_part,
    "a basic group needs one pod": a_group_says("minCount (1) cannot be satisfied: 0 scheduled"),
    "members that would have fit": a_group_says("pod group is unschedulable, minCount"),
    "victims for a group": a_group_says("found a placement for podgroup, preempting"),
    "victims that are leaving": a_group_says("ongoing preemption on nominated nodes"),
    "a group that must not preempt": a_group_says("not eligible due to preemptionPolicy=Never."),
    "claims that are given back": a_group_says("deallocation and deletion of ResourceClaims completed"),
    "preemption in a topology": preempts_in_a_topology,
    "no placement fits": a_group_says("placements are available, first placement status"),
    "volumes of the members before": a_group_says("with ReadWriteOncePod access mode already in-use"),
    "a condition that stays true": stays_scheduled,
    "a group that goes as a whole for a group": partial(whole_victims, kind="PodGroup", alone=False),
    "a group that goes as a whole for a pod": partial(whole_victims, kind="PodGroup", alone=True),
    "a tree that goes as a whole for a group": partial(whole_victims, kind="CompositePodGroup", alone=False),
    "a tree that goes as a whole for a pod": partial(whole_victims, kind="CompositePodGroup", alone=True),
    "a tree with too few pods": a_group_says("tree to meet quorum"),
    "a tree with a group missing": a_group_says("composite pod group object not found in state"),
    "a tree with a cycle": a_group_says("cycle detected in composite pod group hierarchy"),
    "a tree with a gated pod": is_gated_in_part,
    "a budget of a group that goes as a whole": lambda recorded: (
        any(of_kind(recorded, "PodDisruptionBudget")) and whole_victims(recorded, "PodGroup", alone=False)
    ),
    "an error of a part": a_group_says("composite pod group evaluation failed due to child error"),
    "topologies at two levels": nests_topologies,
}
"""What 1.37 decides about groups, and trees of them → whether a recorded case shows it."""


def main() -> int:
    """Run the command. Return 1 if a row has no case about which 1.36 says something else."""
    os.environ[VARIABLE] = next(version for version in VERSIONS if version.startswith("1.36."))
    known = list(read_cases())
    with Oracle() as oracle:
        verdicts = list(oracle.judge_all([each["case"] for each in known]))
    missing = 0
    for row, shown in SHOWN.items():
        pairs = [pair for pair in zip(known, verdicts, strict=True) if shown(pair[0])]
        differing = sum(bool(changed(*pair) & PLACES.get(row, ANYWHERE)) for pair in pairs)
        missing += not differing
        print(f"{len(pairs):>4} {differing:>4}  {row}")
    return 1 if missing else 0


def changed(recorded: Json, verdict: Json) -> set[str]:
    """Where another version says something else, or that it refuses the configuration."""
    if verdict.get("error"):
        return {"config"}
    return {kind_of(each) for each in differences(verdict, recorded["expected"])}


if __name__ == "__main__":
    sys.exit(main())
