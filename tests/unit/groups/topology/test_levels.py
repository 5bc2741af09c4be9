"""Groups that name a level of a topology, decided about by a whole engine."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from scheduler import framework as fw
from scheduler.api.groups.coscheduling import POD_GROUP_LABEL
from scheduler.api.objects import GroupAnnotations, Taint
from scheduler.cycle.steps import in_one_go
from scheduler.groups.group_events import GroupDecided
from scheduler.groups.topology.levels import TRIES
from scheduler.testing import a_node, a_pod
from tests.fakes import settle
from tests.fakes.world import Unschedulable
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.groups.coscheduling import Coscheduled
from tests.unit.groups.topology.clusters import BLOCK, HOST, LEVELS, RACK

INDEX = "batch.kubernetes.io/job-completion-index"


class Levels(Coscheduled):
    """Blocks of racks, of nodes with two cores each; `block/rack` → number of nodes."""

    def __init__(
        self,
        racks: Mapping[str, int],
        *plugins: type[fw.Plugin],
        required: str = "",
        preferred: str = "",
        levels: Sequence[str] = LEVELS,
    ) -> None:
        super().__init__(*plugins, nodes=0)
        self.engine.group_parts.levels._configured = levels
        self.decisions: list[GroupDecided] = []
        self.engine.stream.subscribe({GroupDecided: self.decisions.append})
        self.wishes = GroupAnnotations(required_topology=required, preferred_topology=preferred)
        for path, count in racks.items():
            for number in range(count):
                self.add_node(path, number)

    def of(self, minimum: int, pods: int = 0) -> None:
        """Let the watch show the group, and so many pods."""
        self.create("g", minimum, self.wishes, pods)

    def add_node(self, path: str, number: int, **fields: Any) -> None:
        block, rack = path.split("/")
        name = f"{rack}-{number}"
        labels = {BLOCK: block, RACK: rack, HOST: name}
        self.under_test.see(a_node(name, labels=labels, **{"cpu": "2", **fields}))

    def occupy(self, node: str, cores: int = 1) -> None:
        self.under_test.see(a_pod(f"on-{node}", node_name=node, requests={"cpu": str(cores)}))

    def leave(self, node: str) -> None:
        """Let what occupies a node be gone."""
        self.engine.handlers.pod_deleted(self.engine.pods[f"default/on-{node}"])

    def ranked(self, count: int) -> None:
        """Let pods of the group come, those of the highest rank first."""
        for rank in reversed(range(count)):
            self.see([f"g-{rank}"], labels={POD_GROUP_LABEL: "g", INDEX: str(rank)})

    def confirm(self) -> None:
        """Let the watch show what was bound."""
        for pod in tuple(self.engine.pods.values()):
            if not pod.node_name and pod.name in self.bound:
                self.under_test.see(newer(pod, node_name=self.bound[pod.name]))

    @property
    def places(self) -> dict[str, int]:
        """Rack → how many pods are bound to nodes of it."""
        return Counter(node.partition("-")[0] for node in self.bound.values())

    @property
    def racks(self) -> set[str]:
        return set(self.places)

    @property
    def text(self) -> str:
        """What the group's last decision says."""
        return self.decisions[-1].decision.message

    @property
    def note(self) -> str:
        return self.under_test.world.written(Unschedulable)[-1].message


WIDE = {"a/r1": 1, "b/r2": 2, "b/r3": 1, "c/r4": 3}
IN_RACK, NEAR = {"required": RACK}, {"preferred": RACK}


@pytest.mark.parametrize(
    ("racks", "level", "pods", "places"),
    [
        pytest.param(WIDE, NEAR, 3, {"r2": 3}, id="the smallest rack that holds it"),
        pytest.param(WIDE, NEAR, 6, {"r4": 6}, id="the only rack that holds it"),
        pytest.param(
            WIDE,
            NEAR,
            7,
            {"r1": 1, "r2": 4, "r3": 2},
            id="no block: b is filled, the rest goes where it just fits",
        ),
        pytest.param(
            {"a/r1": 1, "b/r2": 3, "c/r3": 2}, NEAR, 8, {"r1": 2, "r2": 6}, id="r2, and the smallest for the rest"
        ),
        pytest.param(
            {"a/r1": 1, "a/r2": 1, "b/r3": 1, "c/r4": 1},
            {"required": BLOCK, "preferred": RACK},
            4,
            {"r1": 2, "r2": 2},
            id="a required block is not left for a preferred rack",
        ),
        pytest.param({"a/r1": 2}, {"preferred": "example.com/row"}, 4, {"r1": 4}, id="a preferred level of no node"),
    ],
)
async def test_where_a_group_goes(
    racks: Mapping[str, int], level: dict[str, str], pods: int, places: dict[str, int]
) -> None:
    groups = Levels(racks, **level)
    groups.of(pods, pods=pods)

    await groups.schedule()

    assert groups.places == places


