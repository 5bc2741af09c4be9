"""A tree of shares in the plugin's arguments: which pods belong where, and what they are told."""

from collections.abc import Hashable

import pytest

from scheduler.api.label_selectors import IN
from scheduler.api.objects import LabelSelector, LabelSelectorRequirement, ObjectMeta
from scheduler.api.unstructured import Unstructured
from scheduler.framework.events import NAMESPACE
from scheduler.framework.shares import DeclaredShare, ShareKey
from scheduler.quota.adapters import AdaptedShares
from scheduler.quota.apis.declared import DeclaredShares
from scheduler.quota.ledger import Ledger
from scheduler.runtime.event_stream import EventStream
from scheduler.state.nominator import Nominator
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_pod
from tests.unit.cycle.fakes import newer
from tests.unit.quota.waiting.shares import Sharing

COMPANY = DeclaredShare("company", minimum={"cpu": "4"})
A = DeclaredShare("team-a", "company", minimum={"cpu": "2"}, namespaces=("a",))
B = DeclaredShare("team-b", "company", minimum={"cpu": "2"}, namespaces=("b",))


def namespace(name: str, **labels: str) -> Unstructured:
    metadata = ObjectMeta(name=name, uid=f"namespace {name}", resource_version=str(len(labels)), labels=labels)
    return Unstructured(metadata, {})


async def test_a_team_borrows_all_that_the_whole_company_has() -> None:
    stage = Sharing(COMPANY, A, B)

    await stage.try_pods(9, "a")

    assert stage.used("team-a") == stage.used("company") == 8000


async def test_the_sentence_names_the_ancestor_and_the_borrowers() -> None:
    stage = Sharing(DeclaredShare("company"), A, B)
    await stage.try_pods(4, "a")
    (waiting,) = await stage.try_pods(1, "b")

    assert 'share "team-b" has no space: 1 of cpu more than "company" has, of which "team-a" borrows 2' in stage.note(
        waiting
    )


async def test_a_maximum_of_an_ancestor_holds_for_all_below_it() -> None:
    roof = DeclaredShare("roof", "company", maximum={"cpu": "1"})
    below = DeclaredShare("below", "roof", namespaces=("a",))
    stage = Sharing(COMPANY, roof, below)

    pods = await stage.try_pods(2, "a")

    assert len(stage.placed) == 1
    assert 'share "below" has no space: 1 of cpu above the limit of "roof"' in stage.note(pods[1])


async def test_resources_that_no_share_names_are_free_and_pods_may_be_counted() -> None:
    stage = Sharing(DeclaredShare("few", maximum={"pods": 2}, namespaces=("a",)))

    pods = await stage.try_pods(3, "a", requests={"cpu": "1", "memory": "1Gi"})

    assert len(stage.placed) == 2
    assert "1 of pods more than it has" in stage.note(pods[2])


@pytest.mark.parametrize("reason", ["WaitingForQuota", "Unschedulable"])
async def test_autoscalers_see_who_lacks_a_node_and_not_who_lacks_quota_unless_that_is_wanted(reason: str) -> None:
    stage = Sharing(DeclaredShare("a", minimum={"cpu": 100}, namespaces=("a",)), arguments={"pending_reason": reason})
    stage.pod("large", requests={"cpu": "80"})
    stage.pod("above", requests={"cpu": "101"})

    await stage.try_pod("free", namespace="b", requests={"cpu": "80"})

    assert stage.reasons == {"a/large": "Unschedulable", "a/above": reason, "b/free": "Unschedulable"}


async def test_a_resource_that_another_tree_names_has_no_limit() -> None:
    few = DeclaredShare("few", maximum={"pods": 1}, namespaces=("b",))
    stage = Sharing(few, DeclaredShare("a", minimum={"cpu": 2}, namespaces=("a",)))
    stage.pods(3, "a")

    await stage.try_pods(2, "b")

    assert stage.placed == ["a-0", "a-1", "b-0"]


@pytest.mark.parametrize("label", ["team", "none"])
async def test_pods_of_a_label_count_wherever_they_are(label: str) -> None:
    stage = Sharing(DeclaredShare("gpu", minimum={"cpu": "1"}, pod_labels={"team": "gpu"}))

    await stage.try_pods(2, "x", labels={label: "gpu"})

    assert len(stage.placed) == (1 if label == "team" else 2)


