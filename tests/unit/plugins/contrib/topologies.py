"""NodeResourceTopology objects and the pods that ask for NUMA nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler import framework as fw
from scheduler.api.pods.pod import Pod
from scheduler.testing import an_object, pod_from_dict

Amounts = Mapping[str, Any]


def a_zone(number: int, costs: Mapping[int, int] | None = None, **available: Any) -> dict[str, Any]:
    """A NUMA node; resources with odd names are given as `resources`."""
    resources = {**available.pop("resources", {}), **available}
    return {
        "name": f"node-{number}",
        "type": "Node",
        "costs": [{"name": f"node-{other}", "value": cost} for other, cost in (costs or {}).items()],
        "resources": [
            {"name": name, "capacity": amount, "allocatable": amount, "available": amount}
            for name, amount in resources.items()
        ],
    }


def a_topology(
    node: str,
    *zones: Mapping[str, Any],
    policy: str = "single-numa-node",
    scope: str = "container",
    attributes: Mapping[str, str] | None = None,
    version: int = 1,
) -> fw.Unstructured:
    every = {"topologyManagerPolicy": policy, "topologyManagerScope": scope, **(attributes or {})}
    listed = [{"name": name, "value": value} for name, value in every.items()]
    return an_object(node, uid=node, version=version, attributes=listed, zones=list(zones))


def a_numa_pod(
    *containers: Amounts,
    init: Sequence[Amounts] = (),
    sidecars: Sequence[Amounts] = (),
    guaranteed: bool = True,
    name: str = "pod",
    **spec: Any,
) -> Pod:
    """A pod of containers with these requests, and the same limits if it is to be Guaranteed."""

    def container(number: int, amounts: Amounts, **more: Any) -> dict[str, Any]:
        resources = {"requests": dict(amounts)} | ({"limits": dict(amounts)} if guaranteed else {})
        return {"name": f"c{number}", "resources": resources, **more}

    before = [container(i, each) for i, each in enumerate(init)]
    before += [container(i + 100, each, restartPolicy="Always") for i, each in enumerate(sidecars)]
    return pod_from_dict(
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"default/{name}"},
            "spec": {
                "containers": [container(i + 200, each) for i, each in enumerate(containers)],
                "initContainers": before,
                "schedulerName": "default-scheduler",
                **spec,
            },
        }
    )
