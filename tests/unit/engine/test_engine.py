from typing import ClassVar

import pytest

from plugins import IN_TREE
from scheduler import framework as fw
from scheduler.config.load import config_from_dict
from scheduler.framework.errors import ConfigError
from scheduler.runtime.registry import Registry
from tests.unit.cycle.fakes import an_engine

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def listening(log: list[str], *, fails: bool = False) -> type[fw.Plugin]:
    """Make a plugin class that listens to services, and notes when it is started and stopped."""

    class Listening(fw.PreFilterPlugin):
        name: ClassVar[str] = "Listening"
        reads = (fw.SERVICE,)

        def start(self, handle: fw.Handle) -> None:
            log.append("started")
            handle.objects.listen(fw.SERVICE, lambda old, new: None)
            if fails:
                raise OSError("no such file")

        def stop(self) -> None:
            log.append("stopped")

        def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
            return fw.SKIP

    return Listening


def test_an_engine_starts_its_plugins_once_and_stops_them_when_it_is_closed() -> None:
    log: list[str] = []
    made = an_engine(listening(log))
    assert log == ["started"]

    made.engine.close()

    assert log == ["started", "stopped"]


def test_a_plugin_that_does_not_start_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match="plugin 'Listening' did not start: OSError: no such file"):
        an_engine(listening([], fails=True))


def test_checking_a_configuration_starts_nothing() -> None:
    log: list[str] = []
    profile = {"schedulerName": "mine", "plugins": {"multiPoint": {"enabled": [{"name": "Listening"}]}}}
    registry: Registry = {**IN_TREE, "Listening": listening(log, fails=True)}

    config = config_from_dict({**HEADER, "profiles": [profile]}, registry)

    assert [spec.scheduler_name for spec in config.profiles] == ["mine"]
    assert log == []


def test_plugins_of_all_profiles_share_what_one_of_them_made() -> None:
    made: list[object] = []

    class Sharing(fw.PreFilterPlugin):
        name: ClassVar[str] = "Sharing"

        def start(self, handle: fw.Handle) -> None:
            made.append(handle.shared.get(dict, dict))

        def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
            return fw.SKIP

    an_engine(Sharing, profiles=("one", "two"))

    first, second = made
    assert first is second
