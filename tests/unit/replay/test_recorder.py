"""A recording costs nobody anything but its reader: it is bounded, says why it ends, and is one at a time."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.__main__ import main
from scheduler.cycle.cycle_events import Call, CallAnswered, Decided
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import ApiError
from scheduler.framework.queued import QueuedPod
from scheduler.replay import recorder
from scheduler.replay.recorder import Recorder, without_secrets
from scheduler.replay.trace import lines
from scheduler.runtime.event_stream import EngineEvent
from scheduler.testing import a_pod
from tests import fakes
from tests.unit.replay.stage import PROFILE, Stage, with_nodes


def lines_of(parts: list[bytes]) -> list[Any]:
    return [json.loads(line) for part in parts if part for line in gzip.decompress(part).splitlines()]


async def begun(stage: Stage, recording: Recorder, seconds: float = 0.0) -> tuple[Any, list[bytes]]:
    """A recording whose state is written."""
    parts = recording.record(seconds)
    found = [await anext(parts)]
    while lines_of(found)[-1] != ["begin", 0]:
        found.append(await anext(parts))
    return parts, found


def is_listening(stage: Stage) -> bool:
    return Decided in stage.engine.stream.listeners


async def test_an_engine_that_nobody_records_publishes_nothing_for_a_recorder() -> None:
    stage = with_nodes(Stage())
    before = dict(stage.engine.stream.listeners)
    parts, _ = await begun(stage, stage.recorder)
    assert is_listening(stage)

    await parts.aclose()

    assert stage.engine.stream.listeners == before
    assert not stage.recorder.is_busy
    stage.close()


async def test_a_second_recording_is_empty_while_one_goes_on() -> None:
    stage = with_nodes(Stage())
    first, _ = await begun(stage, stage.recorder)

    second = [part async for part in stage.recorder.record()]

    assert second == []
    assert is_listening(stage), "the first goes on"
    await first.aclose()
    stage.close()


async def test_a_reader_that_is_too_slow_is_told_so_and_memory_is_bounded() -> None:
    stage = with_nodes(Stage())
    parts, _ = await begun(stage, stage.a_recorder(max_waiting=10_000))

    for number in range(200):
        stage.pod(f"pod-{number}")
    rest = lines_of([part async for part in parts])

    assert rest[-1][0] == "end"
    assert rest[-1][2] == recorder.TOO_SLOW
    assert 5 < len(rest) < 200
    assert not is_listening(stage)
    stage.close()


async def test_another_leader_ends_it_with_a_sentence() -> None:
    stage = with_nodes(Stage())
    parts, _ = await begun(stage, stage.recorder)
    stage.is_leading = False
    assert lines_of([part async for part in parts])[-1][2] == recorder.NOT_LEADING
    stage.close()


async def test_it_ends_when_its_time_is_up() -> None:
    stage = with_nodes(Stage())
    parts = [part async for part in stage.recorder.record(0.001)]
    assert lines_of(parts)[-1][2] == recorder.FULL_TIME
    stage.close()


async def test_a_recording_of_a_cluster_in_which_nothing_happens_gives_signs_of_life_without_lines() -> None:
    stage = with_nodes(Stage())
    parts, _ = await begun(stage, stage.a_recorder(beat=0.0))

    beats = [await anext(parts) for _ in range(3)]
    stage.is_leading = False
    rest = [part async for part in parts]

    assert beats == [recorder.BEAT] * 3
    assert lines_of(beats) == []
    assert [line[0] for line in lines_of(rest)] == ["end"]
    stage.close()


async def test_a_recording_gives_no_sign_of_life_before_it_is_time() -> None:
    stage = with_nodes(Stage())
    parts, _ = await begun(stage, stage.recorder)

    assert [await anext(parts) for _ in range(3)] == [b""] * 3

    await parts.aclose()
    stage.close()


@pytest.mark.parametrize(
    "changed",
    [{"profile": {"percentageOfNodesToScore": 50}}, {"loadmaster": {"seed": 7}}],
    ids=["a profile", "the seed"],
)
def test_another_configuration_ends_it_at_once_and_what_came_before_is_replayed(
    changed: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def recorded() -> list[bytes]:
        stage = with_nodes(Stage())
        parts, found = await begun(stage, stage.recorder)
        stage.pod("web")
        await stage.schedule()

        stage.reconfigure(**changed)
        stage.pod("late")
        await stage.schedule()

        found += [part async for part in parts]
        stage.close()
        return found

    found, path = fakes.run(recorded()), tmp_path / "a.trace"
    assert lines_of(found)[-1][2] == recorder.OTHER_CONFIG
    assert not [line for line in lines_of(found)[1:] if "late" in str(line)]
    path.write_bytes(b"".join(found))
    assert main(["replay", str(path)]) == 0
    said = capsys.readouterr().out
    assert f"It ended because {recorder.OTHER_CONFIG}." in said
    assert "1 decision, " in said


async def test_a_table_that_is_made_anew_ends_it() -> None:
    stage = with_nodes(Stage())
    parts, _ = await begun(stage, stage.recorder)
    stage.engine.cache.table.is_broken = True
    stage.engine.cache.mend()
    assert lines_of([part async for part in parts])[-1][2] == recorder.REBUILT
    stage.close()


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
    stage = with_nodes(Stage())
    parts, _ = await begun(stage, stage.recorder)
    stage.engine.stream.publish(odd)
    stage.pod("web")
    await stage.schedule()

    assert lines_of([part async for part in parts])[-1][2].startswith(recorder.UNWRITABLE)
    assert stage.engine.pods["web"].node_name
    stage.close()


async def test_answers_of_the_api_server_are_in_it() -> None:
    stage = with_nodes(Stage())
    parts, _ = await begun(stage, stage.recorder)
    with pytest.raises(ApiError):
        await stage.engine.frameworks[PROFILE].handle.api.patch("ResourceClaim", "gpu", "shop", {})
    stage.is_leading = False
    found = lines_of([part async for part in parts])
    [answer] = [line for line in found if line[0] == "answer"]
    assert answer[2:] == [
        ["patch", "ResourceClaim", "shop", "gpu", ""],
        0,
        "nothing is written here, so no ResourceClaim either",
    ]
    stage.close()


async def test_environment_and_annotations_are_not_in_it() -> None:
    stage = with_nodes(Stage())
    secret = {"container": {"env": [{"name": "PASSWORD", "value": "hunter2"}], "args": ["hunter2"]}}
    stage.pod("before", dict(secret), annotations={"note": "hunter2"})
    parts, found = await begun(stage, stage.recorder)
    stage.pod("after", dict(secret), annotations={"note": "hunter2"})
    stage.is_leading = False
    found += [part async for part in parts]

    text = json.dumps(lines_of(found))
    assert '"before"' in text
    assert '"after"' in text
    assert "hunter2" not in text
    stage.close()


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
    stage = with_nodes(Stage())
    parts, _ = await begun(stage, stage.recorder)
    stage.pod("web")
    await stage.schedule()
    stage.is_leading = False
    found = lines_of([part async for part in parts])
    assert [line[2:5] for line in found if line[0] == "decide"] == [["web", PROFILE, 1]]
    kinds = [line[0] for line in found if line[0] != "end"]
    assert kinds == ["pod", "decide", "assume", "pod", "count", "bound"]
    stage.close()
