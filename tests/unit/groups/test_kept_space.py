"""What is kept for the members of a group on nodes, while they are tried one after the other."""

import pytest

from scheduler.framework.queued import QueuedPod
from scheduler.groups.what_if import KeptSpace
from scheduler.state.nominator import Nominator
from scheduler.testing import a_pod


@pytest.mark.parametrize(
    ("taker", "cpu", "node", "kept"),
    [
        pytest.param("a", 1, "n1", {"b": "n2", "c": "n2"}, id="has what is kept for it"),
        pytest.param("a", 1, "n3", {"b": "n2", "c": "n2"}, id="has what is kept for no one"),
        pytest.param("a", 1, "n2", {"b": "n1", "c": "n2"}, id="changes with one that asks for the same"),
        pytest.param("a", 2, "n2", {"b": "", "c": ""}, id="may have taken what is kept for all others there"),
        pytest.param("more", 1, "n2", {"b": "", "c": "n2"}, id="nothing is kept for it, so it has nothing to give"),
        pytest.param("a", 1, "", {"b": "n2", "c": "n2"}, id="fits nowhere"),
    ],
)
def test_a_member_that_has_what_is_kept_for_another_one_leaves_it_its_own(
    taker: str, cpu: int, node: str, kept: dict[str, str]
) -> None:
    cpus = {"more": 1, "a": 1, "b": 1, "c": 1, taker: cpu}
    pods = {name: a_pod(name, uid=name, requests={"cpu": of_pod}) for name, of_pod in cpus.items()}
    nominator, before = Nominator(), {"a": "n1", "b": "n2", "c": "n2"}
    for name, its in before.items():
        nominator.add(pods[name], its)
    nominator.keep(before)
    space = KeptSpace(nominator, [QueuedPod(pod, 0.0) for pod in pods.values()])

    space.tried(pods[taker], node)

    assert {name: nominator.kept_on(name) for name in kept} == kept
    space.end()
    assert {name: nominator.kept_on(name) for name in before} == before
    nominator.check_invariants()
