"""Random clusters with pods that mostly cannot run, as objects of a file: the same seed, the same cluster.

They are small, and few things matter at once: nodes of two pools in several zones, some of them cordoned, tainted, ill
or full; pods of DaemonSets and static pods; volumes that are bound to nodes and zones, and limits of drivers; devices;
disruption budgets; pods with priorities, affinity, spreading and host ports. A pending pod is written as by hand, as an
API server has it, or as the template of a Deployment.
"""

import random
from collections.abc import Sequence
from typing import Any, Final

Json = dict[str, Any]

ZONE, HOSTNAME, OWN_NAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/name"
GPU, FPGA = "example.com/gpu", "example.com/fpga"
ZONES: Final = ("a", "b", "c")
APPS: Final = ("web", "db", "cache")
DRIVER, DEVICES = "disks.example.com", "gpu.example.com"
NAMESPACE: Final = "shop"

TAINTS: Final = (
    {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
    {"key": "spot", "effect": "NoExecute"},
)
HOT: Final = {"key": "hot", "effect": "NoExecute"}
ILL: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
CORDONED: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class Draw(random.Random):
    """Random choices."""

    def chance(self, share: float) -> bool:
        return self.random() < share


def cluster(seed: int) -> list[Json]:
    """Return the objects of a cluster."""
    draw = Draw(seed)
    nodes = [_node(draw, f"n{number}") for number in range(1, draw.randint(2, 6) + 1)]
    names = [node["metadata"]["name"] for node in nodes]
    running = [pod for node in nodes for pod in _running(draw, node["metadata"]["name"])]
    pending = [_pending(draw, f"p{number}") for number in range(1, draw.randint(1, 4) + 1)]
    return [
        *nodes,
        *_storage(draw, names),
        *_devices(draw, names),
        *_budgets(draw),
        *running,
        *pending,
    ]


def shuffled(objects: Sequence[Json], seed: int) -> list[Json]:
    """Return the same objects in another order."""
    return random.Random(seed).sample(objects, len(objects))


def _node(draw: Draw, name: str) -> Json:
    is_large = draw.chance(0.6)
    amounts = {"cpu": "4" if is_large else "2", "memory": "8Gi" if is_large else "4Gi", "pods": draw.choice(("3", "9"))}
    if draw.chance(0.25):
        amounts[GPU] = draw.choice(("1", "2"))
    labels = {HOSTNAME: name if draw.chance(0.8) else f"host-{name}", ZONE: draw.choice(ZONES)}
    if draw.chance(0.5):
        labels["pool"] = "large" if is_large else "small"
    if draw.chance(0.7):
        labels["disk"] = draw.choice(("ssd", "hdd"))
    if draw.chance(0.3):
        labels[OWN_NAME] = name
    spec: Json = {}
    taints = [dict(taint) for taint in TAINTS if draw.chance(0.2)]
    if draw.chance(0.08):
        taints.append(dict(ILL))
    if draw.chance(0.25):
        spec["unschedulable"] = True
        if draw.chance(0.6):
            taints.append(dict(CORDONED))
    if taints:
        spec["taints"] = taints
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _running(draw: Draw, node: str) -> list[Json]:
    """Pods on a node: of a DaemonSet, static ones, and others."""
    pods = []
    if draw.chance(0.4):
        pods.append(_owned(draw, f"agent-{node}", node, "DaemonSet", "agent"))
    if draw.chance(0.35):
        pods.append(_owned(draw, f"proxy-{node}", node, "Node", node))
    for number in range(draw.choice((0, 0, 1, 1, 2, 3))):
        pod = _pod(f"r-{node}-{number}", draw.choice(APPS), cpu=draw.choice(("500m", "1", "1500m", "3")))
        pod["spec"] |= {"nodeName": node, "priority": draw.choice((0, 0, 10, 1000))}
        if draw.chance(0.15):
            pod["spec"]["affinity"] = {"podAntiAffinity": _required([_term(draw)])}
        if draw.chance(0.15):
            _add_port(draw, pod)
        if draw.chance(0.15):
            _add_volume(pod, draw.choice(("once", "zonal")))
        if draw.chance(0.5):
            pod["status"] = {"startTime": f"2026-01-01T00:0{draw.randint(0, 9)}:00Z"}
        if draw.chance(0.1):
            pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}
            pod["metadata"] |= {
                "finalizers": ["example.com/wait"],
                "resourceVersion": "3",
                "uid": f"uid-{node}-{number}",
            }
        pods.append(pod)
    return pods


