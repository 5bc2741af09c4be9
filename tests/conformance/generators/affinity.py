"""Labels, node selectors, node affinity and the affinity that a profile adds."""

from collections.abc import Sequence
from typing import Final

from tests.conformance.generators.topic import Cluster, Draw, Json, Topic

LABELS: Final = {
    "disk": ("ssd", "hdd", "nvme", ""),
    "generation": ("1", "2", "10", "007", "x7", "99999999999999999999"),
    "example.com/rack": ("r1", "r2", "r3"),
    "arch": ("amd64", "arm64"),
}
NUMBERS: Final = ("0", "1", "2", "5", "10", "007")
# What Gt and Lt may be compared with: the configuration is checked best, preferred terms of a pod least.
ODD_REQUIRED: Final = (*NUMBERS, "many")
ODD_PREFERRED: Final = (*ODD_REQUIRED, "-3")


class Affinity(Topic):
    """Which nodes a pod, or everyone, wants."""

    def dress_node(self, draw: Draw, node: Json) -> None:
        labels = node["metadata"]["labels"]
        for key, values in LABELS.items():
            if draw.chance(0.7):
                labels[key] = draw.choice(values)

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        spec = pod["spec"]
        if draw.chance(0.15):
            spec["nodeSelector"] = {key: draw.choice(LABELS[key]) for key in draw.several(tuple(LABELS), most=1)}
        if draw.chance(0.02):
            spec["nodeSelector"] = {}
        affinity: Json = {}
        if draw.chance(0.4):
            terms = [term(draw, cluster, ODD_REQUIRED) for _ in range(draw.choice((1, 1, 2, 3)))]
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if draw.chance(0.5):
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred(draw, cluster, ODD_PREFERRED)
        if affinity:
            spec["affinity"] = {"nodeAffinity": affinity}

    def arguments(self, draw: Draw) -> dict[str, Json]:
        if not draw.chance(0.35):
            return {}
        added: Json = {}
        nobody = Cluster(node_names=("n001", "n002"))
        if draw.chance(0.5):
            common = {"matchExpressions": [{"key": draw.choice(tuple(LABELS)), "operator": "Exists"}]}
            terms = [common, *([term(draw, nobody, NUMBERS)] if draw.chance(0.5) else [])]
            added["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if draw.chance(0.7):
            added["preferredDuringSchedulingIgnoredDuringExecution"] = preferred(draw, nobody, NUMBERS)
        return {"NodeAffinity": {"addedAffinity": added} if added else {}}


def preferred(draw: Draw, cluster: Cluster, numbers: Sequence[str]) -> list[Json]:
    """Preferred terms; an empty preference is allowed and matches nothing."""
    return [
        {"weight": draw.choice((1, 5, 50, 100)), "preference": term(draw, cluster, numbers)}
        for _ in range(draw.randint(1, 4))
    ]


def term(draw: Draw, cluster: Cluster, numbers: Sequence[str]) -> Json:
    """One term: expressions on labels, on the node's name, both or neither."""
    found: Json = {}
    if draw.chance(0.04):
        return found
    if draw.chance(0.8):
        found["matchExpressions"] = [expression(draw, numbers) for _ in range(draw.choice((1, 1, 1, 2)))]
    if not found or draw.chance(0.1):
        found["matchFields"] = [name_field(draw, cluster) for _ in range(draw.choice((1, 1, 1, 2)))]
    return found


def expression(draw: Draw, numbers: Sequence[str]) -> Json:
    """A requirement on a label. Gt and Lt meet labels that are no numbers."""
    key = draw.choice((*LABELS, "kubernetes.io/hostname", "topology.kubernetes.io/zone", "absent"))
    operator = draw.choice(("In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    match operator:
        case "Gt" | "Lt":
            return {"key": "generation", "operator": operator, "values": [draw.choice(numbers)]}
        case "In" | "NotIn":
            values = LABELS.get(key, ("zone-a", "zone-b", "n001", "n002"))
            return {"key": key, "operator": operator, "values": draw.several(values, most=3)}
        case _:
            return {"key": key, "operator": operator}


def name_field(draw: Draw, cluster: Cluster) -> Json:
    """A requirement on the node's name; the API allows exactly one value."""
    names = (*cluster.node_names, "gone")
    return {"key": "metadata.name", "operator": draw.choice(("In", "In", "NotIn")), "values": [draw.choice(names)]}