def full(groups: Levels) -> None:
    groups.occupy("r2-0")
    groups.pods(3)


def tainted(groups: Levels) -> None:
    groups.add_node("a/r2", 2, taints=[Taint(key="broken", effect="NoSchedule")])
    groups.occupy("r2-0", 2)
    groups.pods(3)


def several_shapes(groups: Levels) -> None:
    groups.occupy("r1-0")
    groups.pods(1, requests={"cpu": "2"})
    groups.pods(2, first=1)


def spare(groups: Levels) -> None:
    groups.occupy("r2-0")
    groups.pods(5)


@pytest.mark.parametrize(
    ("come", "places"),
    [
        pytest.param(full, {"r2": 3}, id="to the fullest rack that holds it"),
        pytest.param(tainted, {"r1": 3}, id="not where nodes refuse the members"),
        pytest.param(several_shapes, {"r2": 3}, id="to one rack that holds all its shapes"),
        pytest.param(spare, {"r1": 4}, id="to the rack that holds most of its spare members"),
    ],
)
async def test_a_group_goes_to_a_rack_by_what_is_free(come: Callable[[Levels], None], places: dict[str, int]) -> None:
    groups = Levels({"a/r1": 2, "a/r2": 2}, **IN_RACK)
    groups.of(3)
    come(groups)

    await groups.schedule()

    assert groups.places == places


async def test_nodes_without_the_required_label_take_no_pod_although_a_narrower_level_is_preferred() -> None:
    groups = Levels({"a/r1": 1}, required=RACK, preferred=HOST)
    groups.under_test.see(a_node("plain", labels={HOST: "plain"}, cpu="2"))
    groups.of(2, pods=2)

    await groups.schedule()

    assert groups.places == {"r1": 2}


@pytest.mark.parametrize(
    ("level", "nodes", "text"),
    [
        pytest.param("example.com/row", (), "no node has that label", id="a level of no node"),
        pytest.param(RACK, ("r1-0", "r2-0"), "its pods run in 2: r1, r2", id="torn already"),
        pytest.param(
            RACK, ("bare",), "one of its pods runs on node bare, which has no such label", id="a node without the label"
        ),
    ],
)
async def test_a_group_that_can_be_in_no_domain_says_why(level: str, nodes: Sequence[str], text: str) -> None:
    groups = Levels({"a/r1": 1, "a/r2": 1}, required=level)
    groups.under_test.see(a_node("bare", cpu="2"))
    groups.of(1)
    for number, node in enumerate(nodes):
        groups.pods(1, first=number, node_name=node)

    await groups.try_pods(1, first=len(nodes))

    assert groups.note == f"the pod group requires one domain of {level}, and {text}"
    assert groups.bound == {}


async def test_a_group_that_no_rack_holds_is_refused_without_being_tried() -> None:
    groups = Levels({"a/r1": 2, "a/r7": 3, "b/r3": 2}, required=RACK)
    groups.of(7, pods=7)
    before = groups.engine.cache.table.pods.decision

    await groups.schedule()

    text = f"no domain of {RACK} holds the 7 pods that are needed at once: the nearest, r7, holds 6"
    assert groups.note == text
    assert groups.bound == {}
    assert groups.engine.cache.table.pods.decision == before + 1  # one search for all that are alike


async def test_a_refused_group_is_woken_by_what_helps_any_domain() -> None:
    groups = Levels({"a/r1": 2, "a/r2": 2}, required=RACK)
    groups.occupy("r1-0")
    groups.occupy("r2-0")
    groups.of(4, pods=4)
    await groups.schedule()
    assert groups.bound == {}

    groups.leave("r1-0")
    await groups.later()

    assert groups.racks == {"r1"}