def _owned(draw: Draw, name: str, node: str, kind: str, owner: str) -> Json:
    pod = _pod(name, owner if kind == "DaemonSet" else "proxy", cpu=draw.choice(("100m", "500m", "1500m")))
    reference = {"apiVersion": "v1", "kind": kind, "name": owner, "uid": f"{kind}-{owner}", "controller": True}
    pod["metadata"] |= {"ownerReferences": [reference], "resourceVersion": "1", "uid": f"uid-{name}"}
    if kind == "Node":
        pod["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "0"}
    pod["spec"] |= {"nodeName": node, "priority": draw.choice((0, 0, 2000001000))}
    if draw.chance(0.3):
        _add_port(draw, pod)
    return pod


def _pod(name: str, app: str, cpu: str = "100m", memory: str = "64Mi") -> Json:
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "main", "resources": resources}]},
    }


def _pending(draw: Draw, name: str) -> Json:
    pod = _pod(name, draw.choice(APPS), cpu=draw.choice(("100m", "1", "1500m", "3", "5")))
    spec = pod["spec"]
    own = draw.sample(_TRAITS, draw.choice((0, 1, 1, 1, 2, 2, 3)))
    for trait in own:
        trait(draw, pod)
    if draw.chance(0.4):
        spec["priority"] = draw.choice((5, 100, 2000))
        if draw.chance(0.5):
            spec["preemptionPolicy"] = "Never"
    as_written = draw.random()
    if as_written < 0.35:
        return _as_stored(pod)
    if as_written < 0.55:
        return _as_deployment(pod)
    return pod


def _as_stored(pod: Json) -> Json:
    """As the API server has it, with its defaults."""
    spec = pod["spec"]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        resources = container.get("resources", {})
        if "limits" in resources:
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    spec.setdefault("tolerations", []).extend(
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for what in ("not-ready", "unreachable")
    )
    spec |= {"schedulerName": "loadmaster", "restartPolicy": "Always", "dnsPolicy": "ClusterFirst"}
    pod["metadata"] |= {"resourceVersion": "7", "uid": f"uid-{pod['metadata']['name']}"}
    pod["status"] = {"phase": "Pending", "conditions": []}
    return pod


def _as_deployment(pod: Json) -> Json:
    meta, labels = pod["metadata"], {**pod["metadata"]["labels"], "of": pod["metadata"]["name"]}
    spec = {key: value for key, value in pod["spec"].items() if key not in ("priority", "preemptionPolicy")}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": meta["name"], "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _with_limits_only(draw: Draw, pod: Json) -> None:
    resources = pod["spec"]["containers"][0].get("resources", {})
    if "requests" in resources:
        resources["limits"] = resources.pop("requests")


def _without_requests(draw: Draw, pod: Json) -> None:
    pod["spec"]["containers"][0].pop("resources", None)


def _with_two_containers(draw: Draw, pod: Json) -> None:
    requests = {"cpu": draw.choice(("500m", "1", "2")), "memory": draw.choice(("64Mi", "3Gi"))}
    pod["spec"]["containers"].append({"name": "second", "image": "second", "resources": {"requests": requests}})


def _with_init_container(draw: Draw, pod: Json) -> None:
    requests = {"cpu": draw.choice(("3", "5", "6500m")), "memory": draw.choice(("64Mi", "9Gi"))}
    init = {"name": "init", "image": "init", "resources": {"requests": requests}}
    before = [{"name": "side", "image": "side", "restartPolicy": "Always"}]
    before[0]["resources"] = {"requests": {"cpu": "250m"}}  # type: ignore[assignment]
    pod["spec"]["initContainers"] = [*(before if draw.chance(0.4) else ()), init]


def _with_memory(draw: Draw, pod: Json) -> None:
    resources = pod["spec"]["containers"][0].setdefault("resources", {})
    amounts = resources.setdefault("requests" if "limits" not in resources else "limits", {})
    amounts["memory"] = draw.choice(("3Gi", "6Gi", "10Gi"))


def _with_extended(draw: Draw, pod: Json) -> None:
    resources = pod["spec"]["containers"][0].setdefault("resources", {})
    amount = {draw.choice((GPU, GPU, FPGA)): draw.choice(("1", "2"))}
    resources.setdefault("limits", {}).update(amount)
    if draw.chance(0.5):
        resources.setdefault("requests", {}).update(amount)


def _with_selector(draw: Draw, pod: Json) -> None:
    wanted = {"disk": "ssd", "pool": "large", ZONE: "a", "gone": "yes", OWN_NAME: "n1", HOSTNAME: "n1"}
    keys = draw.sample(list(wanted), draw.choice((1, 1, 2)))
    pod["spec"]["nodeSelector"] = {key: wanted[key] for key in keys}


