"""What docs/quota.md and Kueue's published rules say of a state: what is used, what is left, who is above what."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tests.campaigns.quota.world import ELASTIC, Amounts, Quota, World, spelled

PLENTY = 1_000_000
"""More than anything here asks for: without limit."""


@dataclass
class Pod:
    """A pod as the model knows it."""

    name: str
    quota: str
    asks: Amounts
    came: float
    priority: int = 0
    never: bool = False
    """Whether its preemptionPolicy is Never."""

    group: str = ""
    minimum: int = 0
    is_foreign: bool = False
    is_protected: bool = False
    """Whether a PodDisruptionBudget covers it that allows no disruption."""

    pinned_to: str = ""
    """The only node for it, as for a pod of a DaemonSet; empty: any."""

    node: str = ""
    started: float = 0.0
    """When it got its node."""

    expense: frozenset[str] = frozenset()
    """The quotas that gave up pods for it, or for those in whose place it runs."""

    ending: bool = False
    nominated: str = ""

    @property
    def rank(self) -> tuple[int, float]:
        """The more important go first, then the older."""
        return -self.priority, self.came

    def __str__(self) -> str:
        parts = [spelled(self.asks)]
        parts += [f"priority {self.priority}"] if self.priority else []
        parts += ["preempts never"] if self.never else []
        parts += ["under a budget"] if self.is_protected else []
        parts += [f"group {self.group} that needs {self.minimum}"] if self.group else []
        parts += [f"only for {self.pinned_to}"] if self.pinned_to else []
        return f"{self.name} ({', '.join(parts)})"


@dataclass
class State:
    """The cluster at a moment."""

    world: World
    quotas: dict[str, Quota]
    nodes: dict[str, int]
    cordoned: set[str] = field(default_factory=set)
    pods: dict[str, Pod] = field(default_factory=dict)

    @classmethod
    def of(cls, world: World) -> "State":
        return cls(world, {quota.name: quota for quota in world.quotas}, {})

    def copy(self) -> "State":
        pods = {name: replace(pod) for name, pod in self.pods.items()}
        return State(self.world, dict(self.quotas), dict(self.nodes), set(self.cordoned), pods)

    @property
    def running(self) -> list[Pod]:
        """Those with a node, also while they end: they count."""
        return [pod for pod in self.pods.values() if pod.node]

    @property
    def pending(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if not pod.node]

    def limited(self, name: str) -> set[str]:
        """The resources that some quota of the same tree names: of others there is no limit."""
        root = self.path(name)[-1]
        tree = [quota for quota in self.quotas.values() if root in self.path(quota.name)]
        return {r for quota in tree for each in (quota.minimum, quota.maximum) for r in each}

    def children(self, name: str) -> list[str]:
        return [each for each in self.quotas if each != name and self._above(each) == name]

    def height(self, name: str) -> int:
        """How many levels there are below it."""
        return max((1 + self.height(each) for each in self.children(name)), default=0)

    def own_minimum(self, name: str, resource: str) -> int:
        if name == "":
            return 0
        quota = self.quotas[name]
        if self._above(name) is None and resource in quota.maximum and resource not in quota.minimum:
            return quota.maximum[resource]  # a root that has only a maximum has that much
        return quota.minimum.get(resource, 0)

    def guaranteed(self, name: str, resource: str) -> int:
        """To it and those below it."""
        below = (self.guaranteed(each, resource) - self.kept(each, resource) for each in self.children(name))
        return self.own_minimum(name, resource) + sum(below)

    def kept(self, name: str, resource: str) -> int:
        """What it does not lend."""
        limit = None if name == "" else self.quotas[name].lending.get(resource)
        return 0 if limit is None else max(0, self.guaranteed(name, resource) - limit)

    def reserved(self, name: str, resource: str) -> int:
        """What all below it keep for themselves: of a maximum nobody else gets it, used or not."""
        return sum(self.kept(each, resource) + self.reserved(each, resource) for each in self.children(name))

    def total(self, name: str, resource: str, pods: Iterable[Pod]) -> int:
        """What pods of the quota and those below it use."""
        return sum(
            pod.asks.get(resource, 0) for pod in pods if pod.quota in self.quotas and name in self.path(pod.quota)
        )

    def usage(self, name: str, resource: str, pods: list[Pod]) -> int:
        """What it uses of what it shares with others: those below it use what they keep first."""
        own = sum(pod.asks.get(resource, 0) for pod in pods if pod.quota == name and pod.quota in self.quotas)
        below = (max(0, self.usage(each, resource, pods) - self.kept(each, resource)) for each in self.children(name))
        return own + sum(below)

    def apart(self, name: str, other: str) -> list[str]:
        """The quota, and those that it is below and another is not; none if there is no such quota any more."""
        if not {name, other} <= self.quotas.keys():
            return []
        return [each for each in self.path(name) if each not in self.path(other)]

    def gave_up_for(self, name: str, pod: Pod) -> bool:
        """Whether a pod runs in the place of others of the quota: quota.md, these are not taken back by comparison."""
        return not pod.expense.isdisjoint(self.apart(name, pod.quota))

    def left(self, name: str, resource: str, pods: list[Pod]) -> int:
        """How much more of a resource a pod of the quota may have; less than 0 if too much is used already."""
        guaranteed, usage = self.guaranteed(name, resource), self.usage(name, resource, pods)
        above = self._above(name)
        if above is None:
            left = guaranteed - usage
        else:
            kept = self.kept(name, resource)
            limit = PLENTY if name == "" else self.quotas[name].borrowing.get(resource, PLENTY)
            borrowable = guaranteed - kept - max(0, usage - kept) + limit
            left = max(0, kept - usage) + min(self.left(above, resource, pods), borrowable)
        if name != "" and resource in self.quotas[name].maximum:
            left = min(left, self.quotas[name].maximum[resource] - self.reserved(name, resource) - usage)
        return left

    def lacks(self, name: str, asks: Amounts, pods: list[Pod]) -> dict[str, int]:
        """What a request is short of, by resource; nothing for a pod without quota."""
        if name not in self.quotas:
            return {}
        known = self.limited(name)
        short = {r: amount - self.left(name, r, pods) for r, amount in asks.items() if amount and r in known}
        return {resource: amount for resource, amount in short.items() if amount > 0}

    def within(self, name: str, pod: Pod, pods: list[Pod]) -> bool:
        """Whether it uses no more than it is guaranteed of what a pod asks for, that of it or below it included."""
        if name not in self.quotas:
            return False
        asked = [r for r, amount in pod.asks.items() if amount and r in self.limited(name)]
        return all(self.usage(name, r, [*pods, pod]) <= self.guaranteed(name, r) for r in asked)

    def free(self, node: str) -> int:
        """The cores that are free on a node; none if it is cordoned."""
        if node in self.cordoned or node not in self.nodes:
            return 0
        return self.nodes[node] - sum(pod.asks.get("cpu", 0) for pod in self.running if pod.node == node)

    def has_node(self, pod: Pod, cores: int) -> bool:
        """Whether so many cores are free on a node that a pod may have."""
        return any(self.free(node) >= cores for node in self.nodes if pod.pinned_to in ("", node))

    def _above(self, name: str) -> str | None:
        if name == "":
            return None
        parent = self.quotas[name].parent
        return parent if parent or self.world.source == ELASTIC else None

    def path(self, name: str) -> list[str]:
        """The quota, and what it is below, up to the root. That of elastic quotas is called ""."""
        path = [name]
        while (above := self._above(path[-1])) is not None:
            path.append(above)
        return path


def summed(pods: Iterable[Pod]) -> dict[str, int]:
    """What these ask for together."""
    sums: dict[str, int] = {}
    for pod in pods:
        for resource, amount in pod.asks.items():
            sums[resource] = sums.get(resource, 0) + amount
    return sums
