"""The table of docs/versions.md: what is tested on each version, and what the runs came to, by their JUnit files."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

PAGE: Final = Path(__file__).parents[2] / "docs" / "versions.md"
BEGIN: Final = "<!-- written by `make skew-test WRITE=1`: begin -->\n"
END: Final = "<!-- end -->\n"

CLUSTER: Final = Path(__file__).parents[1] / "cluster"

CAPABILITIES: Final[dict[str, tuple[str, ...]]] = {
    "What stops a start": ("start",),
    "Binding and status": ("binding", "status"),
    "Affinity": ("affinity",),
    "Topology spread": ("spread",),
    "Preemption": ("preemption",),
    "Volumes": ("volumes",),
    "Devices (DRA)": ("dra",),
    "Devices for extended resources": ("extended_resources", "older_api_servers"),
    "Extenders": ("extenders",),
    "Custom resources that plugins watch": ("watched_resources",),
    "Next to other schedulers": ("coexistence", "shadow"),
    "In kube-scheduler's place": ("only_scheduler",),
    "Profiles": ("profile",),
    "Explanations": ("explain",),
    "Helm chart and its account": ("chart", "chart_permissions", "least_privilege"),
    "Secured port": ("serving",),
    "Metrics": ("metrics",),
    "Two replicas": ("leadership",),
}
"""Those of a usual run; every other file is in a run of all, as one row."""

OTHERS: Final = "All other cluster tests"


def capability_of(file: str) -> str:
    """The row to which a file such as `test_binding` belongs."""
    name = file.removeprefix("test_")
    return next((capability for capability, files in CAPABILITIES.items() if name in files), OTHERS)


def files() -> list[Path]:
    """The files of a usual run."""
    return named(name for names in CAPABILITIES.values() for name in names)


def named(names: Iterable[str]) -> list[Path]:
    """The files of these names, such as `binding`."""
    return [CLUSTER / f"test_{name}.py" for name in names]


@dataclass(slots=True)
class Result:
    """Of one capability on one version."""

    passed: int = 0
    skipped: list[str] = field(default_factory=list)
    """Why, one for each test."""
    failed: list[str] = field(default_factory=list)
    """Names of tests."""

    @property
    def cell(self) -> str:
        """In the table: how many passed, and what did not."""
        parts = [
            str(self.passed) if self.passed else "",
            f"**{len(self.failed)} failed**" if self.failed else "",
            f"{len(self.skipped)} not run" if self.skipped else "",
        ]
        return ", ".join(filter(None, parts))


def read(runs: Iterable[Path]) -> dict[str, Result]:
    """By capability. A run, which is a JUnit file, replaces what the runs before it have about the same test files."""
    cases: dict[str, list[ElementTree.Element]] = {}
    for run in runs:
        of_this_run: defaultdict[str, list[ElementTree.Element]] = defaultdict(list)
        for case in ElementTree.parse(run).iter("testcase"):
            of_this_run[case.get("classname", "").rpartition(".")[2]].append(case)
        cases |= of_this_run
    found: defaultdict[str, Result] = defaultdict(Result)
    for file, each in cases.items():
        for case in each:
            _count(case, found[capability_of(file)])
    return dict(found)


def _count(case: ElementTree.Element, result: Result) -> None:
    outcomes = {each.tag: each for each in case}
    if "failure" in outcomes or "error" in outcomes:
        result.failed.append(case.get("name", ""))
    elif "skipped" in outcomes:
        result.skipped.append(outcomes["skipped"].get("message", ""))
    else:
        result.passed += 1


def table(results: Mapping[str, Mapping[str, Result]]) -> str:
    """One column for each version, such as "1.34.4", and below it why tests were not run on which versions."""
    rows = [name for name in (*CAPABILITIES, OTHERS) if any(name in each for each in results.values())]
    lines = [f"| API server | {' | '.join(results)} |", "|---" * (len(results) + 1) + "|"]
    for name in rows:
        cells = (each[name].cell if name in each else "-" for each in results.values())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    reasons: dict[str, list[str]] = {}
    for version, each in results.items():
        for reason in sorted({reason for result in each.values() for reason in result.skipped}):
            reasons.setdefault(reason, []).append(version)
    notes = [f"- {', '.join(versions)}: {reason}" for reason, versions in reasons.items()]
    return "\n".join([*lines, *(["", "Not run, and why:", "", *notes] if notes else [])]) + "\n"


def with_table(text: str, new: str) -> str:
    """The page with another table."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{new}\n{END}{tail}"