async def test_a_refused_group_is_woken_by_a_node_that_gets_the_label_of_a_rack_and_by_no_other_label() -> None:
    groups = Levels({"a/r1": 1}, required=RACK)
    groups.under_test.see(a_node("bare", cpu="2"))
    groups.of(4, pods=4)
    await groups.schedule()
    await groups.later()

    groups.under_test.see(a_node("bare", cpu="2", labels={"example.com/paint": "red"}))
    assert await groups.schedule() == 0
    groups.under_test.see(a_node("bare", cpu="2", labels={RACK: "r1", BLOCK: "a"}))
    assert await groups.schedule() >= 1

    assert set(groups.bound.values()) == {"r1-0", "bare"}


async def test_pods_on_a_node_that_is_gone_keep_their_rack() -> None:
    groups = Levels({"a/r1": 1, "a/r2": 1}, required=RACK)
    groups.of(1)
    groups.pods(1, node_name="r1-0")
    node = groups.engine.cache.table.node("r1-0")
    assert node is not None
    groups.under_test.handlers.node_deleted(node)

    await groups.try_pods(1, first=1)
    while_gone, note = dict(groups.bound), groups.note
    groups.add_node("a/r1", 0)
    groups.under_test.wait(20)
    await groups.schedule()

    assert while_gone == {}
    assert note.endswith("and one of its pods runs on node r1-0, which does not exist")
    assert groups.bound == {"g-1": "r1-0"}


async def test_neighbouring_ranks_are_near_each_other() -> None:
    groups = Levels({"a/r1": 2, "a/r2": 2}, required=BLOCK)
    groups.of(8)
    groups.ranked(8)

    await groups.schedule()

    nodes = [groups.bound[f"g-{rank}"] for rank in range(8)]
    assert [node.partition("-")[0] for node in nodes] == ["r1"] * 4 + ["r2"] * 4
    assert all(nodes[rank] == nodes[rank + 1] for rank in range(0, 8, 2))


@pytest.mark.parametrize(("required", "preferred"), [(RACK, ""), ("", RACK)])
async def test_a_member_that_comes_later_joins_the_others(required: str, preferred: str) -> None:
    groups = Levels({"a/r1": 2, "a/r2": 2}, required=required, preferred=preferred)
    groups.occupy("r2-0", 2)
    groups.of(2, pods=2)
    await groups.schedule()
    assert groups.racks == {"r2"}
    groups.confirm()
    groups.leave("r2-0")
    groups.occupy("r1-0", 1)  # fuller now than where the others are

    await groups.try_pods(1, first=2)

    assert groups.racks == {"r2"}


@pytest.mark.parametrize(("level", "node"), [({"preferred": RACK}, "r2"), ({"required": RACK}, "")])
async def test_a_member_that_comes_later_goes_elsewhere_only_if_its_level_is_preferred(
    level: dict[str, str], node: str
) -> None:
    groups = Levels({"a/r1": 1, "a/r2": 2}, **level)
    groups.of(2, pods=2)
    await groups.schedule()
    assert groups.racks == {"r1"}
    groups.confirm()

    await groups.try_pods(1, first=2)

    assert groups.bound.get("g-2", "").partition("-")[0] == node


async def test_more_kinds_of_members_than_are_counted_are_placed_all_the_same() -> None:
    groups = Levels({"a/r1": 10, "a/r2": 10}, required=RACK)
    groups.of(20)
    for number in range(20):
        groups.pods(1, first=number, requests={"cpu": f"{500 + number}m"})

    await groups.schedule()

    assert len(groups.bound) == 20
    assert len(groups.racks) == 1


class Moody(fw.FilterPlugin):
    """Refuses pods on nodes of racks that it does not like, for a reason of its own."""

    name = "Moody"
    disliked: frozenset[str] = frozenset()
    asked: int = 0

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return fw.unschedulable("not today") if node.name.partition("-")[0] in type(self).disliked else None


async def test_the_next_domain_is_tried_if_columns_promised_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Moody, "disliked", frozenset({"r1"}))

    groups = Levels({"a/r1": 1, "a/r2": 2}, Moody, required=RACK)
    groups.of(2, pods=2)

    await groups.schedule()

    assert groups.racks == {"r2"}


