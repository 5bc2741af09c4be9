"""Plugins from files, as they change while the scheduler works."""

import sys
from pathlib import Path
from typing import Any

import pytest

from plugins import IN_TREE
from scheduler.config.options import RunOptions
from scheduler.config.source import ConfigurationSource, Loaded
from scheduler.engine.profiles import Resources
from scheduler.plugin_loading.registry import PluginRegistry
from scheduler.runtime.registry import Registry
from tests.unit.assembly.test_reloading import FakeCluster, Reloading, a_waiting_pod

pytestmark = pytest.mark.programs

PLUGIN = """\
from typing import ClassVar
from scheduler import framework as fw

class Mine(fw.PreEnqueuePlugin):
    name: ClassVar[str] = "Mine"
    reads_raw_pods: ClassVar[bool] = False

    def pre_enqueue(self, pod):
        return fw.unschedulable("SAID")
"""
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: one, plugins: {multiPoint: {enabled: [{name: Mine}]}}}]
"""


class Cluster(FakeCluster):
    """Remembers whether raw pods are read."""

    raw_pods = False

    async def open(self, resources: Resources) -> None:
        self.raw_pods = resources.raw_pods
        await super().open(resources)


class FromFiles(Reloading):
    """An engine that follows a configuration and plugins in files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "config.yaml").write_text(CONFIG)
        self.write_plugin("first")
        registry = PluginRegistry(IN_TREE, directories=[str(directory)], seconds=2)
        self.source = ConfigurationSource(RunOptions(registry=registry, config=f"{directory}/config.yaml"))
        super().__init__(registry)
        self.opened = Cluster(self)
        self.cluster = self.reloader._cluster = self.opened

    def write_plugin(self, said: str, **changes: str) -> None:
        text = PLUGIN.replace("SAID", said)
        for old, new in changes.items():
            text = text.replace(old, new)
        (self.directory / "mine.py").write_text(text)

    def load(self) -> Loaded:
        return self.source.load()

    async def load_again(self, before: Registry) -> Loaded:
        return await self.source.load_again(before)

    def signature(self) -> Any:
        return self.source.signature()

    def said(self, name: str) -> str:
        """What the plugin says of a new pod."""
        pod = a_waiting_pod(name)
        answer = self.engine.frameworks["one"].plugins.by_name["Mine"].pre_enqueue(pod)  # type: ignore[attr-defined]
        return str(answer.message)


@pytest.fixture
def following(tmp_path: Path) -> FromFiles:
    return FromFiles(tmp_path)


async def test_a_changed_file_is_taken_up(following: FromFiles) -> None:
    assert following.said("a") == "first"

    following.write_plugin("second")
    await following.look_twice()

    assert following.said("b") == "second"
    assert following.reloads("success") == 1


async def test_a_file_that_cannot_be_loaded_leaves_the_last_good_one(following: FromFiles) -> None:
    following.write_plugin("second", PreEnqueuePlugin="PreEnqueuPlugin")
    await following.look_twice()

    assert following.said("a") == "first"
    assert following.reloader.problems == (
        f"{following.directory}/mine.py:4: AttributeError: module 'scheduler.framework' has no attribute "
        "'PreEnqueuPlugin'",
    )
    assert "mine.py:4" in following.cluster.events[-1]


@pytest.mark.parametrize(
    "hostile", ["while True: pass", "import os; os._exit(3)", "import ctypes; ctypes.string_at(0)"]
)
async def test_a_file_that_would_end_or_halt_the_scheduler_only_costs_its_reload(
    following: FromFiles, hostile: str
) -> None:
    (following.directory / "mine.py").write_text(hostile)
    await following.look_twice()

    assert following.said("a") == "first"
    assert len(following.reloader.problems) == 1
    following.write_plugin("second")
    await following.look_twice()
    assert following.said("b") == "second"
    assert not following.reloader.problems


HANGS = "while True: pass"


async def test_a_plugin_that_hangs_while_it_is_tried_out_only_costs_its_reload(
    following: FromFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.plugin_loading.trial.RELOAD_SECONDS", 1.0)
    following.write_plugin(
        "second", **{"def pre_enqueue": f"def __init__(self):\n        {HANGS}\n\n    def pre_enqueue"}
    )
    await following.look_twice()

    assert following.said("a") == "first"
    (problem,) = following.reloader.problems
    assert problem.startswith(f"{following.directory}/mine.py:9: a plugin has not come back for 1 s while it was made")


async def test_a_plugin_that_hangs_with_its_new_arguments_only_costs_its_reload(
    following: FromFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.plugin_loading.trial.RELOAD_SECONDS", 1.0)
    start = "hangs: bool = False\n\n    def start(self, handle):\n        while self.hangs: pass"
    following.write_plugin(
        "second",
        **{
            "class Mine": "from dataclasses import dataclass\n@dataclass\nclass Mine",
            "def pre": f"{start}\n\n    def pre",
        },
    )
    await following.look_twice()
    assert following.said("a") == "second"

    arguments = "pluginConfig: [{name: Mine, args: {hangs: true}}]"
    (following.directory / "config.yaml").write_text(CONFIG.replace("plugins:", f"{arguments}, plugins:"))
    await following.look_twice()

    assert following.said("b") == "second"
    (problem,) = following.reloader.problems
    assert f"{following.directory}/mine.py:13: a plugin has not come back for 1 s while it was made" in problem


async def test_a_profile_whose_files_are_as_they_were_stays_as_it_is(following: FromFiles) -> None:
    framework = following.engine.frameworks["one"]
    (following.directory / "mine.py").write_text("1 / 0")
    await following.look_twice()

    following.write_plugin("first")
    await following.look_twice()

    assert not following.reloader.problems
    assert following.engine.frameworks["one"] is framework


async def test_pods_are_kept_as_json_as_long_as_a_plugin_reads_it(following: FromFiles) -> None:
    following.write_plugin("second", **{"= False": "= True"})
    await following.look_twice()
    assert following.opened.raw_pods

    following.write_plugin("third")
    await following.look_twice()
    await following.reloader.look()

    assert not following.opened.raw_pods


async def test_the_code_of_old_versions_is_forgotten(following: FromFiles) -> None:
    for number in range(3):
        following.write_plugin(f"version {number}")
        await following.look_twice()
        await following.reloader.look()

    loaded = [name for name in sys.modules if name.startswith("loadmaster_plugins_") and name.endswith(".mine")]
    used = following.engine.frameworks["one"].plugins.by_name["Mine"]
    assert type(used).__module__ in loaded
    assert sum(sys.modules[name].__file__ == f"{following.directory}/mine.py" for name in loaded) == 1
