from collections import Counter

import numpy as np
import pytest

from scheduler.framework.diagnosis import Diagnosis, NodeToStatus
from scheduler.framework.status import SKIP, Status, pending, unresolvable, unschedulable

BUSY = unschedulable("Too many pods").by("Fit")


def test_reasons_are_counted_over_the_nodes_and_sorted_as_text_with_their_counts() -> None:
    diagnosis = Diagnosis(12)

    diagnosis.add(unschedulable("Too many pods", "Insufficient cpu").by("Fit"), 1)
    diagnosis.add(unschedulable("Insufficient cpu").by("Fit"), 9)
    diagnosis.add(BUSY, 1)

    assert diagnosis.message == "0/12 nodes are available: 10 Insufficient cpu, 2 Too many pods."


def test_without_reasons_the_message_ends_after_the_colon() -> None:
    assert Diagnosis(0).message == "0/0 nodes are available:"


def test_the_message_of_pre_filter_stands_for_all_reasons() -> None:
    diagnosis = Diagnosis(2, Counter({"Too many pods": 2}), pre_filter_message="node(s) didn't satisfy plugin A")

    assert diagnosis.message == "0/2 nodes are available: node(s) didn't satisfy plugin A."


@pytest.mark.parametrize(
    ("reasons", "pre_filter", "message"),
    [
        (Counter({"x": 1}), "", "0/1 nodes are available: 1 x. no victims"),
        (Counter(), "not today", "0/1 nodes are available: not today. no victims"),
        (Counter(), "", "0/1 nodes are available: no victims"),
    ],
)
def test_the_message_of_post_filter_comes_last_and_as_it_is(
    reasons: Counter[str], pre_filter: str, message: str
) -> None:
    diagnosis = Diagnosis(1, reasons, pre_filter_message=pre_filter, post_filter_message="no victims")

    assert diagnosis.message == message


@pytest.mark.parametrize("status", [unschedulable("x"), unresolvable("x"), pending("x")])
def test_who_refuses_is_remembered(status: Status) -> None:
    diagnosis = Diagnosis(1)

    diagnosis.add_plugin(status.by("Fit"))

    assert diagnosis.unschedulable_plugins == {"Fit"}
    assert diagnosis.pending_plugins == ({"Fit"} if status == pending("x") else set())
    assert not diagnosis.reasons


@pytest.mark.parametrize("status", [SKIP.by("Fit"), unschedulable("x")])
def test_only_named_refusals_are_remembered(status: Status) -> None:
    diagnosis = Diagnosis(1)

    diagnosis.add_plugin(status)

    assert not diagnosis.unschedulable_plugins


def test_the_status_of_a_node_is_worked_out_when_asked_for() -> None:
    asked: list[str] = []

    def status(name: str) -> Status | None:
        asked.append(name)
        return BUSY if name == "a" else None

    statuses = NodeToStatus(lambda: iter(("a", "b")), status, lambda code: np.arange(0))

    assert (list(statuses), len(statuses), asked) == (["a", "b"], 2, [])
    assert statuses["a"] is BUSY
    assert statuses.get("c") is None
    assert asked == ["a", "c"]
