"""What is read from a scheduler's log."""

from typing import Any

from tests.chaos.judge import Judge
from tests.chaos.leftovers import alarming, mismatches, normalized
from tests.chaos.replica import accepted
from tests.controlplane import a_node, a_pod

AGREED = {"msg": "Cache comparer finished", "level": "info", "mismatch": False}
JUDGE = Judge([a_node("n1")], [a_pod("web", "chaos", cpu="250m", nodeName="n1")])


def dumped(node: str, pods: int, cpu: str, *, deleted: bool = False) -> dict[str, Any]:
    return {
        "msg": "Dump of cached node",
        "level": "info",
        "node": node,
        "pods": pods,
        "requested": {"cpu": cpu},
        "deleted": deleted,
    }


def test_tables_that_agree_are_well() -> None:
    assert not [*mismatches([dumped("n1", 1, "0.25"), dumped("n2", 1, "1", deleted=True), AGREED], JUDGE)]


def test_its_own_comparison_is_believed() -> None:
    (found,) = mismatches([dumped("n1", 1, "0.25"), {**AGREED, "mismatch": True}], JUDGE)

    assert found.startswith("its tables differ")


def test_a_pod_that_is_counted_once_too_often_is_found() -> None:
    (found,) = mismatches([dumped("n1", 2, "0.5"), AGREED], JUDGE)

    assert found == "it counts 2 pods with 500m on n1: there are 1 with 250m"


def test_a_node_that_it_does_not_know_is_found() -> None:
    (found,) = mismatches([AGREED], JUDGE)

    assert found == "it does not know the nodes ['n1']"


def test_tracebacks_and_lost_exceptions_are_alarming_and_other_errors_are_not() -> None:
    lines = [
        {"msg": "The watch ended and is started again", "level": "error"},
        {"msg": "A handler failed", "level": "error", "exception": "Traceback …"},
        {"msg": "Task exception was never retrieved", "level": "error"},
        {"msg": "A part ended; the program ends too", "level": "critical"},
    ]

    assert [found.split(":")[0] for found in alarming(lines)] == [
        "A handler failed",
        "Task exception was never retrieved",
        "A part ended; the program ends too",
    ]


def test_names_are_compared_without_numbers_and_addresses() -> None:
    assert normalized(["Task-7", "cleaner of 0x7f1a0a17bad0", "Task-8"]) == {"Task-N": 2, "cleaner of N": 1}


def test_connections_of_those_who_look_at_its_health_are_not_its_own() -> None:
    table = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 101 1 0000 20 4 30 10 -1
   2: 0100007F:C351 0100007F:18EB 01 00000000:00000000 00:00000000 00000000     0        0 102 1 0000 20 4 30 10 -1
"""

    assert accepted(table, 8080) == {"socket:[101]"}
