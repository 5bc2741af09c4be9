"""Pods that nobody else is like: labels of their own, and every tenth with a selector of its own."""

from typing import Final

from tests.attacks.affinity import HOSTNAME, ZONE, anti_affinity
from tests.attacks.attack import Object
from tests.controlplane import a_pod

SELECTIVE: Final = 10
"""One of so many pods has a selector."""


def churned_pod(number: int) -> Object:
    """The pod of that number; no other number has its labels or its selector."""
    app = f"app-{number}"
    pod = a_pod(f"churned-{number}", cpu="10m", memory="16Mi", labels={"app": app})
    if number % SELECTIVE == 0:
        pod["spec"].update(selective(number // SELECTIVE, {"matchLabels": {"app": app}}))
    return pod


def selective(number: int, selector: Object) -> Object:
    """What a pod's spec says with that selector: each kind of selector in its turn."""
    towards_host, towards_zone = ({"labelSelector": selector, "topologyKey": key} for key in (HOSTNAME, ZONE))
    preferred = [{"weight": 1, "podAffinityTerm": towards_host}]
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    kinds: tuple[Object, ...] = (
        {"affinity": anti_affinity([towards_host])},
        {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}},
        {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}},
        {"affinity": anti_affinity([towards_zone])},
        {"topologySpreadConstraints": [spread]},
        {"topologySpreadConstraints": [{**spread, "whenUnsatisfiable": "ScheduleAnyway"}]},
        {"nodeSelector": {HOSTNAME: f"node-{number % 100}"}},
        {"tolerations": [{"key": f"example.com/{number}", "operator": "Exists"}]},
    )
    return kinds[number % len(kinds)]
