"""kueue.x-k8s.io/v1beta2, reduced to what quotas of pods need: queues, cohorts and flavors.

Kueue records its own decisions in Workloads, which are not read. Quantities stay strings.
"""

from collections.abc import Mapping
from typing import Final

from scheduler.api.objects import ApiObject, LabelSelector, Taint, Wire
from scheduler.api.objects import Condition as Condition

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
"""The label of pods that names a LocalQueue of their namespace."""

MANAGED_LABEL: Final = "kueue.x-k8s.io/managed"
"""`"true"` on pods that Kueue manages, for as long as they exist."""

ADMISSION_GATE: Final = "kueue.x-k8s.io/admission"
"""The scheduling gate that Kueue takes away when it admits a pod."""

DEFAULT_QUEUE: Final = "default"
"""The LocalQueue of pods that name none."""

NEVER: Final = "Never"
ANY: Final = "Any"
LOWER_PRIORITY: Final = "LowerPriority"
LOWER_OR_NEWER_EQUAL_PRIORITY: Final = "LowerOrNewerEqualPriority"
MAY_STOP_SEARCH: Final = "MayStopSearch"
TRY_NEXT_FLAVOR: Final = "TryNextFlavor"

Quantity = str | int | float
"""As written; JSON numbers occur in files written by hand."""


class ResourceQuota(Wire, frozen=True):
    name: str = ""
    nominal_quota: Quantity = 0
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(Wire, frozen=True):
    name: str = ""
    resources: tuple[ResourceQuota, ...] | None = None


class ResourceGroup(Wire, frozen=True):
    """Resources that come from one flavor, and the flavors in the order in which they are tried."""

    covered_resources: tuple[str, ...] | None = None
    flavors: tuple[FlavorQuotas, ...] | None = None


class FairSharing(Wire, frozen=True):
    weight: Quantity | None = None


class FlavorFungibility(Wire, frozen=True):
    when_can_borrow: str = MAY_STOP_SEARCH
    when_can_preempt: str = TRY_NEXT_FLAVOR
    preference: str | None = None


class BorrowWithinCohort(Wire, frozen=True):
    policy: str = NEVER
    max_priority_threshold: int | None = None


class Preemption(Wire, frozen=True):
    reclaim_within_cohort: str = NEVER
    borrow_within_cohort: BorrowWithinCohort | None = None
    within_cluster_queue: str = NEVER


class AdmissionCheckRule(Wire, frozen=True):
    name: str = ""


class AdmissionChecksStrategy(Wire, frozen=True):
    admission_checks: tuple[AdmissionCheckRule, ...] | None = None


class ClusterQueueSpec(Wire, frozen=True):
    resource_groups: tuple[ResourceGroup, ...] | None = None
    cohort_name: str = ""
    namespace_selector: LabelSelector | None = None
    """None selects no namespace."""

    flavor_fungibility: FlavorFungibility | None = None
    preemption: Preemption | None = None
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None


class ResourceUsage(Wire, frozen=True):
    name: str = ""
    total: Quantity = ""
    borrowed: Quantity = ""


class FlavorUsage(Wire, frozen=True):
    name: str = ""
    resources: tuple[ResourceUsage, ...] | None = None


class ClusterQueueStatus(Wire, frozen=True):
    """As it is also written."""

    conditions: tuple[Condition, ...] | None = None
    flavors_reservation: tuple[FlavorUsage, ...] | None = None
    flavors_usage: tuple[FlavorUsage, ...] | None = None
    pending_workloads: int = 0
    reserving_workloads: int = 0
    admitted_workloads: int = 0


class ClusterQueue(ApiObject, frozen=True):
    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: ClusterQueueStatus = ClusterQueueStatus()


class LocalQueueSpec(Wire, frozen=True):
    cluster_queue: str = ""
    stop_policy: str | None = None


class LocalQueue(ApiObject, frozen=True):
    """A queue of a namespace, which its pods name."""

    spec: LocalQueueSpec = LocalQueueSpec()


class CohortSpec(Wire, frozen=True):
    parent_name: str = ""
    resource_groups: tuple[ResourceGroup, ...] | None = None
    fair_sharing: FairSharing | None = None


class Cohort(ApiObject, frozen=True):
    spec: CohortSpec = CohortSpec()


class ResourceFlavorSpec(Wire, frozen=True):
    node_labels: Mapping[str, str] | None = None
    node_taints: tuple[Taint, ...] | None = None
    topology_name: str | None = None
    resource_weights: Mapping[str, Quantity] | None = None


class ResourceFlavor(ApiObject, frozen=True):
    """A kind of nodes, by their labels and taints."""

    spec: ResourceFlavorSpec = ResourceFlavorSpec()
