"""Whatever the plugin at work does while it is replaced, a new version takes its place."""

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.unit.assembly.test_reloading_plugins import FromFiles

OLD = """\
import sys
from dataclasses import dataclass
from typing import ClassVar
from scheduler import framework as fw

class Kept:
    def __iter__(self):
        KEPT

class Unprintable(Exception):
    def __str__(self):
        raise SystemExit("no text either")

class Mine(fw.PreEnqueuePlugin):
    name: ClassVar[str] = "Mine"
    asked = 0

    def start(self, handle):
        handle.objects.listen(fw.STORAGE_CLASS, lambda old, new: None)

    @classmethod
    def at_the_second_time(cls):
        cls.asked += 1
        return cls.asked > SEVERAL

    def kept(self):
        KEEP

    def stop(self):
        STOP

    def events_to_register(self):
        if self.at_the_second_time():
            EVENTS
        return ()

    def pre_enqueue(self, pod):
        return fw.unschedulable("first")
"""
NEW = """\
from typing import ClassVar
from scheduler import framework as fw

class Mine(fw.PreEnqueuePlugin):
    name: ClassVar[str] = "Mine"
    took: tuple = ()

    def take_over(self, kept):
        self.took = tuple(kept)

    def pre_enqueue(self, pod):
        return fw.unschedulable(f"second, with {list(self.took)}")
"""
HARMLESS = {
    "SEVERAL": "100",
    "KEPT": "return iter(())",
    "KEEP": "return ['what was seen']",
    "STOP": "pass",
    "EVENTS": "pass",
}
FAULTS = {
    "raises": "raise RuntimeError('broken')",
    "would end the program": "sys.exit(3)",
    "raises what is no Exception": "raise BaseException('broken')",
    "is interrupted": "raise KeyboardInterrupt",
    "is cancelled": "import asyncio; raise asyncio.CancelledError",
    "ends a generator": "raise GeneratorExit",
    "has nothing more": "raise StopIteration",
    "raises what has no text": "raise Unprintable",
    "recurses": "return self.kept()",
}


class WithAnOldPlugin(FromFiles):
    """A scheduler whose plugin does what the test says."""

    def __init__(self, directory: Path, **faults: str) -> None:
        self.faults = faults
        super().__init__(directory)

    def write_plugin(self, said: str, **_: str) -> None:
        text = OLD
        for word, statement in {**HARMLESS, **self.faults}.items():
            text = text.replace(word, statement)
        (self.directory / "mine.py").write_text(text)

    async def mend(self) -> None:
        """Write the version that is to come, and have it noticed."""
        (self.directory / "mine.py").write_text(NEW)
        await self.look_twice()
        await self.reloader.look()


@pytest.fixture(autouse=True)
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is made to try the plugins out."""

    async def nothing_is_wrong(*_: Any) -> list[str]:
        return []

    monkeypatch.setattr("scheduler.plugin_loading.registry.try_out", lambda *_: [])
    monkeypatch.setattr("scheduler.plugin_loading.registry.try_out_meanwhile", nothing_is_wrong)


def told(caplog: pytest.LogCaptureFixture) -> list[Any]:
    """What the log says of the plugin's faults: (method, place)."""
    errors = [vars(each) for each in caplog.records if each.levelno == logging.ERROR and each.name != "asyncio"]
    return [(each.get("extensionPoint"), each.get("at")) for each in errors]


def line_of(statement: str, text: str) -> int:
    return text[: text.index(statement)].count("\n") + 1


async def test_what_a_plugin_keeps_comes_to_its_next_version(tmp_path: Path) -> None:
    following = WithAnOldPlugin(tmp_path)

    await following.mend()

    assert following.said("a") == "second, with ['what was seen']"


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_plugin_that_fails_as_it_is_asked_what_it_keeps_loses_that_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    following = WithAnOldPlugin(tmp_path, KEEP=FAULTS[fault])

    await following.mend()

    assert following.reloader.problems == ()
    assert following.said("a") == "second, with []"
    assert told(caplog) == [("kept", f"{tmp_path}/mine.py:{line_of('KEEP', OLD)}")]
    assert (
        following.under_test.count(
            "loadmaster_plugin_faults_total", plugin="Mine", extension_point="kept", kind="error"
        )
        == 1
    )
    (event,) = [each for each in following.cluster.events if each.startswith("Warning")]
    assert f"{tmp_path}/mine.py:{line_of('KEEP', OLD)}" in event


@pytest.mark.parametrize("fault", [each for each in FAULTS if each != "recurses"])
async def test_what_fails_in_the_old_code_as_the_new_one_reads_what_was_kept_is_the_old_ones_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    following = WithAnOldPlugin(tmp_path, KEEP="return Kept()", KEPT=FAULTS[fault])

    await following.mend()

    assert following.reloader.problems == ()
    assert following.said("a") == "second, with []"
    assert told(caplog) == [("kept", f"{tmp_path}/mine.py:{line_of('KEPT', OLD)}")]


@pytest.mark.parametrize("fault", [each for each in FAULTS if each != "recurses"])
async def test_a_plugin_that_fails_as_it_is_stopped_keeps_nobody_from_taking_its_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    following = WithAnOldPlugin(tmp_path, STOP=FAULTS[fault])

    await following.mend()

    assert not following.engine.profiles.is_retiring
    assert following.said("a") == "second, with ['what was seen']"
    assert told(caplog) == [("stop", f"{tmp_path}/mine.py:{line_of('STOP', OLD)}")]


@pytest.mark.parametrize("fault", [each for each in FAULTS if each != "recurses"])
async def test_a_plugin_is_not_asked_again_about_its_events_when_another_one_changes(
    tmp_path: Path, fault: str
) -> None:
    following = WithAnOldPlugin(tmp_path, EVENTS=FAULTS[fault])
    plugin: Any = following.engine.frameworks["one"].plugins.by_name["Mine"]
    type(plugin).asked = 1_000

    await following.mend()

    assert following.reloader.problems == ()
    assert following.said("a") == "second, with ['what was seen']"
