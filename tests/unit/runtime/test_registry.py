from dataclasses import dataclass
from typing import ClassVar

import pytest

from scheduler import framework as fw
from scheduler.framework.errors import ConfigError
from scheduler.runtime.registry import merge
from tests.unit.runtime.fakes import Filter, Score, named

MINE = named("Mine", Filter)
THEIRS = named("Theirs", Score)


def test_both_registries_are_in_the_merged_one() -> None:
    merged = merge({"Theirs": THEIRS}, {"Mine": MINE})

    assert merged == {"Theirs": THEIRS, "Mine": MINE}


def test_neither_registry_is_changed_by_merging() -> None:
    in_tree, out_of_tree = {"Theirs": THEIRS}, {"Mine": MINE}

    merge(in_tree, out_of_tree)

    assert (in_tree, out_of_tree) == ({"Theirs": THEIRS}, {"Mine": MINE})


def test_a_name_cannot_stand_for_two_plugins() -> None:
    with pytest.raises(ConfigError, match="plugin 'Mine' is in the registry already"):
        merge({"Mine": MINE}, {"Mine": named("Mine", Score)})


def test_a_plugin_is_registered_under_its_own_name() -> None:
    with pytest.raises(ConfigError, match="'Ours' is registered under another name than its own, 'Mine'"):
        merge({}, {"Ours": MINE})


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        merge({"B": named("B", Filter), "A": named("A", Filter)}, {"A": THEIRS, "B": named("B", Score)})

    assert caught.value.problems == (
        "plugin 'A' is in the registry already",
        "plugin 'B' is in the registry already",
        "plugin 'A' is registered under another name than its own, 'Theirs'",
    )


def test_a_plugin_that_expects_its_handle_as_a_field_is_told_where_it_comes_now() -> None:
    @dataclass
    class Old(fw.FilterPlugin):
        name: ClassVar[str] = "Old"
        handle: fw.Handle

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
            return None

    with pytest.raises(ConfigError, match=r"'Old' has a field `handle`, .*: take the handle in `start"):
        merge({}, {"Old": Old})
