"""A recording costs nobody anything but its reader: it is bounded, says why it ends, and is one at a time."""

import gzip
import json
from pathlib import Path
from typing import Any, Self

import pytest

from scheduler.__main__ import main
from scheduler.cycle.cycle_events import Call, CallAnswered, Decided
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import ApiError
from scheduler.framework.queued import QueuedPod
from scheduler.replay import recorder
from scheduler.replay.recorder import without_secrets
from scheduler.replay.trace import lines
from scheduler.runtime.event_stream import EngineEvent
from scheduler.testing import a_pod
from tests import fakes
from tests.unit.replay.stage import PROFILE, Stage, with_nodes


def lines_of(*parts: bytes) -> list[Any]:
    return [json.loads(line) for part in parts if part for line in gzip.decompress(part).splitlines()]


class Recording:
    """A recording of a stage, whose state is written."""

    def __init__(self, **settings: Any) -> None:
        self.stage = with_nodes(Stage())
        self.recorder = self.stage.a_recorder(**settings)
        self.parts = self.recorder.record()
        self.found: list[bytes] = []

    async def __aenter__(self) -> Self:
        while not self.found or lines_of(self.found[-1])[-1:] != [["begin", 0]]:
            self.found.append(await anext(self.parts))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.parts.aclose()
        self.stage.close()

    @property
    def is_listening(self) -> bool:
        return Decided in self.stage.engine.stream.listeners

    async def rest(self) -> list[Any]:
        """The lines of what happened, until the recording has ended."""
        rest = [part async for part in self.parts]
        self.found += rest
        return lines_of(*rest)

    async def stopped(self) -> list[Any]:
        """The same, with the end now."""
        self.stage.is_leading = False
        return await self.rest()


async def test_an_engine_that_nobody_records_publishes_nothing_for_a_recorder() -> None:
    recording = Recording()
    before = dict(recording.stage.engine.stream.listeners)
    async with recording:
        assert recording.is_listening

    assert recording.stage.engine.stream.listeners == before
    assert not recording.recorder.is_busy


async def test_a_second_recording_is_empty_while_one_goes_on() -> None:
    async with Recording() as first:
        second = [part async for part in first.recorder.record()]

        assert second == []
        assert first.is_listening, "the first goes on"


async def test_a_reader_that_is_too_slow_is_told_so_and_memory_is_bounded() -> None:
    async with Recording(max_waiting=10_000) as recording:
        for number in range(200):
            recording.stage.pod(f"pod-{number}")
        rest = await recording.rest()

        assert rest[-1][0] == "end"
        assert rest[-1][2] == recorder.TOO_SLOW
        assert 5 < len(rest) < 200
        assert not recording.is_listening


async def test_another_leader_ends_it_with_a_sentence() -> None:
    async with Recording() as recording:
        assert (await recording.stopped())[-1][2] == recorder.NOT_LEADING


async def test_it_ends_when_its_time_is_up() -> None:
    stage = with_nodes(Stage())
    parts = [part async for part in stage.recorder.record(0.001)]
    assert lines_of(*parts)[-1][2] == recorder.FULL_TIME
    stage.close()


async def test_a_recording_of_a_cluster_in_which_nothing_happens_gives_signs_of_life_without_lines() -> None:
    async with Recording(beat=0.0) as recording:
        beats = [await anext(recording.parts) for _ in range(3)]

        assert beats == [recorder.BEAT] * 3
        assert lines_of(*beats) == []
        assert [line[0] for line in await recording.stopped()] == ["end"]


async def test_a_recording_gives_no_sign_of_life_before_it_is_time() -> None:
    async with Recording() as recording:
        assert [await anext(recording.parts) for _ in range(3)] == [b""] * 3


