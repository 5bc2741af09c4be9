"""Topology spread constraints, of pods and by default, and the objects from which default selectors are made."""

from typing import Final

from tests.conformance.generators.topic import Cluster, Draw, Json, Topic, assigned

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
ROW: Final = "example.com/row"
KEYS: Final = (HOSTNAME, HOSTNAME, ZONE, ZONE, ZONE, ROW, "example.com/nowhere")

APPS: Final = ("web", "db", "cache")
VERSIONS: Final = ("1", "2")
APP: Final = "spread/app"
VERSION: Final = "spread/version"

NAMESPACES: Final = ("default", "team")
CONTROLLERS: Final = (
    ("v1", "ReplicationController"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("apps/v1beta1", "ReplicaSet"),
)


class Spread(Topic):
    """Pods of a few kinds, and how evenly they are to lie."""

    def objects(self, draw: Draw, cluster: Cluster) -> list[Json]:
        made = []
        for namespace in NAMESPACES:
            names = [f"service-{i}" for i in range(draw.choice((0, 0, 1, 2, 3)))]
            made += [service(draw, name, namespace) for name in names]
            kinds = [each for each in CONTROLLERS[1:4] if draw.chance(0.6)]
            made += [controller(draw, version, kind, namespace) for version, kind in dict.fromkeys(kinds)]
            if draw.chance(0.5):
                made.append(controller(draw, *CONTROLLERS[0], namespace))
        return made

    def dress_node(self, draw: Draw, node: Json) -> None:
        labels = node["metadata"]["labels"]
        if draw.chance(0.7):
            labels[ROW] = draw.choice(("1", "2", "3", "4", ""))
        if draw.chance(0.04):
            del labels[HOSTNAME]
        elif draw.chance(0.04):
            labels[HOSTNAME] = "shared"
        if ZONE in labels and draw.chance(0.05):
            labels[ZONE] = ""

    def dress_pod(self, draw: Draw, pod: Json, cluster: Cluster) -> None:
        metadata = pod["metadata"]
        labels = metadata.setdefault("labels", {})
        if draw.chance(0.9):
            labels[APP] = draw.choice(APPS)
        if draw.chance(0.5):
            labels[VERSION] = draw.choice(VERSIONS)
        if draw.chance(0.5):
            metadata["ownerReferences"] = owners(draw)
        if draw.chance(0.06):
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            metadata["deletionGracePeriodSeconds"] = 30
        if assigned(pod):
            return
        if draw.chance(0.75):
            pod["spec"]["topologySpreadConstraints"] = constraints(draw, labels)
        if draw.chance(0.2):
            pod["status"]["nominatedNodeName"] = draw.choice((*cluster.node_names, "gone"))

    def arguments(self, draw: Draw) -> dict[str, Json]:
        if draw.chance(0.5):
            return {}
        if draw.chance(0.2):
            return {"PodTopologySpread": {"defaultingType": "System"}}
        args: Json = {"defaultingType": "List"}
        if draw.chance(0.85):
            args["defaultConstraints"] = distinct(
                [constraint(draw) for _ in range(draw.choice((1, 1, 2, 3)))],
            )
        return {"PodTopologySpread": args}


def constraints(draw: Draw, labels: dict[str, str]) -> list[Json]:
    """The constraints of a pod with these labels."""
    found = []
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3))):
        made = constraint(draw)
        if draw.chance(0.95):
            made["labelSelector"] = label_selector(draw)
            named = selected_keys(made["labelSelector"])
            free = [key for key in (APP, VERSION, "absent") if key not in named]
            if free and draw.chance(0.2):
                made["matchLabelKeys"] = draw.several(free, most=2)
        found.append(made)
    return distinct(found)


def constraint(draw: Draw) -> Json:
    """A constraint without a selector."""
    made: Json = {
        "maxSkew": draw.choice((1, 1, 1, 2, 3, 5, 2**31 - 1)),
        "topologyKey": draw.choice(KEYS),
        "whenUnsatisfiable": draw.choice(("DoNotSchedule", "ScheduleAnyway")),
    }
    if made["whenUnsatisfiable"] == "DoNotSchedule" and draw.chance(0.3):
        made["minDomains"] = draw.choice((1, 2, 3, 4, 10))
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if draw.chance(0.4):
            made[policy] = draw.choice(("Honor", "Ignore"))
    return made


def distinct(found: list[Json]) -> list[Json]:
    """Keep the first constraint of each key and action, as the API asks."""
    return list({(each["topologyKey"], each["whenUnsatisfiable"]): each for each in reversed(found)}.values())[::-1]


def label_selector(draw: Draw) -> Json:
    """A label selector; an empty one selects everything."""
    made: Json = {}
    if draw.chance(0.65):
        made["matchLabels"] = {APP: draw.choice(APPS)}
    if draw.chance(0.3):
        made["matchExpressions"] = [expression(draw) for _ in range(draw.choice((1, 1, 2)))]
    return made


def expression(draw: Draw) -> Json:
    """One requirement of a label selector."""
    operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    made: Json = {"key": draw.choice((APP, VERSION)), "operator": operator}
    if operator in ("In", "NotIn"):
        made["values"] = draw.several(APPS if made["key"] == APP else VERSIONS, most=2)
    return made


def selected_keys(selector: Json) -> set[str]:
    """The labels that a selector names."""
    return {*selector.get("matchLabels", {}), *(each["key"] for each in selector.get("matchExpressions", ()))}


def service(draw: Draw, name: str, namespace: str) -> Json:
    """A Service, perhaps with no selector or an empty one."""
    spec: Json = {"selector": some_labels(draw)} if draw.chance(0.9) else {}
    return {"apiVersion": "v1", "kind": "Service", "metadata": named(name, namespace), "spec": spec}


def controller(draw: Draw, version: str, kind: str, namespace: str) -> Json:
    """What may stand above a pod."""
    spec: Json = {}
    if kind == "ReplicationController":
        spec["selector"] = some_labels(draw)
    elif draw.chance(0.9):
        spec["selector"] = label_selector(draw)
    if kind != "ReplicationController":
        spec["template"] = {"metadata": {}, "spec": {"containers": []}}
    if kind == "StatefulSet":
        spec["serviceName"] = ""
    return {"apiVersion": version, "kind": kind, "metadata": named(kind.lower(), namespace), "spec": spec}


def some_labels(draw: Draw) -> dict[str, str]:
    """Labels as a selector."""
    made = {APP: draw.choice(APPS)} if draw.chance(0.85) else {}
    return made | ({VERSION: draw.choice(VERSIONS)} if draw.chance(0.25) else {})


def named(name: str, namespace: str) -> Json:
    """The metadata of an object."""
    return {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"}


def owners(draw: Draw) -> list[Json]:
    """Owner references, of which one at most is the controller."""
    found = []
    for version, kind in draw.several(CONTROLLERS, most=2):
        name = kind.lower() if draw.chance(0.95) else "gone"
        owner: Json = {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-of-{name}"}
        found.append(owner)
    if draw.chance(0.9):
        draw.choice(found)["controller"] = True
    return found
