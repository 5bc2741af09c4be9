"""Run kube-scheduler's pod group cycle and ours on generated clusters, and compare what becomes of every group.

    python -m tests.conformance.run --only groups

A case that differs is made small and written to `groups/`.

The oracle is built with edits by which equals are chosen by name (`edits.py`), and started once for each set of feature
gates: kube-scheduler has them for the whole process.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from tests.conformance import failure, groups_ours
from tests.conformance.compare import Difference, unequal
from tests.conformance.compare import differences as of_pods
from tests.conformance.generators import trees
from tests.conformance.generators.groups import among_groups, generate
from tests.conformance.oracle import Oracle
from tests.conformance.recorded import CASES

Json = dict[str, Any]
Maker = Callable[[int], Json]

OF_GROUPS: Final[Sequence[Maker]] = (generate, among_groups)
OF_TREES: Final[Sequence[Maker]] = (trees.generate, trees.among_trees)
CHUNK: Final = 200
GROUPS: Final = CASES.parent / "groups"
KEPT: Final = ("gates", "config", "alone")
"""Without some gate others could not be on, and the default name of a scheduler is not the same."""

OF_A_GROUP: Final = ("gated", "code", "message", "waitingOnPreemption", "placement", "victims", "condition")
OF_ANY_VICTIMS: Final = ("gated", "code", "waitingOnPreemption")
OF_A_PART: Final = ("code", "message", "condition")
OF_A_MEMBER: Final = ("node", "reason", "message", "unschedulablePlugins", "pendingPlugins", "nominatedNode")


class Oracles:
    """kube-scheduler with each set of feature gates that is asked for. A context manager: leaving it ends them all."""

    def __init__(self) -> None:
        self._running = contextlib.ExitStack()
        self._oracles: dict[tuple[str, ...], Oracle] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def judge_all(self, cases: Sequence[Json]) -> list[Json]:
        """The verdicts on `cases`, in their order."""
        by_gates: dict[tuple[str, ...], list[int]] = {}
        for place, case in enumerate(cases):
            by_gates.setdefault(tuple(case["gates"]), []).append(place)
        verdicts: list[Json] = [{}] * len(cases)
        for gates, places in by_gates.items():
            found = self._with(gates).judge_all([cases[place] for place in places])
            for place, verdict in zip(places, found, strict=True):
                verdicts[place] = verdict
        return verdicts

    def _with(self, gates: tuple[str, ...]) -> Oracle:
        if gates not in self._oracles:
            self._oracles[gates] = self._running.enter_context(Oracle(f"-gates={','.join(gates)}", kind="groups"))
        return self._oracles[gates]


def differences(expected: Json, actual: Json) -> list[Difference]:
    """What `actual`, ours, says otherwise than `expected`, the oracle's."""
    if expected.get("error") or actual.get("error") or expected.get("pods"):
        return of_pods(expected, actual)
    theirs, ours = by_name(expected.get("groups", ())), by_name(actual.get("groups", ()))
    found = list(unequal("groups judged", sorted(theirs), sorted(ours)))
    for key in sorted(theirs.keys() & ours.keys()):
        found += compare_group(key, theirs[key], ours[key])
    return found


def by_name(things: Iterable[Json]) -> dict[str, Json]:
    """Groups by namespace and name, or members by name."""
    return {"/".join(each[part] for part in ("namespace", "name") if part in each): each for each in things}


def has_fewer_victims(expected: Json, actual: Json) -> bool:
    """Whether some of the pods can stay that kube-scheduler evicts: then members are to get other nodes.

    Victims that are being deleted already are in the messages only.
    """
    is_among_them = set(actual["victims"]) <= set(expected["victims"])
    return is_among_them and actual["waitingOnPreemption"] and victims_in(actual) < victims_in(expected)


def victims_in(verdict: Json) -> tuple[int, int]:
    """The number of victims that are evicted, and of all."""
    said = re.search(r"preempting (\d+) victims", verdict["message"])
    return len(verdict["victims"]), int(said[1]) if said else 0


def compare_group(key: str, expected: Json, actual: Json) -> Iterator[Difference]:
    """What was decided about one group and each of its members."""
    fewer = has_fewer_victims(expected, actual)
    for part in OF_A_GROUP if not fewer else OF_ANY_VICTIMS:
        yield from unequal(f"{key} {part}", expected.get(part), actual.get(part))
    theirs, ours = expected.get("parts", {}), actual.get("parts", {})
    yield from unequal(f"{key} parts", sorted(theirs), sorted(ours))
    for name in sorted(theirs.keys() & ours.keys()) if not fewer else ():
        for part in OF_A_PART:
            yield from unequal(f"{key} {name}: {part}", theirs[name][part], ours[name][part])
    theirs, ours = by_name(expected["members"]), by_name(actual["members"])
    yield from unequal(f"{key} members", sorted(theirs), sorted(ours))
    if fewer:
        return
    for name in sorted(theirs.keys() & ours.keys()):
        for part in OF_A_MEMBER:
            said = theirs[name].get(part), ours[name].get(part)
            if (part, *said) != ("nominatedNode", None, ""):  # that ends, if none leaves for it: docs/differences.md
                yield from unequal(f"{key} {name}: {part}", *said)


REPORTED: Final[Mapping[str, Any]] = {"differences": differences, "kept": KEPT}


def compare(seeds: range, makers: Sequence[Maker] = (*OF_GROUPS, *OF_TREES)) -> int:
    """Judge the cases of these seeds, groups and trees that wait and pods among them; stop at the first difference."""
    with Oracles() as oracles:
        judge, found = groups_ours.judge, judged(oracles, seeds, makers)
        return failure.compare(found, outcomes, judge, oracles.judge_all, **REPORTED, directory=GROUPS)


def judged(oracles: Oracles, seeds: range, makers: Sequence[Maker]) -> Iterator[tuple[Json, Json]]:
    """The cases of these seeds and the oracle's verdicts."""
    for start in range(0, len(seeds), CHUNK):
        chunk = seeds[start : start + CHUNK]
        cases = [make(seed) for make in makers for seed in chunk]
        yield from zip(cases, oracles.judge_all(cases), strict=True)


def outcomes(verdict: Json) -> list[str]:
    return [outcome(group) for group in verdict.get("groups", ())]


def outcome(group: Json) -> str:
    """What became of a group, in a word."""
    if group["gated"] and not group["members"]:
        return "gated"
    if not group["code"]:
        return "not decided"
    if group["waitingOnPreemption"]:
        return "preempting"
    placed = sum(bool(member.get("node")) for member in group["members"])
    if group["code"] == "Success":
        return "placed" if placed == len(group["members"]) else "placed in part"
    return "failed" if group["code"] == "Error" else "rejected"