@pytest.mark.parametrize(
    "changed",
    [{"profile": {"percentageOfNodesToScore": 50}}, {"loadmaster": {"seed": 7}}],
    ids=["a profile", "the seed"],
)
def test_another_configuration_ends_it_at_once_and_what_came_before_is_replayed(
    changed: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def recorded() -> Recording:
        async with Recording() as recording:
            stage = recording.stage
            stage.pod("web")
            await stage.schedule()

            stage.reconfigure(**changed)
            stage.pod("late")
            await stage.schedule()

            await recording.rest()
            return recording

    found, path = fakes.run(recorded()).found, tmp_path / "a.trace"
    assert lines_of(*found)[-1][2] == recorder.OTHER_CONFIG
    assert not [line for line in lines_of(*found)[1:] if "late" in str(line)]
    path.write_bytes(b"".join(found))
    assert main(["replay", str(path)]) == 0
    said = capsys.readouterr().out
    assert f"It ended because {recorder.OTHER_CONFIG}." in said
    assert "1 decision, " in said


async def test_a_table_that_is_made_anew_ends_it() -> None:
    async with Recording() as recording:
        recording.stage.engine.cache.table.is_broken = True
        recording.stage.engine.cache.mend()
        assert (await recording.rest())[-1][2] == recorder.REBUILT


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it has no words")


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(CallAnswered(Call("patch", "Odd"), object()), id="an answer"),
        pytest.param(Decided(PROFILE, CycleState(), QueuedPod(a_pod("odd"), 0.0), Unspeakable(), False), id="an error"),
    ],
)
async def test_what_cannot_be_written_ends_the_recording_and_not_the_scheduler(odd: EngineEvent) -> None:
    async with Recording() as recording:
        recording.stage.engine.stream.publish(odd)
        recording.stage.pod("web")
        await recording.stage.schedule()

        assert (await recording.rest())[-1][2].startswith(recorder.UNWRITABLE)
        assert recording.stage.engine.pods["web"].node_name


async def test_answers_of_the_api_server_are_in_it() -> None:
    async with Recording() as recording:
        with pytest.raises(ApiError):
            await recording.stage.engine.frameworks[PROFILE].handle.api.patch("ResourceClaim", "gpu", "shop", {})

        [answer] = [line for line in await recording.stopped() if line[0] == "answer"]
        refusal = "nothing is written here, so no ResourceClaim either"
        assert answer[2:] == [["patch", "ResourceClaim", "shop", "gpu", ""], 0, refusal]


async def test_environment_and_annotations_are_not_in_it() -> None:
    recording = Recording()
    secret = {"container": {"env": [{"name": "PASSWORD", "value": "hunter2"}], "args": ["hunter2"]}}
    recording.stage.pod("before", dict(secret), annotations={"note": "hunter2"})
    async with recording:
        recording.stage.pod("after", dict(secret), annotations={"note": "hunter2"})
        await recording.stopped()

    text = json.dumps(lines_of(*recording.found))
    assert '"before"' in text
    assert '"after"' in text
    assert "hunter2" not in text


def test_where_extenders_are_is_not_in_it() -> None:
    document = {
        "extenders": [{"urlPrefix": "https://user:hunter2@there", "weight": 2, "tlsConfig": {"keyData": "hunter2"}}]
    }
    shown = without_secrets(document)
    assert shown["extenders"] == [{"urlPrefix": recorder.NOWHERE, "weight": 2}]
    assert "hunter2" in json.dumps(document), "what is in effect stays as it is"


async def test_half_a_surrogate_pair_is_written_as_what_it_is_not() -> None:
    text = lines.encode(lines.End(0, "odd \ud800 text"))
    assert json.loads(text)[2] == "odd \ufffd text"


async def test_the_profile_of_a_decision_is_in_it() -> None:
    async with Recording() as recording:
        recording.stage.pod("web")
        await recording.stage.schedule()

        found = await recording.stopped()
        assert [line[2:5] for line in found if line[0] == "decide"] == [["web", PROFILE, 1]]
        kinds = [line[0] for line in found if line[0] != "end"]
        assert kinds == ["pod", "decide", "assume", "pod", "count", "bound"]
