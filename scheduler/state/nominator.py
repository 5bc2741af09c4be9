"""The node that a pod is nominated to: preemption frees space there, or a binding is on its way.

Rule: pkg/scheduler/backend/queue/nominator.go at v1.36.3. A nomination is known here before the pod's status says so.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from scheduler.api.pods.pod import Pod
from scheduler.api.read_only import read_only_attribute
from scheduler.framework.nodes.change_log import BoundedLog
from scheduler.runtime.event_stream import EventStream
from scheduler.state.state_events import NominationEnded, PodNominated


class Nominator:
    """Implements framework.handle.PodNominator: nominated pods, by node and by UID."""

    def __init__(self, stream: EventStream | None = None) -> None:
        self._node_names: dict[str, str] = {}
        self._pods: dict[str, dict[str, Pod]] = {}
        self._nodes = self._pods.keys()
        self._kept: dict[str, int] = {}
        self._kept_view = MappingProxyType(self._kept)
        self._kept_on: dict[str, str] = {}
        self._moved: dict[str, str] = {}
        self._kept_before: dict[str, int] = {}
        self._gaining: set[str] = set()
        self._kept_so_far = 0
        self._changes = BoundedLog[str]()
        self._stream = stream or EventStream()

    nodes: Collection[str] = read_only_attribute("_nodes")
    kept: Mapping[str, int] = read_only_attribute("_kept_view")
    kept_so_far: int = read_only_attribute("_kept_so_far")
    """How often `keep` was called."""

    changes: BoundedLog[str] = read_only_attribute("_changes")

    def nominated_pods(self, node_name: str) -> Collection[Pod]:
        pods = self._pods.get(node_name)
        return tuple(pods.values()) if pods else ()

    def node_of(self, uid: str) -> str:
        return self._node_names.get(uid, "")

    def kept_on(self, uid: str) -> str:
        moved = self._moved.get(uid)
        return self._kept_on.get(uid, "") if moved is None else moved

    def kept_before(self, uid: str) -> int:
        return self._kept_before.get(uid, 0)

    def has_gained(self, uid: str) -> bool:
        return uid in self._gaining

    def by_node(self) -> Iterator[tuple[str, Collection[Pod]]]:
        for node_name, pods in self._pods.items():
            yield node_name, tuple(pods.values())

    def add(self, pod: Pod, node_name: str | None = None) -> None:
        """Nominate a pod to `node_name`, or to the node that its status names, instead of any earlier one.

        Without either, and for a pod that is bound, there is no nomination. The caller makes sure that the pod exists.
        Of a pod that is kept, what its status says is older than what is known here.
        """
        uid = pod.uid
        if node_name is None:
            node_name = self._kept_on.get(uid)
        name = pod.nominated_node_name if node_name is None else node_name
        has_it = name and self._node_names.get(uid) == name
        if has_it and uid in self._kept and self._pods[name][uid] is pod:
            return  # as it was: quota would compare all that are nominated to the node
        number = self._kept_before.get(uid, 0) if has_it else self._kept_so_far
        self.delete(uid)
        if name and not pod.node_name:
            self._node_names[uid] = name
            if number:
                self._kept_before[uid] = number
            if uid in self._kept:
                self._kept_on[uid] = name
            self._pods.setdefault(name, {})[uid] = pod
            self._changes.mark(name)
            if PodNominated in self._stream.listeners:
                self._stream.publish(PodNominated(pod, name))

    def update(self, old: Pod, new: Pod) -> None:
        """Replace a pod by its new version.

        If neither version names a node, the nomination has not reached the API server yet: it stands. So does that of a
        pod that is kept: the API server may just have heard that its nomination before has ended.
        """
        uid = old.uid
        is_unwritten = uid in self._kept or not (old.nominated_node_name or new.nominated_node_name)
        unwritten = self._node_names.get(uid) if is_unwritten else None
        self.add(new, unwritten)

    def keep(self, uids: Iterable[str]) -> None:
        """Let the nominations of these pods, now and later ones, count against all but those that were kept before."""
        uids = tuple(uids)
        self._kept_so_far += 1
        self._kept.update(dict.fromkeys(uids, self._kept_so_far))
        self._kept_on.update({uid: self._node_names[uid] for uid in uids if uid in self._node_names})
        self._mark(uids)

    def gain(self, uids: Iterable[str]) -> None:
        """Let something be free that is kept for these pods."""
        self._gaining.update(uids)

    def renew(self, uids: Iterable[str]) -> None:
        """Let their nominations be later than all that are kept."""
        self._kept_before.update({uid: self._kept_so_far for uid in uids if uid in self._node_names})

    def release(self, uids: Iterable[str]) -> None:
        """Let their nominations count against others by priority, as usual."""
        uids = tuple(uids)
        for uid in uids:
            self._kept.pop(uid, None)
            self._kept_on.pop(uid, None)
        self._gaining.difference_update(uids)
        self._mark(uids)

    def move(self, uid: str, node_name: str) -> None:
        """Keep a pod's space on another node in a what-if, or on none, until `move_back`."""
        self._moved[uid] = node_name

    def move_back(self) -> None:
        self._moved.clear()

    def delete(self, uid: str) -> bool:
        node_name = self._node_names.pop(uid, None)
        if node_name is None:
            return False
        self._kept_before.pop(uid, None)
        if NominationEnded in self._stream.listeners:
            self._stream.publish(NominationEnded(uid))
        pods = self._pods[node_name]
        del pods[uid]
        if not pods:
            del self._pods[node_name]
        self._changes.mark(node_name)
        return True

    def _mark(self, uids: Collection[str]) -> None:
        for uid in uids:
            if uid in self._node_names:
                self._changes.mark(self._node_names[uid])

    def check_invariants(self) -> None:
        """Both directions agree, and no node is listed without pods."""
        assert self._node_names == {uid: name for name, pods in self._pods.items() for uid in pods}
        assert all(self._pods.values())
        assert self._kept_on.keys() <= self._kept.keys()
        assert self._gaining <= self._kept.keys()
        assert not self._moved
        assert self._kept_before.keys() <= self._node_names.keys()
        assert all(pod.uid == uid for pods in self._pods.values() for uid, pod in pods.items())
