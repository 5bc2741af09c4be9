"""The operations of a scheduler_perf workload, decoded: what test/integration/scheduler_perf/operations.go has. Pure.

Field names are those of the YAML files in snake case; defaults and meanings are documented there. Parameters are filled
in, paths are absolute, and durations are seconds.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast


class UnsupportedError(Exception):
    """A workload uses something that cannot be run here. The text says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateNodes:
    count: int = 0
    node_template_path: Path | None = None
    node_allocatable_strategy: Mapping[str, Any] | None = None
    label_node_prepare_strategy: Mapping[str, Any] | None = None
    unique_node_label_strategy: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateNamespaces:
    prefix: str
    count: int = 0
    namespace_template_path: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePods:
    count: int = 0
    namespace: str | None = None
    """None for one of its own, `namespace-N` with the number of the operation."""
    pod_template_path: Path | None = None
    persistent_volume_template_path: Path | None = None
    persistent_volume_claim_template_path: Path | None = None
    collect_metrics: bool = False
    skip_wait_to_completion: bool = False
    steady_state: bool = False
    duration: float = 0.0
    group_size: int = 0
    """Of the groups of pods that createPodGroups has made, one after the other; 0: the pods have no group."""

    def __post_init__(self) -> None:
        if self.skip_wait_to_completion and (self.collect_metrics or self.steady_state):
            raise UnsupportedError("createPods: skipWaitToCompletion excludes collectMetrics and steadyState")
        if self.steady_state and self.duration <= 0:
            raise UnsupportedError("createPods: a steady state needs a duration")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePodGroups:
    """A gang for each `size` pods of so many; the last one may be smaller."""

    namespace: str
    pods: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePodSets:
    """Replaced by its CreatePods when a workload is decoded."""

    count: int = 0
    namespace_prefix: str
    create_pods_op: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAny:
    template_path: Path
    namespace: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAny:
    template_path: Path
    namespace: str = ""
    count: int = 1
    update_per_second: int = 0
    subresources: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateResourceClaims:
    template_path: Path
    namespace: str
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateClaims:
    namespace: str = ""
    """Empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateResourceDriver:
    driver_name: str
    nodes: str
    """A pattern of node names, as the shell has them."""
    max_claims_per_node: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePods:
    namespace: str
    label_selector: Mapping[str, str] = field(default_factory=dict)
    skip_wait_to_completion: bool = False
    delete_pods_per_second: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    mode: Literal["create", "recreate"]
    template_paths: Sequence[Path]
    number: int = 0
    """Rounds of creations in mode `create`, 0 for no end; objects alive at once in mode `recreate`."""
    interval_milliseconds: int = 500
    namespace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier:
    namespaces: Sequence[str] = ()
    label_selector: Mapping[str, str] = field(default_factory=dict)
    stage_requirement: Literal["Scheduled", "Attempted"] = "Scheduled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    duration: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCollecting:
    namespaces: Sequence[str]
    name: str = ""
    label_selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCollecting:
    pass


Operation = (
    CreateNodes
    | CreateNamespaces
    | CreatePodGroups
    | CreatePods
    | CreateAny
    | UpdateAny
    | CreateResourceClaims
    | AllocateClaims
    | CreateResourceDriver
    | DeletePods
    | Churn
    | Barrier
    | Sleep
    | StartCollecting
    | StopCollecting
)

OPCODES: Final[Mapping[str, type[Any]]] = {
    "createNodes": CreateNodes,
    "createNamespaces": CreateNamespaces,
    "createPodGroups": CreatePodGroups,
    "createPods": CreatePods,
    "createPodSets": CreatePodSets,
    "allocResourceClaims": AllocateClaims,
    "createAny": CreateAny,
    "updateAny": UpdateAny,
    "createResourceClaims": CreateResourceClaims,
    "createResourceDriver": CreateResourceDriver,
    "deletePods": DeletePods,
    "churn": Churn,
    "barrier": Barrier,
    "sleep": Sleep,
    "startCollectingMetrics": StartCollecting,
    "stopCollectingMetrics": StopCollecting,
}


class Decoder:
    """Decodes the operations of one workload: its parameters, and the directory that paths are relative to."""

    def __init__(self, params: Mapping[str, Any], directory: Path) -> None:
        self._params = params
        self._directory = directory
        self.used: set[str] = set()
        """Parameters that some operation has asked for."""

    def decode_all(self, template: Sequence[Mapping[str, Any]]) -> tuple[Operation, ...]:
        """The operations, pod sets unrolled. Raises UnsupportedError."""
        result: list[Operation] = []
        for raw in template:
            operation = self._decode(raw)
            if isinstance(operation, CreatePodSets):
                for number in range(operation.count):
                    namespace = f"{operation.namespace_prefix}-{number}"
                    result.append(cast("Operation", self._decode({**operation.create_pods_op, "namespace": namespace})))
            else:
                result.append(operation)
        return tuple(result)

    def _decode(self, raw: Mapping[str, Any]) -> Operation | CreatePodSets:
        opcode = raw.get("opcode", "")
        if opcode not in OPCODES:
            raise UnsupportedError(f"unknown operation {opcode}")
        target = OPCODES[opcode]
        known = {one.name for one in dataclasses.fields(target)}
        values: dict[str, Any] = {}
        # Parameters last: where both are given, the parameter wins.
        for key, value in sorted(raw.items(), key=lambda item: item[0].endswith("Param")):
            if key == "opcode":
                continue
            name = snake_case(key.removesuffix("Param"))
            if name not in known:
                raise UnsupportedError(f"{opcode}: unknown field {key}")
            values[name] = self._value(name, self._param(value) if key.endswith("Param") else value)
        try:
            return cast("Operation | CreatePodSets", target(**values))
        except TypeError as error:
            raise UnsupportedError(f"{opcode}: {error}") from error

    def _param(self, reference: str) -> Any:
        name = reference.removeprefix("$")
        if name not in self._params:
            raise UnsupportedError(f"parameter {name} is not defined")
        self.used.add(name)
        return self._params[name]

    def _value(self, name: str, value: Any) -> Any:
        if name.endswith("_path"):
            return self._directory / value
        if name.endswith("_paths"):
            return tuple(self._directory / path for path in value)
        return seconds(value) if name == "duration" else value


def snake_case(name: str) -> str:
    """
    >>> snake_case("maxClaimsPerNode")
    'max_claims_per_node'
    """
    return re.sub(r"(?=[A-Z])", "_", name).lower()


def seconds(duration: str) -> float:
    """A Go duration.

    >>> seconds("1m30s")
    90.0
    """
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    parts = re.findall(r"([\d.]+)(ms|h|m|s)", duration)
    if "".join(number + unit for number, unit in parts) != duration:
        raise UnsupportedError(f"not a duration: {duration!r}")
    return sum(float(number) * units[unit] for number, unit in parts)
