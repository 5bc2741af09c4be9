"""`--feature-gates`: the effects of kube-scheduler's gates here.

    removed in 1.37? ──yes──► accepted, and said to be gone
    known? ──no──► refused
      └─yes──► locked, and another value? ──► refused, as there
                  └─no──► ours? ──► obeyed
                            └─no──► its default ──► nothing to say
                                    another value: of the scheduler's? ──► refused: it would place pods otherwise
                                                             └─no──► accepted, and said to have no effect

Rule: k8s.io/component-base/featuregate/feature_gate.go at v0.37.2 for the syntax, AllAlpha and AllBeta, locks, and
gates that depend on others; which those are, defaultKubernetesFeatureGateDependencies in pkg/features at v1.37.2.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Final, NamedTuple

from scheduler.files.generated import table
from scheduler.framework.arguments import did_you_mean
from scheduler.framework.errors import ConfigError

FLAG: Final = "--feature-gates"
OF_PLUGINS: Final = frozenset(
    {
        "CompositePodGroup",
        "DRADerivedAttributes",
        "DRADeviceCompatibilityGroups",
        "DRAFractionalCapacityRange",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "DRAWorkloadResourceClaims",
        "InPlacePodVerticalScalingSchedulerPreemption",
        "TaintTolerationComparisonOperators",
    }
)
"""Gates that plugins ask for."""

_STAGES: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
_TRUTHS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class KnownGate(NamedTuple):
    """A gate of kube-scheduler, by the words of `feature_gates.txt`: on or off, stage, `locked`, `scheduling`."""

    default: bool

    stage: str
    """ALPHA, BETA or DEPRECATED; empty for those that are generally available."""

    is_locked: bool
    """Whether it cannot be set to another value."""

    is_of_scheduling: bool
    """Whether it changes where kube-scheduler places pods, or when."""


@cache
def known_gates() -> Mapping[str, KnownGate]:
    """Return all of them by name, sorted."""
    return {
        name: KnownGate(
            "on" in words,
            next((word for word in words if word.isupper()), ""),
            "locked" in words,
            "scheduling" in words,
        )
        for name, words in table("feature_gates").items()
    }


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """The switches that change what we do. Their names are kube-scheduler's, in snake case."""

    component_flagz: bool = True
    """Serve `/flagz`."""

    component_statusz: bool = True
    """Serve `/statusz`."""

    composite_pod_group: bool = False
    """Try PodGroups together that are of one CompositePodGroup."""

    generic_workload: bool = False
    """Schedule the pods of a PodGroup together; enable the plugin GangScheduling in the default profile."""

    in_place_pod_vertical_scaling_scheduler_preemption: bool = False
    """Evict others for deferred resizes; enable the plugin DeferredPodScheduling in the default profile."""

    pod_group_preemption_policy: bool = False
    """Read from a PodGroup, not from its pods, whether it may evict others."""

    topology_aware_workload_scheduling: bool = False
    """Try each group in several placements, those of plugins; enable these in the default profile."""

    given: Mapping[str, bool] = field(default_factory=dict)
    """All gates that were set, ours or not, by kube-scheduler's names."""

    def states(self) -> Iterator[tuple[tuple[str, str], float]]:
        """Yield name and stage of each known gate, and whether it is on: for the metric `kubernetes_feature_enabled`.

        Rule: AddMetrics in k8s.io/component-base/featuregate/feature_gate.go at v0.37.2.
        """
        for name, gate in known_gates().items():
            yield (name, gate.stage), float(self.given.get(name, gate.default))

    def switched_on(self) -> frozenset[str]:
        """Return those that are on of the gates that plugins ask for."""
        return frozenset(name for name in OF_PLUGINS if self.given.get(name))


OURS: Final = {
    "".join(part.capitalize() for part in each.name.split("_")): each.name
    for each in fields(FeatureGates)
    if each.type is bool
}
"""Name of a gate → its field."""

REMOVED: Final = frozenset(
    {
        "APIServerTracing",
        "AnonymousAuthConfigurableEndpoints",
        "AnyVolumeDataSource",
        "AuthorizeNodeWithSelectors",
        "AuthorizeWithSelectors",
        "BtreeWatchCache",
        "ConsistentListFromCache",
        "GangScheduling",
        "JobBackoffLimitPerIndex",
        "JobPodReplacementPolicy",
        "JobSuccessPolicy",
        "LogarithmicScaleDown",
        "OrderedNamespaceDeletion",
        "PodLifecycleSleepAction",
        "PodLifecycleSleepActionAllowZero",
        "PreventStaticPodAPIReferences",
        "RelaxedDNSSearchValidation",
        "ResilientWatchCacheInitialization",
        "RetryGenerateName",
        "SchedulerQueueingHints",
        "SidecarContainers",
        "StreamingCollectionEncodingToJSON",
        "StreamingCollectionEncodingToProtobuf",
        "StructuredAuthenticationConfiguration",
        "WorkloadAwarePreemption",
    }
)
"""Gates that 1.36 had, and kube-scheduler 1.37 refuses: configurations that set them are accepted once more."""

