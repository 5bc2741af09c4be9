"""What must be so when nothing has happened for a while, and when everything is gone."""

from dataclasses import replace
from itertools import starmap
from typing import Final

from tests.campaigns.quota import lawful
from tests.campaigns.quota.cluster import SHOWN, Cluster, node_of, pod_of
from tests.campaigns.quota.judge import Judge
from tests.campaigns.quota.model import Pod, State
from tests.campaigns.quota.world import CPU, ELASTIC, World

PROBE: Final = "probe"
_MOST_FRESH: Final = 2
"""Engines made while a scenario goes on: each takes milliseconds."""

_ENDLESS: Final = 1e9


class Settled:
    """Compares what waits with what a model and an engine without a past say of it."""

    def __init__(self, world: World, state: State, judge: Judge, cluster: Cluster) -> None:
        self._world = world
        self._state = state
        self._judge = judge
        self._cluster = cluster
        self._fresh = 0
        self._asked_at = -1.0
        self._answer: tuple[list[str], list[tuple[str, str]]] = [], []

    def check(self) -> None:
        """Where nothing has happened for 40 s, and no pod is ending."""
        if not any(pod for pod in self._state.pending):
            return
        self._check_fits()
        self._check_guarantees()
        self._check_messages()
        if self._fresh < _MOST_FRESH:
            bound, _ = self._ask_fresh()
            if bound:
                self._judge.find("left", f"{self._state.pods[bound[0]]} waits, and a fresh engine places it")

    def check_late(self) -> None:
        """Where nothing has happened for longer than any pod waits to be tried again."""
        if not self._state.pending or any(pod.ending for pod in self._state.running):
            return
        self._check_guarantees()
        bound, evicted = self._ask_fresh()
        if bound:
            self._judge.find(
                "left", f"{self._state.pods[bound[0]]} waits, and a fresh engine places it, after six minutes"
            )
        elif evicted and not any(starmap(self._has_paid, evicted)):
            victim, claimant = evicted[0]
            self._judge.find(
                "restless", f"{self._state.pods[claimant]} waits, and a fresh engine evicts {victim} for it"
            )

    def check_report(self) -> None:
        """What people are shown is what there is."""
        state = self._state
        for name, amounts in self._cluster.reported().items():
            for resource in state.limited(name) & amounts.keys() if name in state.quotas else ():
                shown = {word: getattr(amounts[resource], word) for word in SHOWN}
                if shown != (counted := self._counted(name, resource)):
                    self._judge.find("shown", f"{resource} of {name}: {counted}, and `loadmaster quota` says {shown}")

    def _has_paid(self, victim: str, claimant: str) -> bool:
        pods = self._state.pods
        return self._state.gave_up_for(pods[claimant].quota, pods[victim])

    def _counted(self, name: str, resource: str) -> dict[str, int]:
        state = self._state
        lent, running = state.guaranteed(name, resource), state.running
        guaranteed = lent + state.reserved(name, resource)
        borrowed = max(0, state.usage(name, resource, running) - lent) if state.path(name)[1:] else 0
        return {
            "guaranteed": min(guaranteed, state.quotas[name].maximum.get(resource, guaranteed)),
            "used": state.total(name, resource, running),
            "borrowed": borrowed,
            "waiting": state.total(name, resource, state.pending),
        }

    def check_nothing_is_left(self) -> None:
        """When all pods are gone: a pod that asks for all that a quota may have starts at once."""
        self._judge.at_rest(self._judge.now, self._cluster.nominations(), self._cluster.used())
        self._cluster.set_node(node_of(PROBE, 100_000))
        for leaf in [quota.name for quota in self._world.leaves if quota.name in self._state.quotas]:
            asks = {r: min(self._state.left(leaf, r, []), 100) for r in sorted(self._state.limited(leaf))}
            if not any(amount > 0 for amount in asks.values()):
                continue
            pod = Pod(f"{PROBE}-{leaf}", leaf, asks, self._judge.now)
            self._state.pods[pod.name] = pod
            self._cluster.create(pod_of(pod))
            self._cluster.advance(1)
            if not pod.node:
                self._cluster.advance(12)
            if not pod.node:
                message = self._cluster.outcome(pod_of(pod)).message
                self._judge.find("leak", f"all pods are gone, and {pod} does not start: {message}")
            self._cluster.end(pod.name, at_once=True)

    def _check_fits(self) -> None:
        """Pods and groups that fit by the model: nothing is kept for others, as nothing is nominated."""
        state = self._state
        if any(pod.nominated for pod in state.pending):
            return
        for pod in state.pending:
            known = state.quotas.get(pod.quota)
            if lawful.has_too_few(state, pod) or (known is None and self._world.source != ELASTIC):
                continue
            asks = lawful.needed(state, pod)
            if state.has_node(pod, asks[CPU]) and not state.lacks(pod.quota, asks, state.running):
                message = self._cluster.outcome(pod_of(pod)).message
                self._judge.find("fits", f"{pod} waits, and there is space: {message}")

    def _check_messages(self) -> None:
        for pod in self._state.pending:
            if not self._cluster.outcome(pod_of(pod)).message and not lawful.has_too_few(self._state, pod):
                self._judge.find("silent", f"{pod} waits, and does not say for what")

    def _check_guarantees(self) -> None:
        """In trees of two levels, with nodes enough: whoever is within its own guarantee has it taken back by now."""
        state = self._state
        is_flat = self._world.source == ELASTIC or all(
            not quota.parent or not state.quotas[quota.parent].parent for quota in state.quotas.values()
        )
        for pod in state.pending if is_flat else ():
            if (
                not state.has_node(pod, 400)
                or pod.never
                or pod.quota not in state.quotas
                or pod.nominated
                or lawful.has_too_few(state, pod)
            ):
                continue
            if lawful.is_spare(state, pod):  # quota.md: members beyond the minimum take no quota back
                continue
            quota = state.quotas[pod.quota]
            takes = self._world.source == ELASTIC or quota.reclaim == "Any"
            is_capped = any(amount < state.guaranteed(quota.name, r) for r, amount in quota.maximum.items())
            root = state.quotas.get(quota.parent)
            is_capped |= bool(root and root.maximum and root.minimum)
            asked = lawful.entry_of(state, pod)
            if takes and not is_capped and state.within(quota.name, asked, state.running):
                message = self._cluster.outcome(pod_of(pod)).message
                self._judge.find("guarantee", f"{pod} waits within what {quota.name} is guaranteed: {message}")

    def _ask_fresh(self) -> tuple[list[str], list[tuple[str, str]]]:
        """Which pods a new engine starts, and whom it evicts for whom, in the same cluster."""
        if self._asked_at != self._judge.last_change:
            self._fresh += 1
            self._asked_at = self._judge.last_change
            self._answer = self._of_fresh()
        return self._answer

    def _of_fresh(self) -> tuple[list[str], list[tuple[str, str]]]:
        watcher = _Fresh()
        world = replace(self._world, grace=_ENDLESS, quotas=tuple(self._state.quotas.values()))
        with Cluster(world, watcher) as fresh:
            for name, cores in self._state.nodes.items():
                fresh.set_node(node_of(name, cores, name in self._state.cordoned))
            fresh.begin()
            fresh.create(*map(pod_of, self._state.running))
            fresh.advance(1)
            fresh.create(*[pod_of(pod) for pod in sorted(self._state.pending, key=lambda pod: pod.came)])
            fresh.advance(12)
        return watcher.started, watcher.victims


class _Fresh:
    """Notes what an engine does first."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.victims: list[tuple[str, str]] = []

    def bound(self, now: float, name: str, node: str) -> None:
        self.started.append(name)

    def refused(self, now: float, name: str) -> None:
        """No binding is refused here."""

    def evicted(self, now: float, victim: str, claimant: str) -> None:
        self.victims.append((victim, claimant))

    def ended(self, now: float, name: str) -> None:
        """Nothing ends here."""
