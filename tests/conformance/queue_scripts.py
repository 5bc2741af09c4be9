"""Random scripts for the queue, each from a seed: what the watch, the loop and time could do with it.

    python -m tests.conformance.queue_scripts 42

prints script 42. An operation that names a pod which is not there does nothing, and "which" counts around: a script
that has lost operations is one still. Left out is what docs/differences.md lets the two do differently.
"""

import copy
import json
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

Json = dict[str, Any]

TICKS: Final = 512
"""In a second; each operation takes one by itself."""

LENGTH: Final = 60
"""Operations of a script."""

PROFILES: Final = ("one", "two")
PLUGINS: Final = ("Fit", "Taints", "Volumes", "Claims")
GATES: Final = ("GateA", "GateB", "SchedulingGates")
NODES: Final = ("n1", "n2", "n3")
APPS: Final = ("web", "db")
ANSWERS: Final = ("queue", "skip", "match", "error")

EVENTS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("Node", ("Add", "Delete", "UpdateNodeAllocatable", "UpdateNodeLabel", "UpdateNodeTaint", "UpdateNodeCondition")),
    ("AssignedPod", ("Add", "Delete", "UpdatePodLabel", "UpdatePodScaleDown", "Update")),
    ("PersistentVolume", ("Add", "Update")),
    ("example.com/Widget", ("Add", "Delete", "Update")),
)
"""What can happen to other objects than the pods of the queue."""

WATCHED: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("Node", ("Add", "UpdateNodeAllocatable")),
    ("Node", ("Add", "Delete", "UpdateNodeTaint", "UpdateNodeLabel")),
    ("Node", ("All",)),
    ("Pod", ("Delete",)),
    ("Pod", ("UpdatePodLabel",)),
    ("Pod", ("Add", "UpdatePodScaleDown", "UpdatePodToleration")),
    ("Pod", ("UpdatePodSchedulingGatesEliminated",)),
    ("Pod", ("Update",)),
    ("Pod", ("All",)),
    ("PersistentVolume", ("Add", "Update")),
    ("example.com/Widget", ("All",)),
    ("*", ("All",)),
)
"""What plugins register for."""


def generate(seed: int, length: int = LENGTH) -> Json:
    """The script of this seed, as a case for the oracle."""
    return Script(seed).case(length)


