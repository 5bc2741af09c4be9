"""kube-scheduler's own benchmark workloads, read as they are from the source of Kubernetes.

They are in test/integration/scheduler_perf/*/performance-config.yaml of the module k8s.io/kubernetes, at the version of
which the control plane is built. Go's module cache has them: nothing of them is copied. Groups of pods have none there
yet: see pod_groups/performance-config.yaml.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from tests.bench.gates import FEATURES, Gates, default_gates, unmet
from tests.bench.operations import (
    AllocateClaims,
    CreateAny,
    CreateNodes,
    CreatePods,
    Decoder,
    Operation,
    UnsupportedError,
)
from tests.controlplane.build import KUBERNETES, cache_directory
from tests.controlplane.toolchain import BuildError, find_go

SUITE: Final = Path("test/integration/scheduler_perf")
OWN: Final = Path(__file__).parent
"""What Kubernetes does not measure itself yet is here, in the same form."""

PERFORMANCE: Final = "performance"
Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload, ready to be run."""

    case: str
    name: str
    labels: tuple[str, ...]
    gates: Gates
    params: Mapping[str, Any]
    """As scaled."""
    operations: tuple[Operation, ...]
    directory: str
    """Where in the suite its file is."""
    pod_template: Path | None = None
    """For createPods that name none."""
    scheduler_config: Path | None = None
    skip: str = ""
    """Why it cannot be run here; empty if it can."""

    @property
    def id(self) -> str:
        return f"{self.case}/{self.name}"

    @property
    def nodes(self) -> int:
        return sum(operation.count for operation in self.operations if isinstance(operation, CreateNodes))

    @property
    def pods(self) -> int:
        return sum(operation.count for operation in self.operations if isinstance(operation, CreatePods))


def kubernetes_source() -> Path:
    """The source of Kubernetes in Go's module cache, downloaded if it is not there. Raises BuildError."""
    command = [str(find_go(cache_directory())), "mod", "download", "-json", KUBERNETES.version_of]
    env = os.environ | {"GOTOOLCHAIN": "local", "GOWORK": "off"}
    result = subprocess.run(
        command, cwd=KUBERNETES.directory, env=env, capture_output=True, text=True, check=False, timeout=600
    )
    if result.returncode != 0:
        raise BuildError(f"{' '.join(command)}: {result.stderr.strip() or result.stdout.strip()}")
    return Path(json.loads(result.stdout)["Dir"])


def load(source: Path, scale: float = 1.0) -> list[Workload]:
    """All workloads, ours too, and those that cannot be run. `source`: the root of Kubernetes' source."""
    major, minor = re.findall(r"\d+", KUBERNETES.version)[:2]
    defaults = default_gates((source / FEATURES).read_text(), (int(major), int(minor)))
    found: list[Workload] = []
    for suite in (source / SUITE, OWN):
        for file in sorted(suite.rglob("performance-config.yaml")):
            for case in yaml.load(file.read_text(), Loader):
                found += read_case(case, file.parent, suite, defaults, scale)
    return found


def read_case(
    case: Mapping[str, Any], directory: Path, suite: Path, defaults: Gates, scale: float = 1.0
) -> list[Workload]:
    """The workloads of a test case; of several that do the same, the others name the first as the reason to skip."""
    result: list[Workload] = []
    for raw in case["workloads"]:
        workload = read_workload(case, raw, directory, suite, scale)
        if differing := unmet(workload.gates, defaults):
            workload = replace(workload, skip=f"not the default: {', '.join(differing)}")
        result.append(workload)
    return [skip_twin(workload, result[:number]) for number, workload in enumerate(result)]


def read_workload(
    case: Mapping[str, Any], raw: Mapping[str, Any], directory: Path, suite: Path, scale: float
) -> Workload:
    template = case["workloadTemplate"]
    params = scaled(raw.get("params", {}), template, scale)
    decoder = Decoder(params, directory)
    operations: tuple[Operation, ...] = ()
    skip = ""
    try:
        operations = decoder.decode_all(template)
        if unused := sorted(params.keys() - decoder.used):
            skip = f"parameters that only Go code of this directory uses: {', '.join(unused)}"
        else:
            skip = obstacle(operations)
    except UnsupportedError as error:
        skip = str(error)

    def path(key: str) -> Path | None:
        return directory / case[key] if case.get(key) else None

    return Workload(
        case=case["name"],
        name=raw["name"],
        labels=(*case.get("labels", ()), *raw.get("labels", ())),
        gates={**case.get("featureGates", {}), **raw.get("featureGates", {})},
        params=params,
        operations=operations,
        directory=str(directory.relative_to(suite)),
        pod_template=path("defaultPodTemplatePath"),
        scheduler_config=path("schedulerConfigPath"),
        skip=skip,
    )


def obstacle(operations: Sequence[Operation]) -> str:
    """Why a workload that was decoded cannot be run; empty if it can."""
    if not any(isinstance(operation, CreatePods) for operation in operations):
        return "it has no pods"
    if any(isinstance(operation, AllocateClaims) for operation in operations):
        made = (operation.template_path.read_text() for operation in operations if isinstance(operation, CreateAny))
        if any("kind: ResourceClaim\n" in text and "selectors:" in text for text in made):
            return "allocResourceClaims: claims with selectors are allocated by the scheduler's own Go code"
    return ""


def scaled(params: Mapping[str, Any], template: Sequence[Mapping[str, Any]], scale: float) -> dict[str, Any]:
    """The parameters with the numbers of nodes, pods and claims times `scale`; what was not 0 stays at least 1."""
    numbers: set[str] = set()
    for operation in template:
        inner = operation.get("createPodsOp", operation)
        if inner["opcode"] in ("createNodes", "createPods"):
            numbers.add(inner.get("countParam", "").removeprefix("$"))

    def value(name: str, given: Any) -> Any:
        if given and (name in numbers or name.endswith("Claims")):
            return max(1, round(given * scale))
        return given

    return {name: value(name, given) for name, given in params.items()}


def skip_twin(workload: Workload, earlier: Iterable[Workload]) -> Workload:
    """A workload that differs from an earlier one only by gates that are the default anyway is skipped."""
    for other in earlier:
        if not (workload.skip or other.skip) and same(workload, other):
            return replace(workload, skip=f"the same as {other.name} with default gates")
    return workload


def same(one: Workload, other: Workload) -> bool:
    return one.params == other.params and one.operations == other.operations and one.labels == other.labels


def select(workloads: Sequence[Workload], patterns: Sequence[str], *, every: bool = False) -> list[Workload]:
    """Those with an id that one of the regular expressions finds.

    Without any: those that the project itself measures, labelled `performance`, but of each test case only the one with
    the fewest pods; all of them with `every`.
    """
    if patterns:
        return [workload for workload in workloads if any(re.search(one, workload.id) for one in patterns)]
    measured = [workload for workload in workloads if PERFORMANCE in workload.labels]
    if every:
        return measured
    least: dict[str, Workload] = {}
    for workload in measured:
        best = least.get(workload.case)
        if not workload.skip and (best is None or workload.pods < best.pods):
            least[workload.case] = workload
    return list(least.values())
