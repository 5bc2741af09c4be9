"""Sums over topology domains."""

import numpy as np
import pytest

from plugins.shared.topology_domains import NO_DOMAIN, DomainCounts, Domains
from scheduler.state.nodes.count_columns import CountColumn
from scheduler.state.nodes.live_column import LiveColumn
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.pod_index import MatchCounts
from tests.unit.plugins.cluster import a_cluster, every_row
from tests.unit.plugins.pod_affinity import HOST, ZONE, a_zoned_node


def three_nodes() -> NodeTable:
    """Two nodes in one zone, one in none."""
    return a_cluster(a_zoned_node("a", "z1"), a_zoned_node("b", "z1"), a_zoned_node("c", None))


def column(*counts: int) -> MatchCounts:
    return MatchCounts(CountColumn(LiveColumn(np.array(counts, np.int32))), len(counts))


def sums_at(domains: Domains, counts: MatchCounts, nodes: NodeTable) -> list[int]:
    sums = domains.sums(counts).astype(np.int64)
    found: list[int] = domains.at(sums, every_row(nodes)).tolist()
    return found


def matched(counts: DomainCounts, key: str, nodes: NodeTable) -> list[bool]:
    """Return where there is a match; asked for all rows at once and one by one, the answers are the same."""
    found: list[bool] = counts.matched_at(key, every_row(nodes)).tolist()
    assert found == [counts.matched_at_row(key, row) for row in range(nodes.size)]
    return found


def test_nodes_with_the_same_label_value_are_summed_and_those_without_left_out() -> None:
    nodes = three_nodes()
    domains = Domains(nodes, ZONE)

    assert not domains.are_rows
    assert sums_at(domains, column(1, 2, 4), nodes) == [3, 3, 0]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param(("z1", "z2", "z3"), [1, 2, 4], id="all have the label"),
        pytest.param(("z1", None, "z3"), [1, 0, 4], id="one has not"),
        pytest.param((None, None, None), [0, 0, 0], id="none has"),
    ],
)
def test_where_each_node_is_a_domain_of_its_own_the_counts_are_the_sums(
    labels: tuple[str | None, ...], expected: list[int]
) -> None:
    nodes = a_cluster(*(a_zoned_node(name, label) for name, label in zip("abc", labels, strict=True)))
    domains, counts = Domains(nodes, ZONE), column(1, 2, 4)

    sums = domains.sums(counts)

    assert domains.are_rows
    assert sums_at(domains, counts, nodes) == expected
    assert [domains.number(row) for row in range(3)] == [row if labels[row] else NO_DOMAIN for row in range(3)]
    sums[0] += 1
    assert counts.counts.tolist() == [1, 2, 4]  # the sums are the caller's own


def test_a_match_is_one_for_its_whole_domain() -> None:
    nodes = three_nodes()
    counts = DomainCounts(nodes, [(ZONE, column(1, 0, 5)), (HOST, column(0, 0, 2)), (ZONE, column(0, 3, 0))])

    assert counts.total == 6
    assert matched(counts, ZONE, nodes) == [True, True, False]
    assert matched(counts, HOST, nodes) == [False, False, True]
    assert matched(counts, "absent", nodes) == [False, False, False]
    found = counts.any_at(every_row(nodes))
    assert found is not None
    assert found.tolist() == [counts.any_at_row(row) for row in range(3)] == [True, True, True]


def test_a_copy_moves_by_itself() -> None:
    nodes = three_nodes()
    counts = DomainCounts(nodes, [(ZONE, column(1, 0, 0))])
    copy = counts.clone()

    copy.move(ZONE, 1, -1)
    copy.move(HOST, 2, 1)
    copy.move(ZONE, 2, 1)  # it has no zone: nothing to count

    assert (counts.total, matched(counts, ZONE, nodes)) == (1, [True, True, False])
    assert (copy.total, matched(copy, ZONE, nodes)) == (1, [False, False, False])
    assert matched(copy, HOST, nodes) == [False, False, True]
    copy.move(HOST, 2, -1)
    assert copy.any_at(every_row(nodes)) is None


def test_counts_stay_right_when_the_table_forgets_a_key_and_numbers_its_values_anew() -> None:
    nodes = a_cluster(a_zoned_node("a", "z1"), a_zoned_node("b", "z2"))
    nodes.label_codes(ZONE)
    nodes.set_node(a_zoned_node("a", "z3"))
    counts = DomainCounts(nodes, [(ZONE, column(1, 0))])
    before = nodes.label_codes(ZONE).tolist()

    for _ in range(2):
        nodes.forget_idle()

    assert nodes.label_codes(ZONE).tolist() != before
    assert matched(counts, ZONE, nodes) == [True, False]
