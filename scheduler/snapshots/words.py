"""The words of an anonymised snapshot that stay as they are: Kubernetes' own, each by its whole name.

No prefix is enough to stay: people choose names under every prefix, `node.kubernetes.io/` included.
"""

import re
from typing import Final

from scheduler.api.devices import CLAIM_FINALIZER
from scheduler.api.storage.csi_translation import IN_TREE_PLUGINS

PLAIN: Final = frozenset(
    {
        # phases, statuses, operators, effects
        *("Pending", "Running", "Succeeded", "Failed", "Unknown", "Bound", "Available", "Released", "Lost"),
        *("Active", "Terminating", "True", "False", "true", "false", "yes", "no"),
        *("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal"),
        *("NoSchedule", "PreferNoSchedule", "NoExecute", "None"),
        # choices in pods and workloads
        *("DoNotSchedule", "ScheduleAnyway", "Honor", "Ignore", "Never", "PreemptLowerPriority"),
        *("Always", "OnFailure", "Restart", "RestartAllContainers", "TCP", "UDP", "SCTP"),
        *("NonIndexed", "Indexed", "IfHealthyBudget", "AlwaysAllow", "kubernetes.io/job-controller"),
        *("Pod", "PodGroup", "Container", "PersistentVolumeClaim", "v1"),
        *("NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"),
        "VolumeAttributesClass",
        # volumes
        *("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod", "Retain", "Delete", "Recycle"),
        *("Filesystem", "Block", "Immediate", "WaitForFirstConsumer", "Shared", "Dedicated", "Managed"),
        # devices
        *("ExactCount", "All"),
        # types and reasons of conditions
        *("ContainersReady", "DisruptionTarget", "Initialized", "PodReadyToStartContainers", "PodScheduled", "Ready"),
        *("DiskPressure", "MemoryPressure", "NetworkUnavailable", "PIDPressure"),
        *("PodResizeInProgress", "PodResizePending", "Deferred", "Infeasible"),
        *("PreemptionByScheduler", "SchedulerError", "SchedulingGated", "Unschedulable", "WaitingForQuota"),
        *("Complete", "FailureTarget", "SuccessCriteriaMet", "Suspended"),
        # features that nodes declare
        *("GuaranteedQoSPodCPUResize", "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"),
        # quotas of Kueue
        *("Any", "LowerPriority", "LowerOrNewerEqualPriority", "MayStopSearch", "TryNextFlavor", "Hold"),
        *("HoldAndDrain", "BorrowingOverPreemption", "PreemptionOverBorrowing"),
        # NodeResourceTopology
        *("Node", "none", "best-effort", "restricted", "single-numa-node", "container", "pod"),
        *("topologyManagerPolicy", "topologyManagerScope", "topologyManagerMaxNUMANodes"),
        *("SingleNUMANodePodLevel", "SingleNUMANodeContainerLevel", "BestEffortContainerLevel", "BestEffortPodLevel"),
        *("Restricted", "RestrictedContainerLevel", "RestrictedPodLevel"),
    }
)
"""Values of fields that hold one of a few words."""

_FORMS: Final = re.compile(
    r"(?=.{1,40}$)(?:"
    r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[KMGTPE]i?|[numk]|[eE][+-]?\d+|%)?"  # amounts
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"  # times
    r"|(?:\d+(?:\.\d+)?(?:h|m|s|ms|us|ns))+"  # durations
    r"|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32}"  # UIDs
    r")",
    re.ASCII,
)


def is_plain(text: str) -> bool:
    """Return whether a text is an amount, a time, a duration, a UID, or one of the words that fields choose from."""
    return not text or text in PLAIN or _FORMS.fullmatch(text) is not None


KEYS: Final = frozenset(
    {
        CLAIM_FINALIZER,
        "metadata.name",
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "controller-revision-hash",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/metadata.name",
        "kubernetes.io/os",
        "node-role.kubernetes.io/control-plane",
        "node-role.kubernetes.io/master",
        "node.cloudprovider.kubernetes.io/shutdown",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/exclude-from-external-load-balancers",
        "node.kubernetes.io/instance-type",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/out-of-service",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/windows-build",
        "pod-template-generation",
        "pod-template-hash",
        "scheduling.x-k8s.io/pod-group",
        "jobset.sigs.k8s.io/jobset-name",
        "jobset.sigs.k8s.io/replicatedjob-name",
        "leaderworkerset.sigs.k8s.io/group-index",
        "leaderworkerset.sigs.k8s.io/name",
        "kueue.x-k8s.io/queue-name",
        "kueue.x-k8s.io/managed",
        "kueue.x-k8s.io/admission",
        "statefulset.kubernetes.io/pod-name",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        *(plugin.zone_key for plugin in IN_TREE_PLUGINS if plugin.zone_key),
    }
)
"""Of labels, taints and finalizers."""