class Script:
    """Writes a script, knowing the pods that it made but not where the queue has them."""

    def __init__(self, seed: int) -> None:
        self._name = f"queue-{seed}"
        self._random = random.Random(f"queue {seed}")
        self._pods: dict[str, Json] = {}
        """Name → newest version, of those that were not deleted."""
        self._made = 0
        self._version = 0
        self._haste = self._random.choice((0.2, 1.0, 4.0))
        """How much time passes between operations, roughly."""

    def case(self, length: int) -> Json:
        """The whole script."""
        profiles = {name: self._profile() for name in PROFILES}
        operations = list(self._crowd()) if self._chance(0.5) else []
        while len(operations) < length:
            operations += self._operations()
        return {"name": self._name, "queue": {"profiles": profiles, "operations": operations[:length]}}

    # Plugins.

    def _profile(self) -> Json:
        plugins = {name: self._registrations() for name in PLUGINS if self._chance(0.9)}
        gates = [gate for gate in GATES if self._chance(0.8)]
        plugins |= {gate: self._registrations() for gate in gates if self._chance(0.8)}
        return {"plugins": plugins, "gates": gates}

    def _registrations(self) -> list[Json]:
        chosen = self._random.sample(WATCHED, self._random.randint(1, 3))
        return [self._registration(resource, actions) for resource, actions in chosen]

    def _registration(self, resource: str, actions: tuple[str, ...]) -> Json:
        event = {"resource": resource, "actions": list(actions)}
        return {"event": event, "hint": self._chance(0.7), "shape": self._chance(0.6)}

    # Operations.

    def _crowd(self) -> Iterator[Json]:
        """Some pods that were refused: the script begins with them."""
        for operations in (self._add, self._pop, self._fail):
            for _ in range(6):
                yield from operations()

    def _operations(self) -> Iterator[Json]:
        kinds: dict[Callable[[], Iterator[Json]], int] = {
            self._add: 10,
            self._pop: 20,
            self._fail: 20,
            self._update: 14,
            self._delete: 2,
            self._bind: 3,
            self._end_binding: 3,
            self._move: 18,
            self._activate: 3,
            self._open: 3,
            self._advance: 8,
            self._flush: 6,
            self._wait_long: 1,
        }
        (kind,) = self._random.choices(list(kinds), list(kinds.values()))
        return kind()

    def _add(self) -> Iterator[Json]:
        self._made += 1
        name = f"p{self._made}"
        pod: Json = {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": self._labels(0.15)},
            "spec": {
                "schedulerName": self._random.choice(PROFILES),
                "priority": self._random.choice((0, 0, 5, 10)),
                "containers": [{"name": "main", "image": "a", "resources": {"requests": {"cpu": "4"}}}],
            },
            "status": {"phase": "Pending"},
        }
        if self._chance(0.2):
            pod["spec"]["schedulingGates"] = [{"name": "x"}, {"name": "y"}]
            pod["metadata"]["labels"].pop("gate", None)
        if self._chance(0.2):
            pod["status"]["nominatedNodeName"] = self._random.choice(NODES)
        yield {"do": "add", "pod": self._next_version(pod)}

    def _update(self) -> Iterator[Json]:
        if not self._pods:
            return
        pod = copy.deepcopy(self._random.choice(list(self._pods.values())))
        changes = self._random.sample(
            (self._relabel, self._tolerate, self._ungate, self._shrink, self._change_image), self._random.randint(1, 2)
        )
        if sum([change(pod) for change in changes]):
            yield {"do": "update", "pod": self._next_version(pod)}

    def _relabel(self, pod: Json) -> bool:
        labels = self._labels(0.35)
        if "schedulingGates" in pod["spec"]:
            labels.pop("gate", None)
        # A change of the nomination alone is no event for us, but one for kube-scheduler.
        if self._chance(0.3):
            pod["status"]["nominatedNodeName"] = self._random.choice(("", *NODES))
        pod["metadata"]["labels"] = {**labels, "version": str(self._version)}
        return True

    def _tolerate(self, pod: Json) -> bool:
        pod["spec"].setdefault("tolerations", []).append({"key": f"k{self._version}", "operator": "Exists"})
        return True

    def _ungate(self, pod: Json) -> bool:
        gates = pod["spec"].get("schedulingGates")
        if not gates:
            return False
        gates.pop()
        if not gates:
            del pod["spec"]["schedulingGates"]
        return True

    def _shrink(self, pod: Json) -> bool:
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        requests["cpu"] = str(max(1, int(requests["cpu"]) + self._random.choice((-1, 1))))
        return True

    def _change_image(self, pod: Json) -> bool:
        pod["spec"]["containers"][0]["image"] = f"v{self._version}"
        return True

    def _delete(self) -> Iterator[Json]:
        if self._pods:
            name = self._random.choice(list(self._pods))
            del self._pods[name]
            yield {"do": "delete", "name": name}

    def _pop(self) -> Iterator[Json]:
        for _ in range(self._random.choice((1, 1, 1, 2, 4))):
            yield {"do": "pop"}

    def _fail(self) -> Iterator[Json]:
        for _ in range(self._random.choice((1, 1, 2))):
            yield {"do": "fail", "which": self._random.randrange(8), **self._refusal(), **self._nomination()}

    def _refusal(self) -> Json:
        kind = self._random.random()
        if kind < 0.15:
            return {}
        refused = self._random.sample((*PLUGINS, "Unheard"), self._random.choice((1, 1, 2)))
        if kind < 0.75:
            return {"unschedulable": refused}
        pending = self._random.sample(PLUGINS, 1)
        return {"pending": pending} if kind < 0.9 else {"pending": pending, "unschedulable": refused}

    def _nomination(self) -> Json:
        return {"nominate": self._random.choice(("", *NODES))} if self._chance(0.4) else {}

    def _bind(self) -> Iterator[Json]:
        yield {"do": "bind", "which": self._random.randrange(8)}

    def _end_binding(self) -> Iterator[Json]:
        which = self._random.randrange(8)
        if self._chance(0.5):
            yield {"do": "bound", "which": which}
        else:
            yield {"do": "fail binding", "which": which, "nominate": ""}

    def _move(self) -> Iterator[Json]:
        resource, actions = self._random.choice(EVENTS)
        action = self._random.choice(actions)
        operation: Json = {"do": "move", "event": {"resource": resource, "actions": [action]}}
        if action != "Add":
            operation["old"] = self._thing()
        if action != "Delete":
            operation["new"] = self._thing()
        if self._chance(0.15):
            operation["upTo"] = self._random.choice((-1, 0, 5))
        yield operation

    def _thing(self) -> Json:
        labels = {"app": self._random.choice(APPS)} | {
            f"hint.{name}": self._random.choice(ANSWERS) for name in (*PLUGINS, *GATES) if self._chance(0.6)
        }
        return {"metadata": {"name": "thing", "uid": "thing", "labels": labels}, "spec": {"nodeName": "n1"}}

    def _activate(self) -> Iterator[Json]:
        names = self._random.sample(list(self._pods), min(len(self._pods), self._random.randint(1, 3)))
        yield {"do": "activate", "names": sorted(names)}

    def _open(self) -> Iterator[Json]:
        yield {"do": "open", "names": [gate for gate in GATES if self._chance(0.4)]}

    def _advance(self) -> Iterator[Json]:
        yield {"do": "advance", "ticks": self._random.randrange(int(3 * TICKS * self._haste) + 1)}

    def _flush(self) -> Iterator[Json]:
        yield {"do": "flush"}

    def _wait_long(self) -> Iterator[Json]:
        # Less some ticks: for the pod that has just failed, the limit of five minutes is met exactly.
        ticks = self._random.choice((30, 300, 301, 400)) * TICKS - self._random.randrange(5)
        yield {"do": "advance", "ticks": ticks}
        yield {"do": "flush"}
        yield {"do": "flush leftover"}

    # How.

    def _labels(self, gated: float) -> dict[str, str]:
        """`gated`: how likely a gate holds the pod. At most one does, for kube-scheduler asks them in no order."""
        labels = {"app": self._random.choice(APPS)}
        if self._chance(gated):
            labels["gate"] = self._random.choice(GATES[:2])
        labels |= {f"hint.{name}": self._random.choice(ANSWERS) for name in (*PLUGINS, *GATES) if self._chance(0.3)}
        return labels

    def _next_version(self, pod: Json) -> Json:
        self._version += 1
        pod["metadata"]["resourceVersion"] = str(self._version)
        self._pods[pod["metadata"]["name"]] = pod
        return copy.deepcopy(pod)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability


if __name__ == "__main__":
    print(json.dumps(generate(int(sys.argv[1])), indent=1))
