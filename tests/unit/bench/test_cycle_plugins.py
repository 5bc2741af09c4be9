"""The forms of a Filter that `make bench-cycle` measures say the same, and are measured."""

import pytest

from scheduler.testing import a_cluster, a_node, a_pod, check_plugin, schedule
from tests.bench.cycle_numa import STRATEGIES, print_numa
from tests.bench.cycle_plugins import FORMS, GPU, GPU_NODE, Form, print_plugins

NODES = a_cluster(a_node("plain"), a_node("gpu", allocatable={GPU: 2}))


@pytest.mark.parametrize("form", FORMS, ids=[form.label for form in FORMS])
def test_every_form_keeps_pods_without_gpus_from_gpu_nodes(form: Form) -> None:
    decision = schedule(form.plugin(), a_pod(), NODES)

    assert decision.refusals == {"gpu": GPU_NODE.by(form.plugin.name)}
    check_plugin(form.plugin(), [a_pod(), a_pod("gpu", requests={GPU: 1})], NODES)


def test_a_row_is_printed_for_each_form(capsys: pytest.CaptureFixture[str]) -> None:
    print_plugins(3, nodes=10)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("A Filter of one's own, 10 nodes")
    assert [line[:36].strip() for line in lines[3:6]] == [form.label for form in FORMS]


def test_a_row_is_printed_for_each_strategy_of_numa_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    print_numa(3, nodes=10)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("NodeResourceTopologyMatch, 10 nodes with two NUMA nodes each")
    assert [line[:36].strip() for line in lines[3:5]] == list(STRATEGIES)
