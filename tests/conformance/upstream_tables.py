"""The test tables of kube-scheduler's own plugins, and those of groups of pods, counted in its Go sources.

upstream_tables.md says where the intent of each file is covered here, and a unit test compares that list with these
counts. The sources are there once the oracle was built: Go keeps them in its module cache.

    python -m tests.conformance.upstream_tables

prints file, function and number of cases.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

VERSION: Final = "v1.37.2"

PLUGINS: Final = "framework/plugins"
_OF_GROUPS: Final = re.compile("podgroup|placement|workload|gang|batch", re.IGNORECASE)
"""Files and functions elsewhere that are about groups of pods."""

_NOT_CODE: Final = re.compile(r"//[^\n]*|/\*.*?\*/|`[^`]*`|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL)
_FUNCTION: Final = re.compile(r"^func (Test|Benchmark)(\w+)\(\w+ \*testing\.[TB]\) \{", re.MULTILINE)
_LIST: Final = re.compile(
    r"(?:\b(?:\w*[tT]ests|test[cC]ases|cases|scenarios|table) :?= |range )"
    r"(?:\[\]|map\[string\])(struct \{|(?!bool|string)\w+\{)"
)
_MARKS: Final = re.compile(r"[()\[\]{},]")
_DEPTH: Final = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1, ",": 0}


class Table(NamedTuple):
    """A test function of kube-scheduler."""

    file: str
    """With its folder: `nodeports/node_ports_test.go`."""

    function: str
    cases: int
    """Entries of the lists that it goes through; 1 if there are none."""


def find_sources() -> Path | None:
    """The folder of kube-scheduler, or None where Go has not fetched it."""
    path = os.environ.get("GOPATH") or Path.home() / "go"
    modules = os.environ.get("GOMODCACHE") or Path(path) / "pkg" / "mod"
    found = Path(modules) / f"k8s.io/kubernetes@{VERSION}/pkg/scheduler"
    return found if found.is_dir() else None


def tables(sources: Path) -> Iterator[Table]:
    """Yield every test function of the plugins, and elsewhere those about groups, with the helpers that follow it."""
    for path in sorted(sources.rglob("*_test.go")):
        is_of_plugin = path.is_relative_to(sources / PLUGINS)
        # Of the same length, so that brackets in texts and comments do not count.
        code = _NOT_CODE.sub(lambda match: "x" * len(match[0]), path.read_text(encoding="utf-8"))
        functions = list(_FUNCTION.finditer(code))
        for number, match in enumerate(functions, start=1):
            end = functions[number].start() if number < len(functions) else len(code)
            if match[1] == "Test" and (is_of_plugin or _OF_GROUPS.search(f"{path.name} {match[2]}")):
                count = count_cases(code[match.end() : end])
                yield Table(f"{path.parent.name}/{path.name}", match[1] + match[2], count)


def count_cases(code: str) -> int:
    """Count the entries of all lists of cases in Go code without texts and comments; 1 if there are none."""
    count = 0
    for match in _LIST.finditer(code):
        at = match.end() - 1
        if match[1].startswith("struct"):
            at = code.index("{", closing(code, at))
        count += elements(code[at + 1 : closing(code, at)])
    return count or 1


def closing(code: str, at: int) -> int:
    """Where the bracket that opens at `at` closes."""
    depth = 0
    for mark in _MARKS.finditer(code, at):
        depth += _DEPTH[mark[0]]
        if depth == 0:
            return mark.start()
    raise ValueError("a bracket is not closed")


def elements(code: str) -> int:
    """Count what commas separate in a literal, without those in nested ones."""
    depth, commas, last = 0, 0, 0
    for mark in _MARKS.finditer(code):
        depth += _DEPTH[mark[0]]
        if mark[0] == "," and depth == 0:
            commas, last = commas + 1, mark.end()
    return commas + bool(code[last:].strip())


def main() -> None:
    sources = find_sources()
    if sources is None:
        raise SystemExit(f"kube-scheduler's sources ({VERSION}) are not in Go's module cache: build the oracle first")
    for table in tables(sources):
        print(f"{table.cases:>5}  {table.file:<60} {table.function}")


if __name__ == "__main__":
    main()