def _with_node_affinity(draw: Draw, pod: Json) -> None:
    expressions = (
        {"key": "disk", "operator": "In", "values": ["nvme", "ssd"]},
        {"key": ZONE, "operator": "NotIn", "values": ["a", "b"]},
        {"key": "pool", "operator": "Exists"},
        {"key": OWN_NAME, "operator": "DoesNotExist"},
    )
    terms: list[Json] = [{"matchExpressions": draw.sample(expressions, draw.choice((1, 2)))}]
    if draw.chance(0.3):
        terms.append({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]})
    affinity = pod["spec"].setdefault("affinity", {})
    affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _with_pod_affinity(draw: Draw, pod: Json) -> None:
    kind = draw.choice(("podAffinity", "podAntiAffinity"))
    affinity = pod["spec"].setdefault("affinity", {})
    affinity[kind] = _required([_term(draw) for _ in range(draw.choice((1, 1, 2)))])


def _with_spreading(draw: Draw, pod: Json) -> None:
    app = pod["metadata"]["labels"]["app"]
    constraints = []
    for key in draw.sample((ZONE, HOSTNAME), draw.choice((1, 1, 2))):
        constraint = {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }
        if draw.chance(0.3):
            constraint["minDomains"] = 3
        if draw.chance(0.3):
            constraint["nodeTaintsPolicy"] = "Honor"
        if draw.chance(0.2):
            constraint["nodeAffinityPolicy"] = "Ignore"
        constraints.append(constraint)
    pod["spec"]["topologySpreadConstraints"] = constraints


def _with_tolerations(draw: Draw, pod: Json) -> None:
    tolerations = [{"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}]
    pod["spec"]["tolerations"] = [] if draw.chance(0.3) else tolerations


def _with_port(draw: Draw, pod: Json) -> None:
    _add_port(draw, pod)


def _with_volume(draw: Draw, pod: Json) -> None:
    _add_volume(pod, draw.choice(("local", "zonal", "wait", "none", "once", "driver")))


def _with_claim(draw: Draw, pod: Json) -> None:
    claim = draw.choice(("one", "two", "taken"))
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    container = pod["spec"]["containers"][0]
    container.setdefault("resources", {})["claims"] = [{"name": "gpu"}]


_TRAITS: Final = (
    _with_limits_only,
    _without_requests,
    _with_two_containers,
    _with_init_container,
    _with_memory,
    _with_extended,
    _with_selector,
    _with_node_affinity,
    _with_pod_affinity,
    _with_spreading,
    _with_tolerations,
    _with_port,
    _with_volume,
    _with_claim,
)


def _term(draw: Draw) -> Json:
    return {"labelSelector": {"matchLabels": {"app": draw.choice(APPS)}}, "topologyKey": draw.choice((ZONE, HOSTNAME))}


def _required(terms: list[Json]) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _add_port(draw: Draw, pod: Json) -> None:
    port = draw.choice((8080, 9090))
    pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80}, {"containerPort": port, "hostPort": port}]


def _add_volume(pod: Json, claim: str) -> None:
    pod["spec"].setdefault("volumes", []).append({"name": claim, "persistentVolumeClaim": {"claimName": claim}})


def _storage(draw: Draw, nodes: Sequence[str]) -> list[Json]:
    """Claims by name: bound to a node's disk, to a zone's, waiting for a node, with nothing to bind, and shared."""
    in_zone = {"key": ZONE, "operator": "In", "values": [draw.choice(ZONES)]}
    on_node = {"key": HOSTNAME, "operator": "In", "values": [draw.choice(nodes)]}
    limits = [node for node in nodes if draw.chance(0.5)]
    return [
        _of("storage.k8s.io/v1", "StorageClass", "wait", provisioner=DRIVER, volumeBindingMode="WaitForFirstConsumer"),
        _of(
            "storage.k8s.io/v1",
            "StorageClass",
            "none",
            provisioner="kubernetes.io/no-provisioner",
            volumeBindingMode="WaitForFirstConsumer",
        ),
        _volume("local", on_node),
        _volume("zonal", in_zone),
        _volume("once", None, mode="ReadWriteOncePod"),
        _volume("driver", None),
        *(_claim(name) for name in ("local", "zonal", "driver")),
        _claim("once", mode="ReadWriteOncePod"),
        _waiting_claim(draw, nodes),
        _claim("none", storage_class="none"),
        *(_csi_node(name, draw.choice((0, 1, 5))) for name in limits),
    ]


