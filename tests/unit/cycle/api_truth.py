"""An API server in memory that knows the truth, and a watch that garbles it: for test_disordered_events.py.

Objects are raw, as the API server sends them. What is reported of one object may be lost, doubled, overtaken by
later reports, or sent without a field; a list has the truth of its moment, but some of its objects may be unreadable.
"""

import copy
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

Raw: TypeAlias = dict[str, Any]

PODS: Final = "pods"
NODES: Final = "nodes"
DELETION: Final = "2026-01-31T12:00:00Z"

LACKING: Final[Mapping[str, Mapping[str, Callable[[Raw], object]]]] = {
    PODS: {
        "no labels": lambda raw: raw["metadata"].pop("labels"),
        "null labels": lambda raw: raw["metadata"].update(labels=None),
        "no status": lambda raw: raw.pop("status"),
        "no containers": lambda raw: raw["spec"].pop("containers"),
        "null containers": lambda raw: raw["spec"].update(containers=None),
        "null tolerations": lambda raw: raw["spec"].update(tolerations=None),
    },
    NODES: {
        "no labels": lambda raw: raw["metadata"].pop("labels"),
        "no status": lambda raw: raw.pop("status"),
        "no spec": lambda raw: raw.pop("spec"),
        "null taints": lambda raw: raw["spec"].update(taints=None),
    },
}
"""Ways in which an object lacks a field and can be read all the same."""

UNREADABLE: Final[Mapping[str, Mapping[str, Callable[[Raw], object]]]] = {
    PODS: {
        "cpu is no quantity": lambda raw: _requests(raw).update(cpu="lots"),
        "priority is a word": lambda raw: raw["spec"].update(priority="high"),
        "labels are a list": lambda raw: raw["metadata"].update(labels=["app"]),
        "name is a number": lambda raw: raw["metadata"].update(name=7),
        "containers are a word": lambda raw: raw["spec"].update(containers="main"),
        "node is a number": lambda raw: raw["spec"].update(nodeName=7),
        "null spec": lambda raw: raw.update(spec=None),
    },
    NODES: {
        "cpu is no quantity": lambda raw: raw["status"]["allocatable"].update(cpu="lots"),
        "taints are a word": lambda raw: raw["spec"].update(taints="none"),
        "labels are a list": lambda raw: raw["metadata"].update(labels=["zone"]),
        "name is a number": lambda raw: raw["metadata"].update(name=7),
        "null status": lambda raw: raw.update(status=None),
    },
}

UNADDRESSED: Final[Mapping[str, Callable[[Raw], object]]] = {
    "no metadata": lambda raw: raw.pop("metadata"),
    "null metadata": lambda raw: raw.update(metadata=None),
    "no uid": lambda raw: raw["metadata"].pop("uid"),
    "no version": lambda raw: raw["metadata"].pop("resourceVersion"),
    "version is a number": lambda raw: raw["metadata"].update(resourceVersion=7),
}
"""Ways of hiding which version of which object it is."""


class Change(NamedTuple):
    """What the watch reports of one object."""

    resource: str
    type: str
    raw: Raw
    fault: str = ""
    """What is wrong with it, if it cannot be read."""

    @property
    def uid(self) -> str:
        return str(self.raw["metadata"]["uid"])

    @property
    def version(self) -> str:
        return str(self.raw["metadata"]["resourceVersion"])

    def __repr__(self) -> str:
        """For the account of a failure."""
        return " ".join(filter(None, (self.type, self.uid, f"version {self.version}", self.fault)))