async def test_a_tenant_who_edits_labels_of_running_pods_does_not_escape() -> None:
    stage = Sharing(DeclaredShare("gpu", minimum={"cpu": "1"}, pod_labels={"team": "gpu"}))
    (pod,) = await stage.try_pods(1, "x", labels={"team": "gpu"})
    stage.confirm()

    stage.under_test.see(newer(stage.engine.pods[pod.uid], labels={"team": "other"}))
    await stage.try_pods(1, "x", first=1, labels={"team": "gpu"})

    assert stage.placed == ["x-0"]
    assert stage.shares.key_of(stage.engine.pods[pod.uid]) == ShareKey("shares", "gpu")


async def test_a_waiting_pod_that_changes_its_share_waits_for_the_other_one() -> None:
    one = DeclaredShare("one", minimum={"cpu": "1"}, pod_labels={"team": "one"})
    two = DeclaredShare("two", minimum={"cpu": "1"}, pod_labels={"team": "two"})
    stage = Sharing(one, two)
    running = stage.pod("running", labels={"team": "two"})
    await stage.try_pod("first", labels={"team": "one"})
    moved = await stage.try_pod("moved", labels={"team": "one"})
    stage.under_test.see(newer(moved, labels={"team": "two"}))

    await stage.end(running)

    assert stage.placed == ["first", "moved"]


async def test_namespaces_are_selected_by_labels_which_may_change() -> None:
    selector = LabelSelector(match_expressions=(LabelSelectorRequirement("team", IN, ("a",)),))
    stage = Sharing(DeclaredShare("team", minimum={"cpu": "1"}, namespace_selector=selector))
    see = stage.engine.object_handlers.object_changed
    see(NAMESPACE, namespace("x"))
    await stage.try_pods(1, "x")
    assert stage.used("team") == 0

    see(NAMESPACE, namespace("x", team="a"))
    await stage.try_pods(1, "x", first=1)

    assert stage.used("team") == 1000
    assert stage.placed == ["x-0"]


async def test_space_that_was_kept_for_a_pod_which_belongs_to_another_share_now_goes_to_the_next() -> None:
    one, other = (
        DeclaredShare(name, minimum={"cpu": "1"}, namespace_selector=LabelSelector(match_labels={name: "yes"}))
        for name in ("one", "other")
    )
    stage = Sharing(one, other)
    see = stage.engine.object_handlers.object_changed
    see(NAMESPACE, namespace("moves", one="yes"))
    see(NAMESPACE, namespace("stays", one="yes"))
    (running,) = await stage.try_pods(1, "stays")
    await stage.try_pods(1, "moves")
    await stage.try_pods(1, "stays", first=1)

    stage.delete(running)
    see(NAMESPACE, namespace("moves", other="yes", third="label"))
    await stage.schedule()
    await stage.schedule()

    assert stage.placed == ["moves-0", "stays-1"]


async def test_declared_shares_come_before_elastic_quotas() -> None:
    stage = Sharing(DeclaredShare("all", minimum={"cpu": "1"}, namespaces=("a",)))
    stage.quota("a", minimum={"cpu": "8"})

    assert stage.shares.key_of(a_pod("p", namespace="a")) == ShareKey("shares", "all")


@pytest.mark.parametrize(
    ("share", "problem"),
    [
        (DeclaredShare("bad", "absent", namespaces=("a",)), 'its parent "absent" does not exist'),
        (DeclaredShare("bad", "bad", namespaces=("a",)), "its parents form a cycle: bad → bad"),
        (DeclaredShare("bad", minimum={"cpu": "-1"}, namespaces=("a",)), "its minimum of cpu is -1000: must be from"),
    ],
    ids=["absent parent", "cycle", "negative"],
)
async def test_a_share_that_makes_no_sense_costs_its_own_pods_alone(share: DeclaredShare, problem: str) -> None:
    stage = Sharing(share, DeclaredShare("good", minimum={"cpu": "1"}, namespaces=("b",)))
    (bad,) = stage.pods(1, "a")

    await stage.try_pods(1, "b")

    assert stage.placed == ["b-0"]
    assert problem in stage.note(bad)


