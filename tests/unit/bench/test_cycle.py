from collections import Counter

import pytest

from scheduler.framework.events import PERSISTENT_VOLUME
from tests.bench.cycle import main, mark, missing
from tests.bench.cycle_cases import CASES, Case
from tests.bench.cycle_costs import Costs, costs
from tests.bench.cycle_crowd import APPS, Crowd
from tests.bench.cycle_world import ZONE, World


def case(name: str) -> Case:
    return next(each for each in CASES if name in each.name)


def test_both_tables_are_printed_for_tiny_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--nodes", "3", "--pods", "4", "--clusters", "10:40", "20:80", "--growing-nodes", "--growing-pods"]

    main([*sizes, "--decisions", "2", "--plugins", "0", "--case", "preferred affinity, zone"])

    printed = capsys.readouterr().out
    assert printed.count("preferred affinity, zone") == 2
    assert "10 nodes with 40 pods of 50 apps" in printed
    assert "growth" in printed


@pytest.mark.parametrize("name", ["system default", "100 namesp", "volume", "preemption"])
def test_a_case_is_decided_if_its_plugins_are_there(name: str) -> None:
    each = case(name)
    if missing(each):
        pytest.skip(f"needs {missing(each)}")

    found = costs(each, (120, 240), 2)

    assert len(found.alone) == 2
    assert len(found.in_turn) == APPS


def test_a_plugin_that_is_not_there_is_named() -> None:
    assert missing(Case("x", needs=("NodePorts", "Tomorrow"))) == ["Tomorrow"]


def test_pods_of_one_app_are_spread_over_nodes_and_namespaces() -> None:
    world, crowd = World(100), Crowd(case("affinity, zone, 100 namespaces"), 100, 200)

    crowd.settle(world, coming=0)

    pods = [pod for pod in world.engine.pods.values() if pod.labels["app"] == "app-7"]
    assert len({pod.node_name for pod in pods}) == len(pods) == 4
    assert len({pod.namespace for pod in pods}) == 4
    assert Counter(len(world.engine.cache.table.info(row).pods) for row in range(100)) == {2: 100}


def test_a_running_pods_volume_is_in_the_zone_of_its_node() -> None:
    world, crowd = World(7), Crowd(case("volume"), 7, 21)
    crowd.settle(world, coming=1)
    if PERSISTENT_VOLUME not in world.engine.watched:
        pytest.skip("no plugin reads volumes")
    volumes = {each.name: each for each in world.engine.objects.list(PERSISTENT_VOLUME)}

    for number, pod in enumerate(world.engine.pods.values()):
        row = world.engine.cache.table.row_of(pod.node_name)
        assert row is not None
        zone = world.engine.cache.table.info(row).labels[ZONE]
        (term,) = volumes[f"pv-{number}"].spec.node_affinity.required.node_selector_terms
        assert term.match_expressions[0].values == (zone,)


@pytest.mark.parametrize(
    ("alone", "in_turn", "limit", "expected"),
    [(1.0, 1.0, None, ""), (1.0, 1.0, 1.0, ""), (1.1, 1.0, 1.0, "  MISSED"), (1.0, 1.1, 1.0, "  missed in turn")],
)
def test_a_median_above_the_aim_is_marked(alone: float, in_turn: float, limit: float | None, expected: str) -> None:
    cost = Costs(set_up=0, first=0, alone=[alone / 1e3], together=[alone / 1e3], in_turn=[in_turn / 1e3])

    assert mark(cost, limit) == expected
