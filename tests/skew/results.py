"""What a run on one version came to, read from the JUnit files that pytest writes."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests.skew.capabilities import capability_of


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