_SYSTEMS: Final = frozenset({"linux", "windows"})
_MACHINES: Final = frozenset({"386", "amd64", "arm", "arm64", "ppc64le", "riscv64", "s390x"})
VALUES: Final = {
    "beta.kubernetes.io/arch": _MACHINES,
    "beta.kubernetes.io/os": _SYSTEMS,
    "kubernetes.io/arch": _MACHINES,
    "kubernetes.io/os": _SYSTEMS,
}
"""Key of a label → its values that stay."""

RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pods", "storage"})
_HUGE_PAGES: Final = re.compile(r"hugepages-\d{1,10}(?:[KMGTPE]i?)?", re.ASCII)


def is_resource(text: str) -> bool:
    return text in RESOURCES or _HUGE_PAGES.fullmatch(text) is not None


NAMESPACES: Final = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
PRIORITY_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})
SCHEDULERS: Final = frozenset({"default-scheduler", "loadmaster"})
ADDRESSES: Final = frozenset({"", "0.0.0.0", "127.0.0.1", "::", "::1"})
GROUPS: Final = frozenset({"", "apps", "batch", "policy", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io"})
VERSION: Final = re.compile(r"v\d{1,2}(?:(?:alpha|beta)\d{1,2})?", re.ASCII)

KINDS: Final = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "Node", "Pod", "ReplicaSet", "ReplicationController", "StatefulSet"}
)
"""Of owners. `kubectl drain` reads only the kind, so it stays in any group."""

DRIVERS: Final = frozenset(
    {"kubernetes.io/no-provisioner", *(name for plugin in IN_TREE_PLUGINS for name in (plugin.name, plugin.driver))}
)
"""Of volumes."""

VOLUME_PARTS: Final = frozenset({"aws", "vol", "projects", "zones", "regions", "disks", "UNSPECIFIED"})
"""Parts of volumes' handles that are read: `aws://zone/vol-1`."""

DEVICES: Final = frozenset(
    {
        # the language of expressions
        *("device", "driver", "attributes", "capacity", "allowMultipleAllocations"),
        *("true", "false", "null", "in", "has", "all", "exists", "exists_one", "existsOne", "filter", "map"),
        *("cel", "bind", "dyn", "type", "size", "int", "uint", "double", "bool", "string", "bytes", "list"),
        *("timestamp", "duration", "contains", "startsWith", "endsWith", "matches", "find", "findAll"),
        *("charAt", "indexOf", "lastIndexOf", "lowerAscii", "upperAscii", "replace", "split", "join", "substring"),
        *("trim", "format", "reverse", "quote", "strings", "lists", "range", "distinct", "flatten", "slice", "sort"),
        *("sortBy", "sum", "min", "max", "isSorted", "sets", "equivalent", "intersects", "transformList"),
        *("transformMap", "transformMapEntry", "optional", "of", "ofNonZeroValue", "none", "hasValue", "value"),
        *("or", "orValue", "optMap", "optFlatMap", "quantity", "isQuantity", "isInteger", "asInteger"),
        *("asApproximateFloat", "sign", "add", "sub", "compareTo", "isGreaterThan", "isLessThan"),
        *("semver", "isSemver", "major", "minor", "patch", "ip", "isIP", "cidr", "isCIDR", "family", "isUnspecified"),
        *("isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "isCanonical"),
        *("containsIP", "containsCIDR", "prefixLength", "masked", "url", "isURL", "getScheme", "getHost"),
        *("getHostname", "getPort", "getEscapedPath", "getQuery"),
        # attributes that Kubernetes has defined for all drivers
        *("resource.kubernetes.io", "pciBusID", "pcieRoot", "numaNode"),
    }
)
"""In expressions over devices, and in the drivers, attributes and capacities that they name."""

PRE_RELEASE: Final = re.compile(r"\d+|(?:alpha|beta|dev|pre|rc)\d*", re.ASCII)
"""An identifier of a version."""
