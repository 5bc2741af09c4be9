"""What the scheduler refuses at its start, each way to test a plugin refuses, too."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from scheduler import framework as fw
from scheduler.framework.errors import ConfigError
from scheduler.framework.nodes.nodes import Rows
from scheduler.testing import a_cluster, a_node, a_pod, a_scheduler, check_plugin, schedule

Objects = Mapping[str, Iterable[Any]]


class Reads(fw.FilterPlugin):
    name: ClassVar[str] = "Reads"
    reads: ClassVar[Sequence[str]] = ("configmaps.v1.",)

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return None


class ReadsWhatThereIsNot(Reads):
    reads: ClassVar[Sequence[str]] = ("configmaps.v1.core",)


class InBothForms(Reads, fw.FilterNodesPlugin):
    def filter_nodes(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: Rows) -> None:
        return None

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return fw.unresolvable("never")


def schedules(plugin: fw.Plugin, objects: Objects) -> None:
    schedule(plugin, a_pod("a"), a_cluster(a_node("n")), objects)


def checks(plugin: fw.Plugin, objects: Objects) -> None:
    check_plugin(plugin, [a_pod("a")], a_cluster(a_node("n")), objects)


def runs(plugin: fw.Plugin, objects: Objects) -> None:
    with a_scheduler(plugin, objects=objects):
        pass


WAYS = pytest.mark.parametrize("way", [schedules, checks, runs])


@WAYS
def test_a_plugin_that_reads_configmaps_is_taken(way: Callable[[fw.Plugin, Objects], None]) -> None:
    way(Reads(), {"configmaps.v1.": []})


@WAYS
@pytest.mark.parametrize(
    ("plugin", "objects", "error", "words"),
    [
        (ReadsWhatThereIsNot(), {}, ConfigError, "so write configmaps.v1."),
        (Reads(), {"secrets.v1.": []}, LookupError, "'secrets.v1.' is not watched"),
        (InBothForms(), {}, ConfigError, "has Filter or Score in both forms"),
    ],
    ids=["a resource that there is not", "objects that it does not name", "both forms of Filter"],
)
def test_what_the_scheduler_refuses_a_test_refuses(
    way: Callable[[fw.Plugin, Objects], None],
    plugin: fw.Plugin,
    objects: Objects,
    error: type[Exception],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        way(plugin, objects)
