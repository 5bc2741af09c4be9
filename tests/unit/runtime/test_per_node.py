import numpy as np
import pytest

from scheduler import framework as fw
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes.nodes import NodeInfo
from scheduler.framework.status import Code, Status
from scheduler.runtime.answers.pod_classes import PodClass
from scheduler.runtime.answers.store import AnswerStore
from scheduler.runtime.filter_outcome import FilterOutcome
from scheduler.runtime.filtering import Filtering
from scheduler.runtime.guards.return_values import MAY_ANSWER
from scheduler.runtime.per_node import MAX_STATUSES, PerNodeFilter, PerNodeScore
from scheduler.runtime.preemption.dry_run import DryRuns
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.nominator import Nominator
from scheduler.testing import a_node, a_pod
from tests.fakes import plugin_calls
from tests.unit.plugins.cluster import a_cluster, every_row


class Says(fw.FilterPlugin):
    """Answers what it was told for each node, and writes down which nodes it was asked about."""

    name = "Says"

    def __init__(self, **answers: Status) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: NodeInfo) -> fw.Status | None:
        self.asked.append(node.name)
        return self.answers.get(node.name)


class Chatty(fw.FilterPlugin, fw.SignPlugin):
    """Refuses every node with a reason that names the pod and the node."""

    name = "Chatty"
    aspects = fw.Aspect.NAME

    def sign(self, pod: fw.Pod) -> str:
        return pod.name

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: NodeInfo) -> fw.Status | None:
        return fw.unschedulable(f"{pod.name} dislikes {node.name}")


class Length(fw.ScorePlugin):
    name = "Length"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: NodeInfo) -> int:
        return len(node.name)


def codes_of(numbered: PerNodeFilter, table: NodeTable, *rows: int, pod: fw.Pod | None = None) -> list[int]:
    asked = np.array(rows, np.intp) if rows else every_row(table)
    codes = numbered.filter_nodes(CycleState(), pod or a_pod(), table, asked)
    assert codes.dtype == np.int32
    return [int(code) for code in codes]


NO = fw.pending("no")
MAY = f"it may answer {MAY_ANSWER['Filter']}"


def with_gaps() -> NodeTable:
    """Rows: a node, a free one, a node, a placeholder."""
    table = a_cluster(a_node("a"), a_node("gone"), a_node("ccc"), pods={"late": [a_pod("orphan")]})
    table.remove_node("gone")
    return table


def test_equal_refusals_share_a_code_and_a_node_that_passes_has_none() -> None:
    table = a_cluster(*(a_node(name) for name in "abcde"))
    said = {"a": fw.unschedulable("full"), "c": fw.unresolvable("full"), "d": fw.unschedulable("full"), "e": NO}
    numbered = PerNodeFilter(Says(**said))

    codes = codes_of(numbered, table)

    assert codes == [1, 0, 2, 1, 3]
    for name, status in said.items():
        assert numbered.status_of(CycleState(), a_pod(), codes["abcde".index(name)]) == status


def test_codes_keep_their_meaning_from_pod_to_pod() -> None:
    table = a_cluster(a_node("a"), a_node("b"))
    numbered = PerNodeFilter(Chatty())
    first = codes_of(numbered, table, pod=a_pod("p"))

    codes_of(numbered, table, pod=a_pod("q"))

    assert codes_of(numbered, table, pod=a_pod("p")) == first
    assert numbered.status_of(CycleState(), a_pod("p"), first[1]).message == "p dislikes b"


def test_only_the_rows_that_were_asked_for_get_an_answer() -> None:
    table = a_cluster(*(a_node(name) for name in "abcd"))
    plugin = Says(b=fw.unschedulable("no"), c=fw.unschedulable("no"))

    codes = codes_of(PerNodeFilter(plugin), table, 0, 1, 3)

    assert plugin.asked == ["a", "b", "d"]
    assert [bool(code) for code in codes] == [False, True, False]


def test_rows_that_are_not_in_use_are_not_asked() -> None:
    plugin = Says(ccc=fw.unschedulable("no"))

    codes = codes_of(PerNodeFilter(plugin), with_gaps())

    assert plugin.asked == ["a", "ccc"]
    assert codes == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("status", "detail"),
    [
        pytest.param(fw.SKIP, f"filter answered Skip; {MAY}", id="skip"),
        pytest.param(Status(Code.SUCCESS), f"filter answered Success; {MAY}", id="success"),
        pytest.param(Status(Code.WAIT), f"filter answered Wait; {MAY}", id="wait"),
        pytest.param(Status(Code.ERROR, ("disk on fire",)), "disk on fire", id="error"),
    ],
)
def test_a_status_that_is_no_refusal_breaks_the_contract(status: Status, detail: str) -> None:
    table = a_cluster(a_node("a"))

    with pytest.raises(PluginError) as raised:
        codes_of(PerNodeFilter(Says(a=status)), table)

    assert str(raised.value) == f'running "Says" filter plugin: {detail}'
    assert (raised.value.plugin, raised.value.point) == ("Says", "Filter")


def test_a_numbering_is_full_at_the_limit_and_starts_again_when_cleared() -> None:
    table = a_cluster(*(a_node(f"n{i}") for i in range(100)))
    numbered = PerNodeFilter(Chatty())
    for i in range(MAX_STATUSES // 100 - 1):
        codes_of(numbered, table, pod=a_pod(f"p{i}"))
    almost = numbered.is_full

    codes_of(numbered, table, pod=a_pod("last"))
    at_limit = numbered.is_full
    numbered.clear()

    assert (almost, at_limit, numbered.is_full) == (False, True, False)
    assert codes_of(numbered, table, 7, pod=a_pod("new")) == [1]
    assert numbered.status_of(CycleState(), a_pod("new"), 1).message == "new dislikes n7"


def test_stored_codes_are_dropped_together_with_the_numbering() -> None:
    table = a_cluster(*(a_node(f"n{i}") for i in range(100)))
    store = AnswerStore(table)
    filtering = Filtering([Chatty()], [], store, Nominator(), DryRuns(), plugin_calls())
    numbered = filtering.steps[0].per_node
    assert numbered is not None

    def run(name: str) -> FilterOutcome:
        return filtering.run(CycleState(), a_pod(name), table.in_use.copy(), PodClass(name, {"Chatty": name}))

    run("first")
    # Codes of two pods that were stored before the numbering starts again, and mean something else after it.
    names = [f"p{i}" for i in range(MAX_STATUSES // 100 - 1)]
    for name in names:
        run(name)
    was_full = numbered.is_full
    for name in ("new", names[-1], "first"):
        status = run(name).status(CycleState(), a_pod(name), 3)

        assert was_full
        assert not numbered.is_full
        assert status == fw.unschedulable(f"{name} dislikes n3").by("Chatty")


def test_scores_are_in_the_order_of_the_rows_and_0_where_there_is_no_node() -> None:
    table = with_gaps()

    scores = PerNodeScore(Length()).score_nodes(CycleState(), a_pod(), table, every_row(table))
    some = PerNodeScore(Length()).score_nodes(CycleState(), a_pod(), table, np.array([2, 3]))

    assert scores.dtype == np.int64
    assert scores.tolist() == [1, 0, 3, 0]
    assert some.tolist() == [3, 0]
