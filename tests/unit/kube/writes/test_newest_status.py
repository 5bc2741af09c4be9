"""Answers to status patches: small, few, and forgotten once the watch is as new."""

from typing import Any

import pytest

from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.kube.writes import status as module
from scheduler.kube.writes.status import NewestStatus

OURS = frozenset({"PodScheduled"})


def a_version(version: int, *, uid: str = "a", message: str = "", **content: Any) -> Pod:
    metadata = {"name": "web", "namespace": "shop", "uid": uid, "resourceVersion": str(version), "generation": 3}
    conditions = [
        {"type": "PodScheduled", "status": "False", "reason": "X", "message": message},
        {"type": "Odd", "status": "True", "message": "y" * 1000},
    ]
    return pod_from_dict(
        {"metadata": metadata, "status": {"conditions": conditions, "nominatedNodeName": "n"}, **content}
    )


def test_an_answer_counts_until_the_watch_is_as_new() -> None:
    newest = NewestStatus(OURS)
    newest.remember(a_version(5))

    found = newest.of(a_version(4))
    assert (found.metadata.resource_version, found.metadata.generation, found.uid) == ("5", 3, "a")
    assert (found.nominated_node_name, str(found)) == ("n", "shop/web")
    caught_up = a_version(5)
    assert newest.of(caught_up) is caught_up
    assert len(newest) == 0


def test_only_what_patches_compare_is_kept() -> None:
    newest = NewestStatus(OURS)
    newest.remember(a_version(5, spec={"nodeSelector": {"a": "b" * 1000}}))

    found = newest.of(a_version(4))

    assert [condition.type for condition in found.status.conditions or ()] == ["PodScheduled"]
    assert not found.spec.node_selector


def test_answers_are_bounded_by_their_number_and_by_their_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ANSWERS", 3)
    monkeypatch.setattr(module, "MAX_CHARACTERS", 1000)
    newest = NewestStatus(OURS)
    for number in range(10):
        newest.remember(a_version(5, uid=str(number)))
    assert len(newest) == 3
    newest.remember(a_version(5, uid="large", message="m" * 990))
    newest.remember(a_version(6, uid="large", message="m" * 500))
    newest.remember(a_version(5, uid="also large", message="m" * 498))
    assert len(newest) == 2
    newest.remember(a_version(5, uid="too large", message="m" * 1001))
    assert len(newest) == 0
    for number in range(10):
        newest.remember(a_version(5, uid=str(number)))

    assert len(newest) == 3, "what was forgotten no longer counts"
