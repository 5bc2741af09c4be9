"""`loadmaster record`: whatever goes wrong is one sentence, and a file is left only if it has something."""

import asyncio
import errno
import gzip
import io
import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from scheduler.__main__ import main
from scheduler.commands import recording
from scheduler.framework.errors import ClusterError
from scheduler.kube.services.service_proxy import NotRunning
from scheduler.replay.trace.trace_file import is_as_recorded
from tests.fakes.trace import BEGINNING, member

TRACE = [BEGINNING, member(("decide", 900, "a"), ("decide", 1_500, "b"))]


class FakeScheduler:
    """Sends its parts, then fails if it is to."""

    def __init__(self, parts: Sequence[bytes], failure: Exception | None = None) -> None:
        self.parts, self.failure = parts, failure

    @asynccontextmanager
    async def record(self, seconds: int) -> AsyncIterator[AsyncIterator[bytes]]:
        if not self.parts and self.failure is not None:
            raise self.failure
        yield self._parts()

    async def _parts(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part
        if self.failure is not None:
            raise self.failure


class Recorded(NamedTuple):
    code: int
    out: str
    err: str


class Command:
    """`loadmaster record` with a scheduler that is none."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kubeconfig: Path
    ) -> None:
        self.file = folder / "a.trace"
        self.patch, self._capsys, self._kubeconfig = monkeypatch.setattr, capsys, kubeconfig

    def run(self, parts: Sequence[bytes], failure: Exception | None = None, scheduler: Any = None) -> Recorded:
        self.patch(recording, "RunningScheduler", lambda *_: scheduler or FakeScheduler(parts, failure))
        code = main(["record", f"--out={self.file}", f"--kubeconfig={self._kubeconfig}"])
        return Recorded(code, *self._capsys.readouterr())


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    path = tmp_path / "kubeconfig"
    user = {"name": "u", "user": {"token": "t"}}
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    config = {"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "x"}
    path.write_text(json.dumps(config))
    return Command(tmp_path, monkeypatch, capsys, path)


def lines_of(path: Path) -> list[Any]:
    """Those between the header and the checksum."""
    found = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert found[-1][0] == "sum"
    assert is_as_recorded(str(path))
    return found[1:-1]


def test_a_recording_that_ends_by_itself_is_written_as_it_came(command: Command) -> None:
    parts = [*TRACE, member(("end", 2_000, "the time was up"))]

    recorded = command.run(parts)

    file = command.file
    assert recorded == (0, f"{file}: 2 decisions in 2.0 s; it ended because the time was up\n", "")
    assert file.read_bytes().startswith(b"".join(parts))
    assert lines_of(file)[-1] == ["end", 2_000, "the time was up"]
    assert file.stat().st_mode & 0o777 == 0o600, "it names what runs in the cluster"


def test_what_came_is_in_the_file_at_once_so_that_nothing_can_take_it_back(command: Command) -> None:
    seen = []

    class Watched(FakeScheduler):
        async def _parts(self) -> AsyncIterator[bytes]:
            for part in self.parts:
                yield part
                seen.append(command.file.read_bytes())

    assert command.run((), scheduler=Watched(TRACE)).code == 0
    assert seen == [TRACE[0], TRACE[0] + TRACE[1]]


def test_a_connection_that_is_lost_leaves_what_came(command: Command) -> None:
    cut = [*TRACE, member(("decide", 1_600, "c"))[:15]]

    recorded = command.run(cut, ClusterError("reset by peer"))

    assert recorded.code == 0
    assert "2 decisions in 1.5 s" in recorded.out
    found = lines_of(command.file)
    assert found[-1] == ["end", 1_500, "the connection to the scheduler was lost: reset by peer"]
    assert [line[0] for line in found] == ["begin", "decide", "decide", "end"]


@pytest.mark.parametrize(
    ("parts", "failure", "sentence"),
    [
        ([], NotRunning("the scheduler's Service kube-system/loadmaster is not there"), "is not there"),
        ([], ClusterError("asking is not allowed: no"), "asking is not allowed"),
        ([b"<html>proxy error</html>"], None, "no trace"),
        ([gzip.compress(b"<html>proxy error</html>")], None, "no trace: it does not begin as one"),
        ([], None, "nothing was recorded: the scheduler sent nothing"),
        ([BEGINNING, member(("end", 10, "x"))[:-9]], ClusterError("reset by peer"), "reset by peer"),
        ([BEGINNING, gzip.compress(b'["end",10]\n')], None, "its last line cannot be read"),
        ([TRACE[0]], ClusterError("reset by peer"), "reset by peer"),
    ],
)
def test_what_cannot_be_recorded_is_one_sentence(
    parts: list[bytes], failure: Exception | None, sentence: str, command: Command
) -> None:
    recorded = command.run(parts, failure)

    assert recorded.code == 2
    assert sentence in recorded.err
    assert "Traceback" not in recorded.err
    assert not command.file.exists() or command.file.read_bytes().startswith(BEGINNING)


def test_a_file_that_is_there_is_not_touched(command: Command) -> None:
    command.file.write_text("precious")

    recorded = command.run(TRACE)

    assert recorded == (2, "", f"{command.file}: is there already\n")
    assert command.file.read_text() == "precious"


@pytest.mark.parametrize("name", ["missing/a.trace", "a\0b", "x" * 300])
def test_a_place_that_cannot_be_written_is_one_sentence(name: str, command: Command) -> None:
    command.file = command.file.with_name("folder") / name

    recorded = command.run(TRACE)

    assert recorded.code == 2
    assert "cannot be written" in recorded.err


class SmallDisk(io.FileIO):
    """Takes so many bytes."""

    size = 0

    def write(self, data: Any) -> int:
        part = memoryview(data)[: self.size - self.tell()]
        if not part:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(part)


def test_what_fits_on_a_full_disk_is_whole_and_the_rest_one_sentence(command: Command) -> None:
    command.patch(recording, "created", lambda path: SmallDisk(path, "xb"))
    command.patch(SmallDisk, "size", len(b"".join(TRACE)) + 10)

    recorded = command.run([*TRACE, member(("decide", 1_600, "c"))])

    assert recorded.code == 2
    full = "cannot be written: No space left on device; what came before that is in it"
    assert f"{command.file}: {full}" in recorded.err
    assert command.file.read_bytes() == b"".join(TRACE)


def test_nothing_is_left_of_a_recording_that_a_full_disk_kept_from_beginning(command: Command) -> None:
    command.patch(recording, "created", lambda path: SmallDisk(path, "xb"))
    command.patch(SmallDisk, "size", 10)

    recorded = command.run(TRACE)

    assert recorded == (2, "", f"{command.file}: cannot be written: No space left on device\n")
    assert not command.file.exists()


def test_a_file_that_is_taken_away_meanwhile_is_no_traceback(command: Command) -> None:
    def taken_away(path: Path) -> Any:
        file = created(path)
        path.unlink()
        return file

    created = recording.created
    command.patch(recording, "created", taken_away)

    recorded = command.run([], ClusterError("asking is not allowed"))

    assert recorded.code == 2
    assert "asking is not allowed" in recorded.err


def test_a_scheduler_that_ends_it_without_a_word_is_no_lost_connection(command: Command) -> None:
    recorded = command.run(TRACE)

    assert recorded.code == 0
    assert recording.ENDED_THERE in recorded.out
    assert lines_of(command.file)[-1] == ["end", 1_500, recording.ENDED_THERE]


def test_what_the_scheduler_says_does_not_reach_the_terminal_as_it_is(command: Command) -> None:
    recorded = command.run([*TRACE, member(("end", 2_000, "\x1b[2Jgone"))])

    assert recorded.code == 0
    assert "\x1b" not in recorded.out


class Hanging:
    """A scheduler that never answers, until the user presses Ctrl-C."""

    @asynccontextmanager
    async def record(self, seconds: int) -> AsyncIterator[AsyncIterator[bytes]]:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
        yield FakeScheduler([])._parts()


def test_ctrl_c_ends_it_before_the_scheduler_has_answered(command: Command) -> None:
    assert command.run((), scheduler=Hanging()) == (2, "", f"{recording.TOO_EARLY}\n")
    assert not command.file.exists()


@pytest.mark.parametrize("seconds", ["0", "-5", "1.5", "ten", "86401", "9" * 5_000])
def test_seconds_that_make_no_sense_are_refused(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["record", "--out=a.trace", f"--seconds={seconds}"])
    assert ended.value.code == 2
    assert "expected a whole number of seconds, from 1 to 86400" in capsys.readouterr().err
