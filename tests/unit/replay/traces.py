"""A file into which a play is recorded, and from which it is decided again."""

import gzip
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from scheduler import framework as fw
from scheduler.__main__ import main
from scheduler.config.profiles import API_VERSION, KIND
from tests import fakes
from tests.unit.replay.stage import PROFILE, Stage, a_busy_hour, with_nodes

CaptureFixture = pytest.CaptureFixture[str]
Play = Callable[[Stage], Awaitable[None]]

MOST_ALLOCATED: Final[dict[str, Any]] = {
    "schedulerName": PROFILE,
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}},
        }
    ],
    "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
}
"""A profile that packs pods."""


class RecordedTrace:
    """The file, and the commands that read it."""

    def __init__(self, folder: Path, capsys: CaptureFixture) -> None:
        self.path, self._capsys = folder / "a.trace", capsys

    def record(
        self, play: Play, *, before: Play | None = None, nodes: int = 12, kind: type[Stage] = Stage, **settings: Any
    ) -> None:
        """Record `play`; what happens `before` is the state at its start."""

        async def recorded() -> None:
            stage = with_nodes(kind(**settings), nodes)
            if before is not None:
                await before(stage)
            await stage.recorded(self.path, lambda: play(stage))
            await stage.engine.loop.finish(0)
            stage.close()

        fakes.run(recorded())

    def record_hour(self, *, before: int = 80, pods: int = 200, seed: int = 7, **settings: Any) -> None:
        """Record from the middle of a busy hour."""
        early = partial(a_busy_hour, seed=seed, pods=before)
        self.record(partial(a_busy_hour, seed=seed + 1, pods=pods), before=early, **settings)

    @property
    def header(self) -> Any:
        return self._read()[0]

    def lines(self, kind: str | None = None) -> list[Any]:
        """All lines after the header, or those of one kind."""
        return [line for line in self._read()[1:] if kind in (None, line[0])]

    def kinds(self) -> list[str]:
        return [line[0] for line in self.lines()]

    def edit(self, change: Callable[[list[Any]], None]) -> None:
        """Have `change` edit each line after the header."""
        lines = self._read()
        for line in lines[1:]:
            change(line)
        self.path.write_bytes(gzip.compress("".join(f"{json.dumps(each)}\n" for each in lines).encode()))

    def _read(self) -> list[Any]:
        with gzip.open(self.path) as file:
            return [json.loads(line) for line in file]

    def decided_again(self, plugins: Mapping[str, type[fw.Plugin]] | None = None) -> dict[str, Any]:
        """Report of a replay that decides what was recorded."""
        code, report = self.replay(plugins=plugins)
        assert (code, report["different"], report["differences"]) == (0, 0, [])
        return report

    def decided_by(self, profile: dict[str, Any]) -> dict[str, Any]:
        """Report of a replay by another profile."""
        code, report = self.replay(profiles=[profile])
        assert code == 0
        return report

    def replay(self, *options: str, **settings: Any) -> tuple[int, dict[str, Any]]:
        """Exit code and report."""
        code, out, _ = self.run("-o", "json", *options, **settings)
        return code, json.loads(out)

    def run(
        self,
        *options: str,
        profiles: Sequence[dict[str, Any]] = (),
        plugins: Mapping[str, type[fw.Plugin]] | None = None,
    ) -> tuple[int, str, str]:
        """Exit code, output and errors of `loadmaster replay`, by a configuration of `profiles` if there are any."""
        if profiles:
            config = self.path.with_name("config.yaml")
            config.write_text(json.dumps({"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles}))
            options = (*options, f"--config={config}")
        code = main(["replay", str(self.path), *options], plugins or {})
        return code, *self._capsys.readouterr()