@pytest.mark.parametrize(("priority", "placed"), [(0, ["old"]), (1, ["new"])])
async def test_a_pod_that_comes_now_does_not_overtake_one_that_is_woken_for_the_same_space(
    priority: int, placed: list[str]
) -> None:
    stage = Sharing(DeclaredShare("one", maximum={"cpu": "1"}, namespaces=("a", "b")))
    running = stage.pod("running", node_name="n")
    stage.pod("old")
    await stage.schedule(0)  # it is refused, and has to pause

    stage.delete(running)
    stage.pod("new", namespace="b", priority=priority)
    await stage.schedule(0)

    assert stage.placed == placed


async def test_a_nominated_pod_counts_for_one_that_is_as_important_though_it_borrowed_when_it_was_nominated() -> None:
    stage = Sharing(DeclaredShare("team", minimum={"cpu": "2"}, namespaces=("a",)))
    running = stage.pods(2, node_name="n")
    stage.engine.nominator.add(a_pod("nominated", namespace="a", requests={"cpu": "1"}), "n")
    pod = a_pod("pod", namespace="a", requests={"cpu": "1"})
    assert stage.shares.refusal(pod) is not None

    stage.delete(running[0])

    assert stage.shares.refusal(pod) is not None


async def test_of_two_woken_pods_the_first_starts_if_another_scheduler_takes_the_space_of_one() -> None:
    company = DeclaredShare("company", minimum={"cpu": "1"})
    stage = Sharing(company, DeclaredShare("team", "company", minimum={"cpu": "2"}, namespaces=("a",)))
    large = stage.pod("large", node_name="n", requests={"cpu": "2"})
    stage.pod("small", node_name="n")
    for name in ("first", "second"):
        stage.pod(name)
        stage.clock.advance(1)
    await stage.schedule()
    stage.delete(large)

    stage.pod("of-another-scheduler", node_name="n")
    stage.engine.queue.activate(["a/first"])
    await stage.schedule(0)

    assert stage.placed == ["first", "of-another-scheduler", "small"]


async def test_a_nomination_ends_where_quota_refuses_the_pod_and_nobody_is_evicted_for_it() -> None:
    stage = Sharing(DeclaredShare("team", minimum={"cpu": "1"}, namespaces=("a",)))
    stage.pods(1, node_name="n")
    pod = newer(stage.pod("nominated"), nominated_node_name="n")
    stage.under_test.see(pod)

    await stage.schedule()

    assert stage.engine.nominator.node_of(pod.uid) == ""
    assert stage.where(pod) == "unschedulable"


async def test_a_nominated_pod_that_is_as_important_counts() -> None:
    stage = Sharing(DeclaredShare("one", minimum={"cpu": "1"}, namespaces=("a", "b")))
    stage.engine.nominator.add(a_pod("nominated", namespace="b", priority=1, requests={"cpu": "1"}), "n")

    assert stage.shares.refusal(a_pod("lower", namespace="a", requests={"cpu": "1"})) is not None
    assert stage.shares.refusal(a_pod("higher", namespace="a", priority=2, requests={"cpu": "1"})) is None
    assert stage.used("one") == 0


class Counting(DeclaredShares):
    """Notes for which namespaces it was asked."""

    def __init__(self, *shares: DeclaredShare) -> None:
        super().__init__(shares, ObjectStore())
        self.asked: list[str] = []

    def find(self, namespace: str, said: Hashable) -> str:
        self.asked.append(namespace)
        return super().find(namespace, said)


def test_pods_that_are_listed_before_the_first_decision_are_looked_up_once_a_tenant() -> None:
    adapter = Counting(DeclaredShare("red", minimum={"cpu": 9}, namespaces=("red",)))
    shares = AdaptedShares(Nominator(EventStream()))
    shares.use([Ledger(adapter)], tuple)

    for number in range(5):
        shares.usage.add(a_pod(f"p{number}", namespace="red", node_name="n", requests={"cpu": "1"}))

    assert adapter.asked == ["red"]
    assert shares.ledgers[0].used("red") == {"cpu": 5000}