class ApiTruth:
    """What is true, and what the watch has yet to report of it."""

    def __init__(self) -> None:
        self.version = 0
        self.objects: dict[str, dict[str, Raw]] = {PODS: {}, NODES: {}}
        """Resource → UID → newest version, complete and readable."""
        self.faults: dict[str, str] = {}
        """UID → how the API server sends an object, if not whole."""
        self.on_the_way: list[Change] = []
        self.told: deque[Change] = deque(maxlen=30)
        """What arrived lately, and may arrive again."""
        self._made = 0

    # What users, kubelets and schedulers do.

    def make_pod(self, name: str, spec: Raw, cpu: int) -> str:
        """Create a pod and return its UID; there may be one of that name no longer."""
        container = {"name": "main", "resources": {"requests": {"cpu": str(cpu)}}}
        metadata = {"name": name, "namespace": "default", "uid": self._new_uid(name), "labels": {"app": "web"}}
        raw = {"metadata": metadata, "spec": {"containers": [container], **spec}, "status": {"phase": "Pending"}}
        return self.put(PODS, raw)

    def make_node(self, name: str, cpu: int) -> str:
        """Create a node and return its UID."""
        metadata = {"name": name, "uid": self._new_uid(name), "labels": {"zone": "a"}}
        status = {"allocatable": {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}}
        return self.put(NODES, {"metadata": metadata, "spec": {"taints": []}, "status": status})

    def put(self, resource: str, raw: Raw) -> str:
        """Store a new version of an object, and let the watch report it."""
        uid = str(raw["metadata"]["uid"])
        type_ = "MODIFIED" if uid in self.objects[resource] else "ADDED"
        raw = self._versioned(raw)
        self.objects[resource][uid] = raw
        self.on_the_way.append(self._as_sent(resource, type_, raw))
        return uid

    def remove(self, resource: str, uid: str) -> None:
        """Delete an object; also what becomes of a pod that has ended, since the watch asks for no such pods."""
        raw = self._versioned(self.objects[resource].pop(uid))
        self.on_the_way.append(self._as_sent(resource, "DELETED", raw))
        self.faults.pop(uid, None)

    def change(self, resource: str, uid: str, *path: str, to: Any) -> None:
        """Set one field and store the new version."""
        raw = copy.deepcopy(self.objects[resource][uid])
        inner = raw
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = to
        self.put(resource, raw)

    def bind(self, uid: str, node_name: str) -> bool:
        """Bind a pod, if it can be."""
        pod = self.objects[PODS].get(uid)
        if pod is None or pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
            return False
        self.change(PODS, uid, "spec", "nodeName", to=node_name)
        return True

    def spoil(self, resource: str, uid: str, fault: str) -> None:
        """From its next version on, send an object with this fault; none to mend it."""
        self.faults[uid] = fault
        self.put(resource, self.objects[resource][uid])

    # What a reader gets.

    def next_of_each(self) -> list[Change]:
        """The oldest news of each object."""
        first: dict[str, Change] = {}
        for change in self.on_the_way:
            first.setdefault(change.uid, change)
        return list(first.values())

    def take(self, change: Change) -> Change:
        """Take a change off the wire."""
        at = next(i for i, each in enumerate(self.on_the_way) if each is change)
        self.told.append(change)
        return self.on_the_way.pop(at)

    def listed(self, resource: str) -> list[Change]:
        """Every object as a list would have it."""
        return [self._as_sent(resource, "LISTED", raw) for raw in self.objects[resource].values()]

    def page(self, items: Iterable[Change]) -> bytes:
        """A list of the present version, on one page."""
        metadata = {"resourceVersion": str(self.version)}
        return json.dumps({"metadata": metadata, "items": [item.raw for item in items]}).encode()

    def stranger(self, resource: str, type_: str, node_name: str, profile: str) -> Change:
        """News of an object that never was."""
        uid = self._new_uid("stranger")
        spec = {"nodeName": node_name, "schedulerName": profile} if resource == PODS else {}
        metadata = {"name": uid, "namespace": "default", "uid": uid, "resourceVersion": str(self.version)}
        return Change(resource, type_, {"metadata": metadata, "spec": spec, "status": {}})

    # What is true.

    def pods_by_node(self) -> dict[str, dict[str, int]]:
        """Node → UID → thousandths of a core, of all bound pods."""
        found: dict[str, dict[str, int]] = {}
        for uid, raw in self.objects[PODS].items():
            if node_name := raw["spec"].get("nodeName"):
                found.setdefault(node_name, {})[uid] = int(_requests(raw)["cpu"]) * 1000
        return found

    def node_named(self, name: str) -> str | None:
        """The UID of the node that has this name now."""
        return next((uid for uid, raw in self.objects[NODES].items() if raw["metadata"]["name"] == name), None)

    # How.

    def _new_uid(self, name: str) -> str:
        self._made += 1
        return f"{name}.{self._made}"

    def _versioned(self, raw: Raw) -> Raw:
        self.version += 1
        return {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(self.version)}}

    def _as_sent(self, resource: str, type_: str, raw: Raw) -> Change:
        fault = self.faults.get(str(raw["metadata"]["uid"]), "")
        if fault:
            raw = copy.deepcopy(raw)
            (LACKING[resource].get(fault) or UNREADABLE[resource][fault])(raw)
        return Change(resource, type_, raw, fault if fault in UNREADABLE[resource] else "")


def _requests(pod: Raw) -> dict[str, Any]:
    requests: dict[str, Any] = pod["spec"]["containers"][0]["resources"]["requests"]
    return requests
