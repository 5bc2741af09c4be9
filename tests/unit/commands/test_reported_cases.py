"""What people have reported about schedulers, each as a file: what `simulate` and `explain` must say of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from scheduler.__main__ import main

FILES: Final = Path(__file__).parent / "reported"


class Case(NamedTuple):
    """A file, what is asked about it, and parts of the answer."""

    file: str
    said: Sequence[str]
    never: Sequence[str] = ()
    pod: str = ""
    """Which one is explained."""


def case(file: str, *said: str, never: Sequence[str] = (), pod: str = "") -> Case:
    return Case(file, said, never, pod)


SIMULATED: Final = (
    case("namespace-not-in", "blue/new: placed on n1"),
    case("all-devices-partly-used", "default/a: 0/1 nodes are available: 1 cannot allocate all claims."),
    case("budget-of-two-preemptors", "would preempt default/w2", "would preempt default/other", never=["default/w1"]),
    case("image-volume", "n2 fits 470 300 97 0 0 73", "n1 fits 446 300 97 0 0 49"),
)

EXPLAINED: Final = (
    case(
        "spread-control-plane",
        "w1 has 1 matching pod, cp has the fewest, 0, and maxSkew is 1; "
        "cp counts although the pod does not tolerate the taints of its node",
        "tried out set nodeTaintsPolicy: Honor for spreading over kubernetes.io/hostname: fits 1 node (w1)",
        "one more node like w1 would do",
        "default old tolerate node-role.kubernetes.io/control-plane:NoSchedule "
        "(it keeps workloads off the control plane): fits 1 node (cp)",
        pod="new",
    ),
    case(
        "min-domains",
        "maxSkew is 1, and minDomains is 3: while only 2 domains count, the fewest are taken to be 0",
        "set minDomains: 2 for spreading over topology.kubernetes.io/zone: fits 2 nodes (na, nb)",
        "one more node like na, but with another topology.kubernetes.io/zone, would do",
        never=["the fewest anywhere are 0"],
        pod="new",
    ),
    case(
        "overcommitted-node",
        "nearest is n2: 1 cpu short of 1",
        "2 nodes: 1 to 3 cpu short of 1 (n2, n1)",
        pod="small",
    ),
    case(
        "one-request-too-large",
        "ask for 2 cpu less in container c: fits 1 node (big)",
        never=["ask for 4 cpu"],
        pod="p",
    ),
    case(
        "selected-node-gone",
        "claim a is to get a volume for the node gone, which does not exist",
        "kubectl annotate pvc --namespace default a volume.kubernetes.io/selected-node-",
        pod="p",
    ),
    case(
        "full-of-equals",
        "give it a priority above 0, by a PriorityClass: it could then evict 1 pod, for example on n1",
        "delete 1 pod of the same priority on n1 (default/f2), but preemption deletes only",
        pod="agent",
    ),
    case(
        "victim-never-leaves",
        "wait until default/low has left n1: it is being deleted since 2025-12-31T23:59:30Z, "
        "and held by its finalizers: x/y",
        "kubectl delete pod --namespace default mid",
        never=["default low", "(default/low)"],
        pod="high",
    ),
    case(
        "device-in-use",
        "gpu.x/n1/d0 is used by pod default/low",
        "kubectl delete pod --namespace default low",
        pod="high",
    ),
    case(
        "device-taint",
        "others have the taint hot:NoExecute, which it does not tolerate",
        "make ResourceClaim notol again, tolerating hot:NoExecute",
        pod="b",
    ),
)


@pytest.mark.parametrize("case", SIMULATED, ids=lambda case: case.file)
def test_a_simulation_decides_right(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    check(case, ["simulate", "--explain"], capsys)


@pytest.mark.parametrize("case", EXPLAINED, ids=lambda case: case.file)
def test_an_explanation_says_what_is_so(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    check(case, ["explain", case.pod, "--from"], capsys)


def test_each_file_is_of_a_case() -> None:
    assert {path.stem for path in FILES.glob("*.yaml")} == {case.file for case in (*SIMULATED, *EXPLAINED)}


def check(case: Case, command: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Ask about the file, and compare the answer regardless of white space."""
    assert main([*command, str(FILES / f"{case.file}.yaml")]) == 0

    answer = " ".join(capsys.readouterr().out.split())
    assert [part for part in case.said if part not in answer] == [], answer
    assert [part for part in case.never if part in answer] == [], answer