async def test_a_decision_tries_so_many_domains_and_the_next_attempt_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    racks = [f"r{number:02}" for number in range(TRIES + 2)]
    monkeypatch.setattr(Moody, "disliked", frozenset(racks[:-1]))

    groups = Levels({f"a/{rack}": 1 for rack in racks}, Moody, required=RACK)
    groups.of(2, pods=2)
    # Nodes that take members now are tried first: this one does not, until its pod has gone.
    groups.occupy(f"{racks[-1]}-0", 2)
    await groups.schedule()
    assert groups.bound == {}
    assert f"none of the {TRIES} domains of {RACK} that were tried, of {TRIES + 1}" in groups.text

    groups.leave(f"{racks[-1]}-0")
    await groups.later()

    assert groups.racks == {racks[-1]}


async def test_a_group_that_was_tried_in_vain_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Moody, "disliked", frozenset({"r1", "r2"}))

    groups = Levels({"a/r1": 1, "a/r2": 1}, Moody, required=RACK)
    groups.of(2, pods=2)

    await groups.schedule()

    text = f"the pod group fits in none of the 2 domains of {RACK} with enough free: r1, r2"
    assert groups.text == text
    assert groups.note.startswith("0/1 nodes are available: 1 not today.")


class Broken(fw.FilterPlugin):
    name = "Broken"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        raise ValueError("broken")


async def test_a_plugin_that_fails_costs_the_group_an_attempt_and_nothing_else() -> None:
    groups = Levels({"a/r1": 1}, Broken, required=RACK)
    groups.of(2, pods=2)

    await groups.schedule()

    assert groups.bound == {}
    assert "broken" in groups.text


async def test_the_nearest_miss_is_kept_with_the_decision() -> None:
    groups = Levels({"a/r1": 1, "a/r7": 3}, required=RACK)
    groups.of(8, pods=8)

    await groups.schedule()

    miss = groups.decisions[-1].decision.near_miss
    assert miss is not None
    assert (miss.domain, miss.fits, miss.resource, miss.lacking_nodes, miss.amount_each) == ("r7", 6, "cpu", 1, 2000)


async def test_a_node_that_comes_in_the_middle_has_the_decision_made_again() -> None:
    groups = Levels({"a/r1": 1, "a/r2": 2}, required=RACK)
    groups.of(4, pods=4)
    steps = groups.engine.group_parts.steps(groups.under_test.pop_group(), groups.engine.loop)
    for _ in range(3):
        next(steps)
    groups.add_node("a/r1", 1)  # equally full now, and the first by name

    in_one_go(steps)
    await settle()

    assert groups.racks == {"r1"}
    assert len(groups.bound) == 4


async def test_a_large_gang_costs_a_search_of_all_nodes_and_then_one_of_few_for_each_member() -> None:
    racks, per_rack, pods = 250, 2, 200

    groups = Levels({f"b{rack % 10}/r{rack}": per_rack for rack in range(racks)}, required=RACK)
    for number in range(per_rack):
        groups.add_node("b9/large", number, cpu="200")
    groups.of(pods)
    members = groups.pods(pods)
    framework, nodes = groups.engine.frameworks[PROFILE], racks * per_rack + per_rack
    evaluated = [step._evaluations for step in framework.filtering.steps if step.name == "NodeResourcesFit"]
    decisions = groups.engine.cache.table.pods

    await groups.schedule()

    assert groups.racks == {"large"}
    assert len(groups.bound) == len(members)
    assert decisions.decision <= 1 + pods + per_rack  # one for what is alike, and one more where a node is full
    (rows,) = (each.value for each in evaluated)
    assert rows <= 2 * nodes + 2 * (pods + per_rack)  # all once or twice, and then those that have changed


async def test_pods_are_evicted_in_one_domain_only_and_no_more_than_the_group_needs() -> None:
    groups = Levels({"a/r1": 2, "a/r2": 1}, required=RACK)
    for node in ("r1-0", "r1-1", "r2-0"):
        for number in range(2):
            low = a_pod(f"low-{node}-{number}", node_name=node, priority=-1, requests={"cpu": "1"})
            groups.under_test.see(low)
    groups.of(3)

    await groups.try_pods(3, priority=10)

    evicted = groups.under_test.evicted
    assert [name.startswith("default/low-r1") for name in evicted] == [True] * 3
