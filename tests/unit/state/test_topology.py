"""Domains of a label, and sums of pods over them that follow every change of pods and labels."""

from random import Random

import numpy as np
import pytest

from scheduler.api.label_selectors import EVERYTHING
from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.framework.pods import PodMatch, TermKind
from scheduler.state.nodes.count_columns import DOMAIN_ROWS, MAX_TOPOLOGIES
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node, a_pod

ALL = PodMatch(None, EVERYTHING)
ZONES = ("a", "b", "c")


def zones_with(nodes: int = 64) -> NodeTable:
    """Nodes in three zones, with a pod each; large enough for sums over zones to be kept."""
    table = NodeTable()
    for number in range(nodes):
        table.set_node(a_node(f"n{number}", labels={"zone": ZONES[number % 3], "host": f"n{number}"}))
        table.add_pod(f"n{number}", shy_pod(f"p{number}"))
    return table


def shy_pod(name: str) -> Pod:
    """A pod that keeps away from pods of its zone."""
    term = {"topologyKey": "zone", "labelSelector": {}}
    terms = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod_from_dict({"metadata": {"name": name, "uid": name, "namespace": "x"}, "spec": {"affinity": terms}})


def sums(table: NodeTable, key: str = "zone", match: PodMatch = ALL) -> dict[str, int]:
    topology = table.topology(key)
    found = table.pods.matching(match).sums(topology)
    assert found[0] == 0
    return {topology.values[code]: int(found[code]) for code in topology.distinct}


def recounted(table: NodeTable, key: str = "zone") -> dict[str, int]:
    found: dict[str, int] = {}
    for name in table.node_names():
        node = table.node(name)
        value = None if node is None else (node.metadata.labels or {}).get(key)
        if value is not None:
            found[value] = found.get(value, 0) + len(table.pods_on(name))
    return found


def test_a_topology_says_how_many_rows_are_labelled_and_which_codes_are_in_use() -> None:
    table = zones_with(4)
    table.set_node(a_node("bare"))

    zones, hosts = table.topology("zone"), table.topology("host")

    assert (zones.labelled, zones.is_one_each, len(zones.distinct)) == (4, False, 3)
    assert (hosts.labelled, hosts.is_one_each, len(hosts.distinct)) == (4, True, 4)
    assert [zones.values[code] for code in zones.distinct] == ["a", "b", "c"]


def test_sums_follow_pods_that_come_and_go_and_what_ifs() -> None:
    table = zones_with(9)
    before = sums(table)

    more = shy_pod("more")
    table.add_pod("n0", more)
    added = sums(table)
    with table.what_if(0, remove=[more]):
        within = sums(table)
    table.remove_pod("n0", more)

    assert before == {"a": 3, "b": 3, "c": 3}
    assert added == {"a": 4, "b": 3, "c": 3}
    assert within == sums(table) == before


def test_sums_of_terms_follow_their_pods() -> None:
    table = zones_with(64)
    [(key, terms)] = table.pods.terms_towards(((TermKind.REQUIRED_ANTI_AFFINITY, 1),), "x", {}, {})
    zones = table.topology(key)
    assert terms.sums(zones).sum() == 64

    table.add_pod("n0", shy_pod("more"))

    assert terms.sums(zones).sum() == 65
    assert terms.sums(zones) is terms.sums(zones)


def test_sums_are_right_when_the_table_forgets_the_key_and_then_grows() -> None:
    table = zones_with(64)
    sums(table)
    for _ in range(2):
        table.forget_idle()

    for number in range(64, 200):
        table.set_node(a_node(f"n{number}", labels={"zone": ZONES[number % 3]}))
        table.add_pod(f"n{number}", shy_pod(f"p{number}"))

    assert sums(table) == recounted(table)
    table.check_invariants()


def test_sums_are_kept_for_a_few_topologies_of_few_domains_only() -> None:
    table = zones_with(64)
    column = table.pods.matching(ALL)
    table.set_node(a_node("n0", labels={f"key-{number}": "" for number in range(MAX_TOPOLOGIES + 3)}))

    for number in range(MAX_TOPOLOGIES + 3):
        column.sums(table.topology(f"key-{number}"))
    column.sums(table.topology("host"))

    (sums,) = [column.stored_sums for _, column in table.pods._matches.items()]
    assert len(sums) == MAX_TOPOLOGIES
    assert all(len(each.by_code.values) * DOMAIN_ROWS <= 64 for each in sums)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_sums_are_those_of_a_recount(seed: int) -> None:
    random, table = Random(seed), NodeTable(64)
    running: dict[str, tuple[str, Pod]] = {}
    for step in range(400):
        name = f"n{random.randrange(70)}"
        match random.randrange(5):
            case 0 | 1:
                labels = {key: random.choice(ZONES) for key in ("zone", "rack") if random.random() < 0.8}
                table.set_node(a_node(name, labels=labels))
            case 2:
                table.remove_node(name)
            case 3 if running:
                uid = random.choice(list(running))
                table.remove_pod(*running.pop(uid))
            case _:
                pod = random.choice((shy_pod, a_pod))(f"p{step}")
                table.add_pod(name, pod)
                running[pod.uid] = name, pod
        for key in ("zone", "rack"):
            assert sums(table, key) == recounted(table, key)
            codes = table.label_codes(key)
            topology = table.topology(key)
            assert topology.labelled == np.count_nonzero(codes)
            assert topology.distinct.tolist() == sorted(set(codes.tolist()) - {0})
            assert topology.is_one_each == (len(topology.distinct) == topology.labelled)
    table.check_invariants()
