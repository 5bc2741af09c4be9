"""Affinity and anti-affinity between pods, over several namespaces."""

from collections.abc import Sequence
from typing import Final

from tests.conformance.generators.topic import Cluster, Draw, Json, Topic

LABELS: Final = {"app": ("web", "db", "cache"), "tier": ("front", "back"), "version": ("1", "2", "")}
NAMESPACES: Final = ("default", "default", "team", "prod", "unknown")
TEAMS: Final = ("red", "blue")
RACK: Final = "example.com/rack"
TOPOLOGIES: Final = (
    "kubernetes.io/hostname",
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/zone",
    RACK,
    "absent",
)
KINDS: Final = ("podAffinity", "podAntiAffinity")
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class PodAffinity(Topic):
    """Who wants to be near whom."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        """Namespaces: some pods are in one that nobody has told of."""
        return [namespace(draw, name) for name in ("default", "team", "prod", "empty") if draw.chance(0.85)]

    def dress_node(self, draw: Draw, node: Json) -> None:
        if draw.chance(0.8):
            node["metadata"]["labels"].setdefault(RACK, draw.choice(("r1", "r2", "r3")))

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        metadata = pod["metadata"]
        if draw.chance(0.5):
            metadata["namespace"] = draw.choice(NAMESPACES)
        if draw.chance(0.85):
            metadata.setdefault("labels", {}).update(labels(draw))
        affinity: Json = {}
        for kind in KINDS:
            if draw.chance(0.25):
                terms = [term(draw, metadata.get("labels", {})) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
                affinity.setdefault(kind, {})[REQUIRED] = terms
            if draw.chance(0.3):
                affinity.setdefault(kind, {})[PREFERRED] = [
                    {"weight": draw.choice((1, 2, 50, 99, 100)), "podAffinityTerm": term(draw, {})}
                    for _ in range(draw.choice((1, 1, 2, 3)))
                ]
            if draw.chance(0.03):
                affinity.setdefault(kind, {})
        if affinity:
            pod["spec"].setdefault("affinity", {}).update(affinity)

    def arguments(self, draw: Draw) -> dict[str, Json]:
        found: Json = {}
        if draw.chance(0.4):
            found["hardPodAffinityWeight"] = draw.choice((0, 1, 7, 100))
        if draw.chance(0.25):
            found["ignorePreferredTermsOfExistingPods"] = draw.chance(0.8)
        return {"InterPodAffinity": found} if found else {}


def namespace(draw: Draw, name: str) -> Json:
    """A namespace, with labels that terms select."""
    made: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {}, "status": {}}
    if draw.chance(0.8):
        made["metadata"]["labels"] = {"kubernetes.io/metadata.name": name}
        if draw.chance(0.7):
            made["metadata"]["labels"]["team"] = draw.choice(TEAMS)
    return made


def labels(draw: Draw) -> dict[str, str]:
    """Labels of a pod; the same ones come often, as those of one Deployment do."""
    return {key: draw.choice(values) for key, values in LABELS.items() if draw.chance(0.6)}


def term(draw: Draw, own_labels: dict[str, str]) -> Json:
    """One term; half of those that are required name pods like the pod itself."""
    found: Json = {"topologyKey": draw.choice(TOPOLOGIES)}
    if own_labels and draw.chance(0.5):
        found["labelSelector"] = {"matchLabels": dict(draw.several(tuple(own_labels.items()), most=2))}
    elif draw.chance(0.95):
        found["labelSelector"] = label_selector(draw, LABELS)
    if own_labels and draw.chance(0.05):
        found |= matching_own(draw, own_labels)
    if draw.chance(0.25):
        found["namespaces"] = draw.several(("default", "team", "prod", "unknown", "nowhere"), most=2)
    if draw.chance(0.3):
        selected = {"team": TEAMS, "kubernetes.io/metadata.name": ("default", "team", "prod")}
        found["namespaceSelector"] = label_selector(draw, selected)
    return found


def matching_own(draw: Draw, own_labels: dict[str, str]) -> Json:
    """A selector with `matchLabelKeys` or `mismatchLabelKeys`, merged into it as by the API server."""
    key = draw.choice(tuple(own_labels))
    field, operator = draw.choice((("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")))
    expressions = [{"key": key, "operator": operator, "values": [own_labels[key]]}]
    return {field: [key], "labelSelector": {"matchExpressions": expressions}}


def label_selector(draw: Draw, known: dict[str, tuple[str, ...]]) -> Json:
    """A selector; an empty one matches everything."""
    found: Json = {}
    if draw.chance(0.1):
        return found
    if draw.chance(0.6):
        key = draw.choice(tuple(known))
        found["matchLabels"] = {key: draw.choice(known[key])}
    if not found or draw.chance(0.3):
        found["matchExpressions"] = [expression(draw, known) for _ in range(draw.choice((1, 1, 2)))]
    return found


def expression(draw: Draw, known: dict[str, tuple[str, ...]]) -> Json:
    """A requirement on a label, which may be one that nobody has."""
    key = draw.choice((*known, "absent"))
    operator = draw.choice(("In", "In", "NotIn", "Exists", "DoesNotExist"))
    if operator in {"Exists", "DoesNotExist"}:
        return {"key": key, "operator": operator}
    values: Sequence[str] = known.get(key, ("x", "y"))
    return {"key": key, "operator": operator, "values": draw.several(values, most=2)}
