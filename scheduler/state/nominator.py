"""Which node a pod was promised: preemption makes room there, or a binding is on its way.

Rule: pkg/scheduler/backend/queue/nominator.go at v1.36.3. A promise is known here before the pod's status says so.
"""

from collections.abc import Collection, Iterator

from scheduler.api.pod import Pod


class Nominator:
    """Nominated pods, by node and by UID."""

    def __init__(self) -> None:
        self._node_names: dict[str, str] = {}
        self._pods: dict[str, dict[str, Pod]] = {}

    def nominated_pods(self, node_name: str) -> Collection[Pod]:
        """Return the pods that were promised a node, in the order of the promises."""
        pods = self._pods.get(node_name)
        return tuple(pods.values()) if pods else ()

    def by_node(self) -> Iterator[tuple[str, Collection[Pod]]]:
        """Yield each node that is promised to pods, with these pods."""
        for node_name, pods in self._pods.items():
            yield node_name, tuple(pods.values())

    def node_name_of(self, uid: str) -> str:
        """Return the node that a pod was promised, or an empty string."""
        return self._node_names.get(uid, "")

    def add(self, pod: Pod, node_name: str | None = None) -> None:
        """Promise a pod `node_name`, or the node that its status names; an earlier promise ends.

        Without either, as for a pod that is bound, there is no promise. The caller knows that the pod still exists.
        """
        self.delete(pod.uid)
        name = pod.nominated_node_name if node_name is None else node_name
        if name and not pod.node_name:
            self._node_names[pod.uid] = name
            self._pods.setdefault(name, {})[pod.uid] = pod

    def update(self, old: Pod, new: Pod) -> None:
        """Put a new version of a pod in the place of an old one.

        If neither version names a node, the promise is one that the API server has not heard of yet: it stands.
        """
        unheard = self._node_names.get(old.uid) if not (old.nominated_node_name or new.nominated_node_name) else None
        self.delete(old.uid)
        self.add(new, unheard)

    def delete(self, uid: str) -> None:
        """Forget what a pod was promised, if anything."""
        node_name = self._node_names.pop(uid, None)
        if node_name is None:
            return
        pods = self._pods[node_name]
        del pods[uid]
        if not pods:
            del self._pods[node_name]

    def check_invariants(self) -> None:
        """Both directions agree, and no node is listed without pods."""
        assert self._node_names == {uid: name for name, pods in self._pods.items() for uid in pods}
        assert all(self._pods.values())
        assert all(pod.uid == uid for pods in self._pods.values() for uid, pod in pods.items())
