"""A scenario as data: quotas, nodes and settings, and what happens when.

Events name no pods: those that concern a pod of the moment carry a number, and the player picks one by it. So a
scenario from which events were taken is still one, and the shortest that fails can be looked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from plugins import SHIPPED
from scheduler.config.load import config_from_dict
from scheduler.config.types import Config

CPU: Final = "cpu"
GPU: Final = "example.com/gpu"

Amounts = Mapping[str, int]
"""Resource → whole units."""

DECLARED: Final = "declared"
ELASTIC: Final = "elastic"
KUEUE: Final = "kueue"

_PLUGINS: Final = (
    "PrioritySort",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "DefaultBinder",
    "CapacityScheduling",
    "Coscheduling",
)


@dataclass(frozen=True)
class Quota:
    """A declared share, an ElasticQuota, or a ClusterQueue or Cohort. The name of a leaf is that of its namespace."""

    name: str
    parent: str = ""
    minimum: Amounts = field(default_factory=dict)
    maximum: Amounts = field(default_factory=dict)
    borrowing: Amounts = field(default_factory=dict)
    lending: Amounts = field(default_factory=dict)
    reclaim: str = "Never"
    within: str = "Never"
    weight: int = 1
    priority: int = 0

    def __str__(self) -> str:
        parts = [f"below {self.parent}"] if self.parent else []
        amounts = {word: getattr(self, word) for word in ("minimum", "maximum", "borrowing", "lending")}
        parts += [f"{word} {spelled(each)}" for word, each in amounts.items() if each]
        parts += [f"{word} {getattr(self, word)}" for word in ("reclaim", "within") if getattr(self, word) != "Never"]
        parts += [f"weight {self.weight}"] if self.weight != 1 else []
        parts += [f"priority {self.priority}"] if self.priority else []
        return f"{self.name}: {', '.join(parts) or 'nothing'}"


@dataclass(frozen=True)
class World:
    """What there is when a scenario begins, and what does not change in it."""

    source: str
    quotas: tuple[Quota, ...]
    nodes: tuple[int, ...]
    """The cores of each; `n0`, `n1` …"""

    order: str = "Priority"
    default_preemption: bool = True
    grace: float = 0.0
    """How many seconds pods take to end."""

    replaced_after: float | None = None
    """In how many seconds a controller replaces an evicted pod; None: never."""

    decisions_at_once: int = 3
    """How many are made before what they have set off takes effect."""

    has_budgets: bool = False
    """Whether PodDisruptionBudgets protect some of the pods."""

    quota_first: bool = False
    """Whether CapacityScheduling is asked before DefaultPreemption."""

    @property
    def evicts(self) -> bool:
        """Whether any pod may be evicted, so that budgets are read."""
        declares = any(quota.reclaim != "Never" or quota.within != "Never" for quota in self.quotas)
        return self.default_preemption or self.source != DECLARED or declares

    @property
    def preemption(self) -> str:
        if not self.default_preemption:
            return "off"
        return "after CapacityScheduling" if self.quota_first else "on"

    @property
    def has_ample_nodes(self) -> bool:
        return min(self.nodes) >= 500

    @property
    def leaves(self) -> list[Quota]:
        parents = {quota.parent for quota in self.quotas}
        return [quota for quota in self.quotas if quota.name not in parents]

    def __str__(self) -> str:
        settings = (
            f"{self.source} quotas, order {self.order}",
            f"DefaultPreemption {self.preemption}",
            f"nodes of {', '.join(map(str, self.nodes))} cores",
            f"pods end in {self.grace:g} s",
            "none is replaced"
            if self.replaced_after is None
            else f"evicted ones are replaced after {self.replaced_after:g} s",
            f"{self.decisions_at_once} decisions at once",
            *(["every third pod is under a PodDisruptionBudget"] if self.has_budgets else ()),
        )
        return "\n      ".join((", ".join(settings), *map(str, self.quotas)))


@dataclass(frozen=True)
class Event:
    """Something that happens `at` so many seconds after the beginning."""

    at: float
    kind: str
    quota: str = ""
    cpu: int = 1
    gpu: int = 0
    count: int = 1
    minimum: int = 0
    """Of a group's pods, that it needs."""

    priority: int = 0
    never: bool = False
    """Whether the preemptionPolicy is Never."""

    pick: int = 0
    """Which of those that there are."""

    spec: Quota | None = None
    """What a quota is from now on."""


@dataclass(frozen=True)
class Scenario:
    world: World
    events: tuple[Event, ...]


def spelled(amounts: Amounts) -> str:
    return " ".join(f"{amount} {resource.rpartition('/')[2]}" for resource, amount in amounts.items()) or "nothing"


def config_of(world: World) -> Config:
    """The configuration of a scheduler for this world, with no more plugins than matter."""
    arguments: dict[str, Any] = {"order": world.order, "elasticQuotas": world.source == ELASTIC}
    if world.source == KUEUE:
        arguments["kueueQueues"] = True
    if world.source == DECLARED:
        arguments["shares"] = [_declared(quota, quota in world.leaves) for quota in world.quotas]
    names = list(_PLUGINS)
    if world.default_preemption:
        names.insert(len(names) if world.quota_first else 0, "DefaultPreemption")
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": name} for name in names]}},
        "pluginConfig": [{"name": "CapacityScheduling", "args": arguments}],
    }
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
        "loadmaster": {"groupReservationSeconds": 0},
    }
    return config_from_dict(document, SHIPPED)


def _declared(quota: Quota, is_leaf: bool) -> dict[str, Any]:
    fields = {
        "parent": quota.parent,
        "minimum": dict(quota.minimum),
        "maximum": dict(quota.maximum),
        "borrowingLimit": dict(quota.borrowing),
        "lendingLimit": dict(quota.lending),
        "namespaces": [quota.name] if is_leaf else [],
    }
    policies = {"reclaim": quota.reclaim, "withinShare": quota.within} if is_leaf else {}
    named = {key: value for key, value in fields.items() if value}
    return {"name": quota.name, "weight": quota.weight, "priority": quota.priority, **policies, **named}