DEPENDENCIES: Final[Mapping[str, tuple[str, ...]]] = {
    "CompositePodGroup": ("GenericWorkload", "TopologyAwareWorkloadScheduling"),
    "DRAWorkloadResourceClaims": ("GenericWorkload",),
    "PodGroupPreemptionPolicy": ("GenericWorkload",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "WorkloadWithJob": ("GenericWorkload",),
}
"""Name of a gate → those of ours that it depends on."""


def read_gates(texts: Sequence[str]) -> tuple[FeatureGates, tuple[str, ...]]:
    """Read `A=true,B=false`, given any number of times; also return notes about what has no effect.

    Raises ConfigError with all problems.
    """
    problems: list[str] = []
    notes: list[str] = []
    given = _given(texts, problems)
    gone = "has no effect: Kubernetes 1.37 removed this gate, and the next version refuses it"
    notes += [f"{FLAG} {name}={_text(given.pop(name))} {gone}" for name in sorted(REMOVED & given.keys())]
    chosen = {name: wanted for name, wanted in given.items() if name not in _STAGES}
    for name, wanted in chosen.items():
        _check(name, wanted, problems, notes)
    for stage in _STAGES.keys() & given.keys():
        of_stage = {
            name: given[stage]
            for name, gate in known_gates().items()
            if gate.stage == _STAGES[stage] and not gate.is_locked and name not in chosen
        }
        _check_stage(f"{stage}={_text(given[stage])}", of_stage, problems, notes)
        chosen |= of_stage
    if not problems:
        problems += _unmet(chosen)
    if problems:
        raise ConfigError([f"{FLAG}: {problem}" for problem in problems])
    ours = {OURS[name]: wanted for name, wanted in chosen.items() if name in OURS}
    return FeatureGates(**ours, given={**given, **chosen}), tuple(notes)


def _unmet(chosen: Mapping[str, bool]) -> Iterator[str]:
    known = known_gates()
    for name, needed in DEPENDENCIES.items():
        if chosen.get(name, known[name].default):
            off = [each for each in needed if not chosen.get(each, known[each].default)]
            if off:
                yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"


def _given(texts: Sequence[str], problems: list[str]) -> dict[str, bool]:
    given: dict[str, bool] = {}
    for pair in (pair.strip() for text in texts for pair in text.split(",")):
        if not pair:
            continue
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            problems.append(f"missing bool value for {name}")
        elif value not in _TRUTHS:
            problems.append(f"invalid value of {name}={value}: it is neither true nor false")
        else:
            given[name] = _TRUTHS[value]
    return given


def _check(name: str, wanted: bool, problems: list[str], notes: list[str]) -> None:
    gate = known_gates().get(name)
    if gate is None:
        problems.append(f"unrecognized feature gate: {name}{did_you_mean(name, known_gates())}")
        return
    default = _text(gate.default)
    if gate.is_locked and wanted != gate.default:
        problems.append(f"cannot set feature gate {name} to {_text(wanted)}, feature is locked to {default}")
    elif name in OURS or name in OF_PLUGINS or wanted == gate.default:
        return
    elif gate.is_of_scheduling:
        problems.append(f"{name} changes how pods are scheduled, and is always {default} in this version of Loadmaster")
    else:
        notes.append(f"{FLAG} {name}={_text(wanted)} has no effect here")


def _check_stage(pair: str, gates: Mapping[str, bool], problems: list[str], notes: list[str]) -> None:
    """Check all gates of a stage, for one line."""
    known = known_gates()
    obeyed = OURS.keys() | OF_PLUGINS
    others = {name for name, wanted in gates.items() if wanted != known[name].default and name not in obeyed}
    if needed := sorted(name for name in others if known[name].is_of_scheduling):
        problems.append(
            f"{pair} would change {', '.join(needed)}, which cannot be changed in this version of Loadmaster"
        )
    elif others:
        notes.append(f"{FLAG} {pair} has no effect here but on {', '.join(sorted(obeyed))}")


def _text(wanted: bool) -> str:
    return str(wanted).lower()
