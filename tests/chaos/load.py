"""Nodes and pods of a round. Their names are the same in every round, so each round makes them again.

What is drawn here is what `judge.py` understands; a new kind of constraint needs a sentence there.
"""

import random
from typing import Any, Final

from tests.chaos.plan import Plan
from tests.controlplane import a_node, a_pod
from tests.controlplane.client import Object

NAMESPACE: Final = "chaos"
HOSTILE: Final = "chaos-hostile"
"""Where hostile pods are: they need nothing, so nobody else has to count them."""
SCHEDULERS: Final = ("loadmaster", "budgeted")
"""The profiles under test."""
RIVAL: Final = "rival"
ZONES: Final = ("a", "b", "c")
PRIORITIES: Final = {"chaos-low": -10, "chaos-high": 1000}
POOL: Final = {"key": "pool", "value": "small", "effect": "NoSchedule"}
TEAM: Final = "red"
CORES: Final = ("500m", "1", "2")
"""Of a node: so few that many are full at the end."""

BUDGET: Final[Object] = {
    "apiVersion": "example.com/v1",
    "kind": "Budget",
    "metadata": {"name": TEAM, "namespace": NAMESPACE},
    "spec": {"pool": "team"},
}


def nodes(plan: Plan) -> list[Object]:
    """Most for everybody; some tainted, cordoned or labelled, and a small pool for preemption."""
    rng = plan.rng("nodes")
    return [_node(i, rng) for i in range(plan.nodes)] + [
        a_node(f"small-{i}", cpu="1", memory="4Gi", zone=ZONES[i % 3], labels={"pool": "small"}, taints=[POOL])
        for i in range(4)
    ]


def _node(number: int, rng: random.Random) -> Object:
    wishes: dict[str, Any] = {"labels": {"disk": rng.choice(("ssd", "hdd"))}, "zone": ZONES[number % 3]}
    if number % 10 == 0:
        wishes["labels"] |= {"pool": "team"}
    if rng.random() < 0.1:
        wishes["taints"] = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]
    wishes["unschedulable"] = rng.random() < 0.05
    return a_node(f"node-{number:03}", cpu=rng.choice(CORES), memory="16Gi", pods="20", **wishes)


def batches(plan: Plan) -> list[list[Object]]:
    """The pods of a round, in the order in which they are made: the small pool is full before it is wanted."""
    rng, each = plan.rng("pods"), plan.constrained
    plain = [_web(i, rng.choice(("250m", "500m", "1"))) for i in range(plan.plain)]
    constrained = [pod for i in range(each) for pod in _constrained(i)]
    rng.shuffle(constrained)
    impossible = [pod for i in range(plan.impossible) for pod in _impossible(i)]
    half = len(plain) // 2
    return [_fillers(), plain[:half], constrained, impossible + plain[half:], _preemptors()]


def _web(number: int, cpu: str) -> Object:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    pod = a_pod(f"web-{number}", NAMESPACE, cpu=cpu, memory="64Mi", labels={"app": "web"})
    pod["metadata"]["ownerReferences"] = [owner]
    return pod


def _constrained(number: int) -> list[Object]:
    """One pod of each kind of constraint that can be met."""
    db = {"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"}
    return [
        _pod(f"even-{number}", "even", topologySpreadConstraints=[spread("even")]),
        _pod(f"alone-{number}", "alone", affinity={"podAntiAffinity": terms("alone", "kubernetes.io/hostname")}),
        _pod(f"near-{number}", "near", affinity={"podAffinity": terms("near", "topology.kubernetes.io/zone")}),
        _pod(f"fast-{number}", "fast", nodeSelector={"disk": "ssd"}, tolerations=[db]),
        _pod(f"team-{number}", "team", labels={"team": TEAM}, scheduler="budgeted"),
    ]


def _impossible(number: int) -> list[Object]:
    """Pods that have to wait, for a reason that the judge knows."""
    return [
        _pod(f"huge-{number}", "huge", cpu="1000"),
        _pod(f"nowhere-{number}", "nowhere", nodeSelector={"disk": "none"}),
        _pod(f"gated-{number}", "gated", schedulingGates=[{"name": "example.com/quota"}]),
    ]


def _fillers() -> list[Object]:
    """Pods of low priority that fill the small pool."""
    return [_small(f"low-{i}", "chaos-low") for i in range(8)]


def _preemptors() -> list[Object]:
    return [_small(f"high-{i}", "chaos-high") for i in range(3)]


def _small(name: str, priority: str) -> Object:
    toleration = {"key": "pool", "operator": "Exists"}
    wishes: dict[str, Any] = {"nodeSelector": {"pool": "small"}, "tolerations": [toleration]}
    return _pod(name, "small", cpu="500m", priorityClassName=priority, **wishes)


def _pod(name: str, app: str, *, labels: dict[str, str] | None = None, cpu: str = "100m", **spec: Any) -> Object:
    return a_pod(name, NAMESPACE, cpu=cpu, memory="64Mi", labels={"app": app, **(labels or {})}, **spec)


def spread(app: str) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def terms(app: str, key: str) -> Object:
    """One required term of affinity or anti-affinity."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
