"""Plays a scenario: what its events do to the cluster, and what the model and the judge learn of it."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from tests.campaigns.quota.cluster import Cluster, node_of, pod_of
from tests.campaigns.quota.judge import Finding, Judge
from tests.campaigns.quota.model import Pod, State
from tests.campaigns.quota.settled import Settled
from tests.campaigns.quota.world import CPU, ELASTIC, GPU, Event, Scenario, World

SETTLED_AFTER: Final = 40.0
"""Seconds after which all is done that does not wait for a flush: a backoff has 10."""

FLUSHED_AFTER: Final = 350.0
"""Seconds after which each pod that waits has been tried again: five minutes, looked at every 30 s."""

MOST_REPLACEMENTS: Final = 40


def play(scenario: Scenario) -> "Played":
    """Play a scenario to its end."""
    played = Played(scenario)
    try:
        played.play()
    except Exception as error:  # noqa: BLE001 - what the engine raises is a finding
        played.judge.find("crash", f"{type(error).__name__}: {error}")
    return played


class Played:
    """A scenario while it is played, and then what came of it."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.state = State.of(scenario.world)
        self.history = [str(scenario.world)]
        self.judge = Judge(self.state, self._say)
        self.seen = {*_settings(scenario.world)}
        """The settings, and the kinds of events that it had."""

        self._now = 0.0
        self._made = 0
        self._replaced = 0
        self._evicted: set[str] = set()
        self._cluster = Cluster(scenario.world, self)

    @property
    def findings(self) -> list[Finding]:
        return self.judge.findings

    def play(self) -> None:
        with self._cluster as cluster:
            for number, cores in enumerate(self.scenario.world.nodes):
                self._set_node(f"n{number}", cores)
            cluster.begin()
            cluster.advance(1)
            self._now += 1
            settled = Settled(self.scenario.world, self.state, self.judge, cluster)
            for event in self.scenario.events:
                self._pass(event.at - self._now, settled)
                self._carry_out(event)
                self._rest()
            self._pass(SETTLED_AFTER + 1, settled)
            if self.state.pending:
                self._advance(FLUSHED_AFTER)
                if self._now - self.judge.last_change > FLUSHED_AFTER:
                    settled.check_late()
                else:
                    self._advance(FLUSHED_AFTER)
                    self._advance(FLUSHED_AFTER)
            settled.check_report()
            self._replaced = MOST_REPLACEMENTS
            self._advance(self.scenario.world.replaced_after or 0)  # those that are on their way come
            self._say(self._now, "all pods are deleted")
            self.judge.changed(self._now, "outside")
            cluster.end_all()
            cluster.advance(self.scenario.world.grace + 15)
            self.judge.at(self._now + self.scenario.world.grace + 15)
            settled.check_nothing_is_left()

    def bound(self, now: float, name: str, node: str) -> None:
        self.seen.add("a pod starts")
        self._say(now, f"{name} starts on {node}")
        self.judge.bound(now, name, node)

    def refused(self, now: float, name: str) -> None:
        self.seen.add("a binding is refused")
        self._say(now, f"the binding of {name} is refused")
        self.judge.refused(now, name)

    def evicted(self, now: float, victim: str, claimant: str) -> None:
        self.seen.add("an eviction")
        self._say(now, f"{victim} is evicted for {claimant}")
        self._evicted.add(victim)
        self.judge.evicted(now, victim, claimant)

    def ended(self, now: float, name: str) -> None:
        self._say(now, f"{name} is gone")
        pod = self.judge.ended(now, name)
        after = self.scenario.world.replaced_after
        if pod and name in self._evicted and after is not None and self._replaced < MOST_REPLACEMENTS:
            self._replaced += 1
            asyncio.get_running_loop().call_later(after, self._replace, pod, now + after)

    def _replace(self, pod: Pod, now: float) -> None:
        self.seen.add("a replacement")
        new = self._new(
            replace(
                pod,
                name=f"{pod.name.partition('-')[0]}-{self._replaced}",
                node="",
                nominated="",
                ending=False,
                is_foreign=False,
                came=now,
            )
        )
        self._say(now, f"{new} comes in the place of {pod.name}")
        self._cluster.engine.handlers.pod_changed(pod_of(new))

    def _new(self, pod: Pod) -> Pod:
        self.state.pods[pod.name] = pod
        self.judge.came(pod)
        return pod

    def _pass(self, seconds: float, settled: Settled) -> None:
        """Let time pass, and look closely when all has settled."""
        end = self._now + seconds
        if seconds > SETTLED_AFTER:
            self._advance(SETTLED_AFTER)
            if self._now - self.judge.last_change > SETTLED_AFTER - 5 and not any(p.ending for p in self.state.running):
                settled.check()
        while end - self._now > 0:
            self._advance(min(300.0, end - self._now))

    def _advance(self, seconds: float) -> None:
        self._cluster.advance(seconds)
        self._now += seconds
        self._rest()

    def _rest(self) -> None:
        nominated = self._cluster.nominations()
        self.judge.at_rest(self._now, nominated, self._cluster.used())

    def _carry_out(self, event: Event) -> None:
        act: Callable[[Event], str] = getattr(self, f"_{event.kind.replace(' ', '_')}")
        if done := act(event):
            self.seen.add(done)

    def _say(self, now: float, text: str) -> None:
        self.history.append(f"{now:8.1f} s  {text}")

    def _set_node(self, name: str, cores: int) -> None:
        self.state.nodes[name] = cores
        self._cluster.set_node(node_of(name, cores, name in self.state.cordoned))

    def _arrive(self, event: Event) -> str:
        self._made += 1
        group = f"g{self._made}" if event.minimum else ""
        asks = {CPU: event.cpu, **({GPU: event.gpu} if event.gpu else {})}
        pods = []
        for number in range(event.count):
            suffix = f".{number}" if event.count > 1 else ""
            pods.append(
                self._new(
                    Pod(
                        f"{event.quota}{self._made}{suffix}",
                        event.quota,
                        asks,
                        self._now,
                        event.priority,
                        event.never,
                        group,
                        event.minimum,
                        is_protected=self.scenario.world.has_budgets and self._made % 3 == 0,
                    )
                )
            )
        self._come(pods)
        return "a group comes" if group else "a pod comes"

    def _daemons(self, event: Event) -> str:
        self._made += 1
        asks = {CPU: event.cpu}
        pods = [
            Pod(f"{event.quota}{self._made}.{node}", event.quota, asks, self._now, event.priority, pinned_to=node)
            for node in self.state.nodes
        ]
        self._come([self._new(pod) for pod in pods])
        return "a pod comes for each node"

    def _come(self, pods: list[Pod]) -> None:
        self._say(self._now, " and ".join(map(str, pods)) + " come" + ("s" if len(pods) == 1 else ""))
        self.judge.changed(self._now, "arrival")
        self._cluster.create(*map(pod_of, pods))

    def _foreign(self, event: Event) -> str:
        nodes = [node for node in self.state.nodes if self.state.free(node) >= event.cpu]
        if not nodes:
            return ""
        self._made += 1
        node = nodes[event.pick % len(nodes)]
        pod = Pod(
            f"{event.quota}{self._made}",
            event.quota,
            {CPU: event.cpu},
            self._now,
            event.priority,
            is_foreign=True,
            node=node,
            started=self._now,
        )
        self._new(pod)
        self._say(self._now, f"another scheduler starts {pod} on {node}")
        self.judge.changed(self._now, "outside")
        self._cluster.create(pod_of(pod))
        return "another scheduler takes space"

    def _end(self, event: Event) -> str:
        if pod := self._picked(event, [pod for pod in self.state.running if not pod.ending]):
            self._say(self._now, f"{pod.name} has run to its end")
            self.judge.changed(self._now, "end")
            self._cluster.end(pod.name, at_once=True)
        return "a pod ends" if pod else ""

    def _stop(self, event: Event) -> str:
        if pod := self._picked(event, [pod for pod in self.state.running if not pod.ending]):
            self._say(self._now, f"{pod.name}, which runs, is deleted")
            self.judge.changed(self._now, "end")
            pod.ending = True
            self._cluster.end(pod.name)
        return "a pod that runs is deleted" if pod else ""

    def _delete(self, event: Event) -> str:
        pod = self._picked(event, self.state.pending)
        if pod is None:
            return ""
        names = [each.name for each in self.state.pending if each is pod or (pod.group and each.group == pod.group)]
        self._say(self._now, f"{' and '.join(names)}, waiting, {'is' if len(names) == 1 else 'are'} deleted")
        self.judge.changed(self._now, "end")
        for name in names:
            self._cluster.end(name)
        return "a pod that waits is deleted"

    def _touch(self, event: Event) -> str:
        pod = self._picked(event, self.state.pending)
        if pod is None:
            return ""
        self._say(self._now, f"{pod.name} gets a label")
        self.judge.changed(self._now, "end")
        self._cluster.label(pod.name, f"at-{self._now:g}")
        return "a pod that waits gets a label"

    def _picked(self, event: Event, pods: list[Pod]) -> Pod | None:
        of_quota = [pod for pod in pods if event.quota in ("", pod.quota)]
        return of_quota[event.pick % len(of_quota)] if of_quota else None

    def _quota(self, event: Event) -> str:
        assert event.spec is not None
        self._say(self._now, f"the quota is now {event.spec}")
        self.state.quotas[event.spec.name] = event.spec
        self.judge.changed(self._now, "outside")
        self._cluster.set_quota(event.spec)
        return "a quota changes"

    def _quota_gone(self, event: Event) -> str:
        if self.scenario.world.source != ELASTIC or event.quota not in self.state.quotas:
            return ""
        self._say(self._now, f"the quota of {event.quota} is deleted")
        del self.state.quotas[event.quota]
        self.judge.changed(self._now, "outside")
        self._cluster.remove_quota(event.quota)
        return "a quota is deleted"

    def _add_node(self, event: Event) -> str:
        self._made += 1
        name = f"m{self._made}"
        self._say(self._now, f"node {name} of {event.cpu} cores comes")
        self.judge.changed(self._now, "node")
        self._set_node(name, event.cpu)
        return "a node comes"

    def _cordon(self, event: Event) -> str:
        if not (name := self._node(event)):
            return ""
        is_cordoned = name in self.state.cordoned
        self._say(self._now, f"node {name} is {'un' if is_cordoned else ''}cordoned")
        self.state.cordoned ^= {name}
        self.judge.changed(self._now, "node" if is_cordoned else "outside")
        self._set_node(name, self.state.nodes[name])
        return "a node is uncordoned" if is_cordoned else "a node is cordoned"

    def _lose_node(self, event: Event) -> str:
        if not (name := self._node(event)):
            return ""
        self._say(self._now, f"node {name} is gone, and its pods with it")
        self.judge.changed(self._now, "outside")
        self._cluster.remove_node(node_of(name, 0))
        del self.state.nodes[name]
        for pod in [pod for pod in self.state.running if pod.node == name]:
            pod.ending = True
            self._cluster.end(pod.name)
        return "a node is gone"

    def _restart(self, event: Event) -> str:
        self._say(self._now, "the scheduler is started anew")
        self.judge.restarted(self._now)
        nodes = [node_of(name, cores, name in self.state.cordoned) for name, cores in self.state.nodes.items()]
        self._cluster.start_anew(nodes)
        return "a restart"

    def _refuse(self, event: Event) -> str:
        self._cluster.refuse_bindings(event.count)
        return ""

    def _node(self, event: Event) -> str:
        names = sorted(self.state.nodes)
        return names[event.pick % len(names)] if names else ""


def _settings(world: World) -> Iterator[str]:
    yield f"quotas: {world.source}"
    yield f"order: {world.order}"
    yield f"DefaultPreemption {world.preemption}"
    yield "nodes enough" if world.has_ample_nodes else "nodes short"
    yield f"pods end in {world.grace:g} s"
    yield f"PodDisruptionBudgets: {'some' if world.has_budgets else 'none'}"
    yield "evicted pods are replaced" if world.replaced_after is not None else "evicted pods are not replaced"
