"""The arguments of CapacityScheduling, and what it watches for them."""

import pytest

from plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from scheduler import framework as fw
from scheduler.framework.arguments import parse_arguments


def read(**arguments: object) -> tuple[CapacityScheduling | None, list[str]]:
    problems: list[str] = []
    return parse_arguments(CapacityScheduling, arguments, "args", problems), problems


def test_a_tree_is_read_as_files_spell_it() -> None:
    share = {
        "name": "a",
        "parent": "all",
        "minimum": {"cpu": 2, "memory": "1Gi"},
        "borrowingLimit": {"cpu": "500m"},
        "namespaceSelector": {"matchLabels": {"team": "a"}},
        "podLabels": {"tier": "batch"},
    }

    plugin, problems = read(elasticQuotas=False, shares=[{"name": "all"}, share])

    assert problems == []
    assert plugin is not None
    assert [(each.name, each.parent) for each in plugin.shares] == [("all", ""), ("a", "all")]
    assert plugin.shares[1].borrowing_limit == {"cpu": "500m"}


@pytest.mark.parametrize(
    ("share", "problem"),
    [
        ({"name": ""}, "args.shares[1].name: Required value"),
        ({"name": "all"}, 'args.shares[1].name: Duplicate value: "all"'),
        ({"name": "a", "weight": -1}, "args.shares[1].weight: Invalid value: -1: must not be negative"),
        (
            {"name": "a", "minimum": {"cpu": "lots"}},
            "args.shares[1].minimum: resources {'cpu': 'lots'}: not a quantity",
        ),
        (
            {"name": "a", "maximum": {"cpu": "10E"}},
            'args.shares[1].maximum[cpu]: Invalid value: "10E": must fit into 64 bits',
        ),
        ({"name": "a", "minimun": {}}, "args.shares[1].minimun: unknown field; did you mean 'minimum'?"),
        (
            {"name": "a", "namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "Like"}]}},
            "args.shares[1].namespaceSelector:",
        ),
    ],
    ids=["no name", "twice", "weight", "quantity", "too large", "unknown field", "selector"],
)
def test_what_cannot_be_read_is_refused_with_its_place(share: dict[str, object], problem: str) -> None:
    _, problems = read(shares=[{"name": "all"}, share])

    assert len(problems) == 1
    assert problems[0].startswith(problem)


def test_elastic_quotas_are_watched_only_if_they_count() -> None:
    assert fw.ELASTIC_QUOTA in CapacityScheduling().reads
    assert CapacityScheduling().writes

    without = CapacityScheduling(elastic_quotas=False)

    assert (without.reads, without.writes) == ((fw.NAMESPACE,), ())
