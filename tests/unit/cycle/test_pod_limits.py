"""A pod that asks for too much is refused alone, with its reason, and is asked about at no event."""

from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.runtime.pod_limits import MAX_POD_SELECTORS
from scheduler.testing import a_node, a_pod
from tests.fakes import Unschedulable
from tests.unit.cycle.fakes import an_engine

REASON = "the pod has 101 pod affinity terms and topology spread constraints, more than 100 are not looked at"


def a_greedy_pod() -> Pod:
    terms = [{"topologyKey": f"key-{number}", "labelSelector": {}} for number in range(MAX_POD_SELECTORS + 1)]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    plain = a_pod("greedy")
    spec = {"schedulerName": plain.spec.scheduler_name, "affinity": affinity}
    return pod_from_dict({"metadata": {"name": "greedy", "namespace": "default", "uid": plain.uid}, "spec": spec})


async def test_it_is_refused_with_its_reason_and_nothing_wakes_it_while_other_pods_are_placed_as_ever() -> None:
    engine = an_engine()
    await engine.schedule(a_node("n"), a_greedy_pod(), a_pod("plain"))
    engine.see(a_node("m"), a_pod("other", node_name="n"))
    engine.wait(60)
    await engine.schedule()

    message = f"0/1 nodes are available: {REASON}."
    assert engine.world.notes() == [message]
    [told] = engine.world.written(Unschedulable)
    assert (told.reason, told.message) == ("Unschedulable", message)
    assert engine.world.bound == {a_pod("plain").uid: "n"}
