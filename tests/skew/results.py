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
        """In the table."""
        parts = [
            f"{self.passed} passed" if self.passed else "",
            f"**{len(self.failed)} failed**" if self.failed else "",
            f"{len(self.skipped)} not run" if self.skipped else "",
        ]
        return ", ".join(filter(None, parts))


def read(files: Iterable[Path]) -> dict[str, Result]:
    """By capability. Files that are not there count as empty."""
    found: defaultdict[str, Result] = defaultdict(Result)
    for file in files:
        if file.exists():
            for case in ElementTree.parse(file).iter("testcase"):
                _count(case, found[capability_of(case.get("classname", "").rpartition(".")[2])])
    return dict(found)


def _count(case: ElementTree.Element, result: Result) -> None:
    outcomes = {each.tag: each for each in case}
    if "failure" in outcomes or "error" in outcomes:
        result.failed.append(case.get("name", ""))
    elif "skipped" in outcomes:
        result.skipped.append(outcomes["skipped"].get("message", ""))
    else:
        result.passed += 1