def _of(version: str, kind: str, name: str, namespace: str = "", **content: Any) -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


def _volume(name: str, required: Json | None, mode: str = "ReadWriteOnce") -> Json:
    spec: Json = {
        "capacity": {"storage": "1Gi"},
        "accessModes": [mode],
        "storageClassName": "",
        "claimRef": {"kind": "PersistentVolumeClaim", "name": name, "namespace": NAMESPACE, "uid": f"claim-{name}"},
        "csi": {"driver": DRIVER, "volumeHandle": name},
    }
    if required is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [required]}]}}
    return _of("v1", "PersistentVolume", name, spec=spec, status={"phase": "Bound"})


def _claim(name: str, mode: str = "ReadWriteOnce", storage_class: str = "") -> Json:
    spec = {
        "accessModes": [mode],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class,
    }
    if storage_class:
        claim = _of("v1", "PersistentVolumeClaim", name, NAMESPACE, spec=spec, status={"phase": "Pending"})
    else:
        spec["volumeName"] = name
        claim = _of("v1", "PersistentVolumeClaim", name, NAMESPACE, spec=spec, status={"phase": "Bound"})
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    claim["metadata"]["uid"] = f"claim-{name}"
    return claim


def _waiting_claim(draw: Draw, nodes: Sequence[str]) -> Json:
    """A claim that waits for a node; an earlier attempt may have chosen one, which may be gone."""
    claim = _claim("wait", storage_class="wait")
    if draw.chance(0.4):
        selected = "gone" if draw.chance(0.7) else draw.choice(nodes)
        claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": selected}
    return claim


def _csi_node(node: str, limit: int) -> Json:
    driver = {"name": DRIVER, "nodeID": node, "topologyKeys": [HOSTNAME], "allocatable": {"count": limit}}
    return _of("storage.k8s.io/v1", "CSINode", node, spec={"drivers": [driver]})


def _devices(draw: Draw, nodes: Sequence[str]) -> list[Json]:
    """One or two devices on some nodes, and claims of them; one claim has its devices, on a node."""
    version = "resource.k8s.io/v1"
    selectors = [{"cel": {"expression": f'device.driver == "{DEVICES}"'}}]
    having = [node for node in nodes if draw.chance(0.4)]
    slices = [
        _of(
            version,
            "ResourceSlice",
            f"slice-{node}",
            spec={
                "driver": DEVICES,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [_device(draw, f"d{i}") for i in range(draw.choice((1, 2)))],
            },
        )
        for node in having
    ]
    claims = [_device_claim("one", 1), _device_claim("two", 2), _device_claim("taken", 1)]
    if having and draw.chance(0.5):
        claims[2]["status"] = _allocated(having.pop(draw.randrange(len(having))), "d0")
    users = []
    for node in having:
        if draw.chance(0.4):
            claim = _device_claim(f"of-{node}", 1)
            claim["status"] = {**_allocated(node, "d0"), "reservedFor": [_consumer(f"user-{node}")]}
            users += [claim, _user(draw, node)]
    return [_of(version, "DeviceClass", "gpu", spec={"selectors": selectors}), *slices, *claims, *users]


def _device(draw: Draw, name: str) -> Json:
    return {"name": name} | ({"taints": [dict(HOT)]} if draw.chance(0.25) else {})


def _allocated(node: str, device: str) -> Json:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "allocation": {
            "devices": {"results": [{"request": "gpu", "driver": DEVICES, "pool": node, "device": device}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
    }


def _consumer(pod: str) -> Json:
    return {"resource": "pods", "name": pod, "uid": f"uid-{pod}"}


def _user(draw: Draw, node: str) -> Json:
    """The pod that uses the first device of a node."""
    pod = _pod(f"user-{node}", draw.choice(APPS))
    pod["metadata"] |= {"uid": f"uid-user-{node}", "resourceVersion": "1"}
    pod["spec"] |= {"nodeName": node, "priority": draw.choice((0, 0, 1000))}
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"of-{node}"}]
    return pod


def _device_claim(name: str, count: int) -> Json:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}}
    return _of("resource.k8s.io/v1", "ResourceClaim", name, NAMESPACE, spec={"devices": {"requests": [request]}})


def _budgets(draw: Draw) -> list[Json]:
    found = []
    for app in APPS:
        if draw.chance(0.25):
            spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": app}}}
            status = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
            found.append(_of("policy/v1", "PodDisruptionBudget", app, NAMESPACE, spec=spec, status=status))
    return found
