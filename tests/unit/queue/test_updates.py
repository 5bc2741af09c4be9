"""What an update of a pod does, by where the pod is."""

import pytest

from scheduler.api.pods.pod import Pod
from scheduler.framework.events import ALL_EVENTS, ClusterEventWithHint
from tests.unit.queue.fakes import FIT, PROFILE, Gate, QueueUnderTest, a_waiting_pod


@pytest.fixture
def queue() -> QueueUnderTest:
    return QueueUnderTest(Gate())


def version_of(queue: QueueUnderTest, uid: str) -> str:
    (queued,) = (q for pods in queue.pending_pods().values() for q in pods if q.pod.uid == uid)
    return queued.pod.metadata.resource_version


def test_an_unknown_pod_is_taken_in(queue: QueueUnderTest) -> None:
    queue.update(a_waiting_pod("a"), a_waiting_pod("a", version=2))

    assert queue.where("a") == "active"
    assert queue.incoming("active", "UnscheduledPodAdd") == 1


def test_an_active_pod_goes_where_its_new_priority_belongs(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a"))
    queue.add(a_waiting_pod("b"))

    queue.update(a_waiting_pod("b"), a_waiting_pod("b", priority=1, version=2))

    queue.check_invariants()
    assert [queue.pop_one().pod.metadata.resource_version for _ in "ba"] == ["2", "1"]


def test_an_active_pod_keeps_its_place_in_other_updates(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a"))
    queue.add(a_waiting_pod("b"))

    queue.update(a_waiting_pod("a"), a_waiting_pod("a", nominated="n1", version=2))

    assert queue.pop_one().pod.metadata.resource_version == "2"
    assert queue.nominator.node_of("a") == "n1"


@pytest.mark.parametrize("plugins", [(), (FIT,)], ids=["after an error", "after a refusal"])
def test_a_pod_that_backs_off_goes_on_waiting(queue: QueueUnderTest, plugins: tuple[str, ...]) -> None:
    queued = queue.popped(a_waiting_pod("a", cpu="2"))
    queue.activate(["a"])
    queue.fail(queued, *plugins)
    assert queue.where("a") == "backoff"

    queue.update(a_waiting_pod("a", cpu="2"), a_waiting_pod("a", cpu="1", version=2))

    assert (queue.where("a"), version_of(queue, "a")) == ("backoff", "2")


@pytest.mark.parametrize(
    ("new", "seconds", "place"),
    [
        pytest.param(a_waiting_pod("a", cpu="1", version=2), 3, "active", id="asks for less"),
        pytest.param(a_waiting_pod("a", cpu="1", version=2), 0, "backoff", id="asks for less, but has to wait"),
        pytest.param(
            a_waiting_pod("a", cpu="2", version=2, labels={"a": "b"}), 3, "unschedulable", id="labels: not its plugin's"
        ),
        pytest.param(a_waiting_pod("a", cpu="3", version=2), 3, "unschedulable", id="asks for more"),
        pytest.param(a_waiting_pod("a", cpu="2", version=2, phase="Unknown"), 3, "unschedulable", id="status"),
    ],
)
@pytest.mark.parametrize("old", [a_waiting_pod("a", cpu="2"), None], ids=["old given", "old from the queue"])
def test_a_refused_pod_moves_if_the_change_may_help(
    queue: QueueUnderTest, old: Pod | None, new: Pod, seconds: float, place: str
) -> None:
    queue.refused(a_waiting_pod("a", cpu="2"), FIT)
    queue.clock.advance(seconds)

    queue.update(old, new)

    assert (queue.where("a"), version_of(queue, "a")) == (place, "2")


def test_our_own_status_patch_moves_nothing_even_for_a_plugin_that_registered_for_everything() -> None:
    queue = QueueUnderTest(events={PROFILE: {FIT: [ClusterEventWithHint(ALL_EVENTS)]}})
    queue.refused(a_waiting_pod("a"), FIT)
    queue.clock.advance(3)

    queue.update(None, a_waiting_pod("a", nominated="n1", version=2))

    assert queue.where("a") == "unschedulable"


def test_a_pod_is_active_as_soon_as_its_last_gate_goes(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a", gates=("x", "y")))
    queue.update(None, a_waiting_pod("a", gates=("y",), version=2))
    assert (queue.where("a"), version_of(queue, "a")) == ("gated", "2")

    queue.update(None, a_waiting_pod("a", version=3))

    assert (queue.where("a"), version_of(queue, "a")) == ("active", "3")
    assert queue.incoming("active", "TargetPodUpdatePodSchedulingGatesEliminated") == 1


def test_a_pod_whose_gate_fails_when_asked_again_is_no_longer_gated(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a", gates=("x",)))

    queue.update(None, a_waiting_pod("a", labels={"broken": ""}, version=2))

    assert queue.where("a") == "unschedulable"


def test_a_pod_in_flight_comes_back_in_its_newest_version(queue: QueueUnderTest) -> None:
    queued = queue.popped(a_waiting_pod("a"))

    queue.update(None, a_waiting_pod("a", version=2))
    queue.update(None, a_waiting_pod("a", version=3))
    assert queued.pod.metadata.resource_version == "1"
    queue.fail(queued, FIT)

    assert (queue.where("a"), version_of(queue, "a")) == ("unschedulable", "3")


@pytest.mark.parametrize(
    ("cpu", "place"), [pytest.param("1", "backoff", id="helps"), pytest.param("3", "unschedulable", id="does not")]
)
def test_an_update_in_flight_counts_when_the_pod_comes_back(queue: QueueUnderTest, cpu: str, place: str) -> None:
    queued = queue.popped(a_waiting_pod("a", cpu="2"))

    queue.update(None, a_waiting_pod("a", cpu=cpu))
    queue.fail(queued, FIT)

    assert queue.where("a") == place


def test_adding_a_pod_in_flight_does_not_make_a_second_one(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a"))
    queue.pop_one()

    queue.add(a_waiting_pod("a", version=2))

    queue.check_invariants()
    assert queue.pop_nowait() is None


def test_a_pod_that_turns_up_again_after_its_deletion_in_flight_comes_back(queue: QueueUnderTest) -> None:
    queued = queue.popped(a_waiting_pod("a"))

    queue.delete("a")
    queue.add(a_waiting_pod("a", version=2))
    queue.fail(queued, FIT)

    assert queue.where("a") == "unschedulable"


def test_a_pod_that_changes_its_profile_is_counted_for_the_new_one(queue: QueueUnderTest) -> None:
    queue.refused(a_waiting_pod("a"), FIT)

    queue.update(None, a_waiting_pod("a", profile="other"))

    assert queue.unschedulable_counts() == {(FIT, "other"): 1}
