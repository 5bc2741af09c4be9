import pytest

from scheduler.api.objects import PodStatus
from scheduler.api.pods.pod import Pod
from scheduler.framework.preemption.nominated import yields_to
from scheduler.state.nominator import Nominator
from scheduler.testing import a_pod
from tests.fakes import nominated_node


def a_nominee(uid: str = "a", nominated: str = "", node: str = "") -> Pod:
    """A pod whose status names the node `nominated`."""
    return a_pod(uid, uid=uid, node_name=node, status=PodStatus(nominated_node_name=nominated))


@pytest.mark.parametrize(
    ("pod", "override", "node_name"),
    [
        pytest.param(a_nominee(), None, "", id="nothing names a node"),
        pytest.param(a_nominee(nominated="n1"), None, "n1", id="the status names one"),
        pytest.param(a_nominee(nominated="n1"), "n2", "n2", id="the caller knows better"),
        pytest.param(a_nominee(nominated="n1"), "", "", id="the caller takes it back"),
        pytest.param(a_nominee(nominated="n1", node="n1"), None, "", id="bound already"),
    ],
)
def test_a_pod_is_nominated_by_its_status_or_the_caller(pod: Pod, override: str | None, node_name: str) -> None:
    nominator = Nominator()

    nominator.add(pod, override)

    nominator.check_invariants()
    assert nominated_node(nominator, "a") == node_name
    assert list(nominator.nominated_pods(node_name)) == ([pod] if node_name else [])


def test_a_nomination_that_ends_leaves_nothing_behind() -> None:
    nominator = Nominator()
    nominator.add(a_nominee(), "n1")

    nominator.add(a_nominee())

    nominator.check_invariants()
    assert (nominated_node(nominator, "a"), list(nominator.by_node())) == ("", [])


@pytest.mark.parametrize(
    ("old", "new", "node_name"),
    [
        pytest.param(a_nominee(), a_nominee(), "memory", id="the API server does not know of it yet: kept"),
        pytest.param(a_nominee(), a_nominee(nominated="n1"), "n1", id="the API server names a node"),
        pytest.param(a_nominee(nominated="n1"), a_nominee(nominated="n2"), "n2", id="it names another node"),
        pytest.param(a_nominee(nominated="n1"), a_nominee(), "", id="it takes the nomination back"),
    ],
)
def test_an_update_keeps_a_nomination_that_only_we_know_of(old: Pod, new: Pod, node_name: str) -> None:
    nominator = Nominator()
    nominator.add(old, "memory")

    nominator.update(old, new)

    nominator.check_invariants()
    assert nominated_node(nominator, "a") == node_name
    assert list(nominator.nominated_pods(node_name)) == ([new] if node_name else [])


def test_an_update_of_an_unknown_pod_nominates_it_by_its_status() -> None:
    nominator = Nominator()

    nominator.update(a_nominee(), a_nominee(nominated="n1"))
    nominator.update(a_nominee("b"), a_nominee("b"))

    assert [pod.uid for pod in nominator.nominated_pods("n1")] == ["a"]
    assert nominated_node(nominator, "b") == ""


def test_deletion_is_by_pod_and_can_be_repeated() -> None:
    nominator = Nominator()
    nominator.add(a_nominee("a"), "n1")
    nominator.add(a_nominee("b"), "n1")

    nominator.delete("a")
    nominator.delete("a")

    nominator.check_invariants()
    assert [pod.uid for pod in nominator.nominated_pods("n1")] == ["b"]


def test_nominations_may_change_during_an_iteration_over_a_node() -> None:
    nominator = Nominator()
    nominator.add(a_nominee("a"), "n1")
    nominator.add(a_nominee("b"), "n1")

    for pod in nominator.nominated_pods("n1"):
        nominator.delete(pod.uid)

    assert list(nominator.by_node()) == []


@pytest.mark.parametrize(
    ("pod", "other", "node", "yields"),
    [
        pytest.param("first", "second", "n1", False, id="the first has the node that it was nominated to"),
        pytest.param("first", "second", "n2", True, id="but no other one"),
        pytest.param("second", "first", "n1", True, id="the second yields to it"),
        pytest.param("first", "sibling", "n2", False, id="pods that began at once do not yield to each other"),
        pytest.param("any", "second", "n1", True, id="all others yield, whatever the priorities"),
        pytest.param("first", "later", "n1", False, id="also one of a higher priority that was nominated later"),
        pytest.param("first", "earlier", "n1", True, id="but not one that was nominated before"),
        pytest.param("gaining", "earlier", "n1", False, id="unless some of what is kept for it is free"),
    ],
)
def test_of_pods_for_which_others_are_evicted_the_first_has_the_node_that_it_waits_for(
    pod: str, other: str, node: str, yields: bool
) -> None:
    names = ("first", "sibling", "second", "any", "gaining", "earlier", "later")
    nominator, pods = Nominator(), {uid: a_pod(uid, uid=uid, priority=int(uid in names[-2:])) for uid in names}
    nominator.add(pods["earlier"], "n1")
    nominator.add(pods["first"], "n1")
    nominator.keep(("first", "sibling"))
    nominator.add(pods["later"], "n1")
    nominator.keep(("second",))
    nominator.add(pods["second"], "n2")
    nominator.add(pods["gaining"], "n1")
    nominator.keep(("gaining",))
    nominator.gain(("gaining",))
    nominator.delete("first")
    nominator.update(pods["earlier"], pods["earlier"])

    assert yields_to(pods[pod], pods[other], node, nominator) == yields
    nominator.check_invariants()


def test_a_nomination_that_is_kept_does_not_hang_on_what_the_api_server_has_heard() -> None:
    nominator = Nominator()
    nominator.add(a_nominee(nominated="before"), "n1")
    nominator.keep(("a",))

    nominator.update(a_nominee(nominated="before"), a_nominee())
    after_update = nominated_node(nominator, "a")
    nominator.add(a_nominee())

    assert (after_update, nominated_node(nominator, "a")) == ("n1", "n1")
    nominator.check_invariants()


def test_a_nomination_that_is_kept_ends_when_the_caller_takes_it_back() -> None:
    nominator = Nominator()
    nominator.add(a_nominee(nominated="n1"), "n1")
    nominator.keep(("a",))

    nominator.add(a_nominee(nominated="n1"), "")

    assert nominated_node(nominator, "a") == ""


def test_a_nomination_that_is_kept_and_made_again_is_no_change() -> None:
    nominator, pod = Nominator(), a_nominee()
    nominator.add(pod, "n1")
    nominator.keep(("a",))
    before = nominator.changes.position

    nominator.add(pod, "n1")
    unchanged = nominator.changes.position
    nominator.add(pod, "n2")

    assert (unchanged, nominated_node(nominator, "a")) == (before, "n2")
    assert nominator.changes.position > before
    nominator.check_invariants()
