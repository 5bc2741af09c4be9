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
from typing import Any

import pytest

from scheduler.__main__ import main
from scheduler.commands import recording
from scheduler.framework.errors import ClusterError
from scheduler.kube.services.service_proxy import NotRunning
from scheduler.replay.trace.trace_file import is_as_recorded
from tests.fakes.trace import BEGINNING, member

TRACE = [BEGINNING, member(("decide", 900, "a"), ("decide", 1_500, "b"))]


class FakeScheduler:
    """Tells its parts, and then fails if it is to."""

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


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    user = {"name": "u", "user": {"token": "t"}}
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    config = {"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "x"}
    path.write_text(json.dumps(config))
    return path


def run(
    monkeypatch: pytest.MonkeyPatch,
    kubeconfig: Path,
    out: Path,
    parts: Sequence[bytes],
    failure: Exception | None = None,
) -> int:
    monkeypatch.setattr(recording, "RunningScheduler", lambda *_: FakeScheduler(parts, failure))
    return main(["record", f"--out={out}", f"--kubeconfig={kubeconfig}"])


def lines_of(path: Path) -> list[Any]:
    """Those between the header and the checksum."""
    found = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert found[-1][0] == "sum"
    assert is_as_recorded(str(path))
    return found[1:-1]


def test_a_recording_that_ends_by_itself_is_written_as_it_came(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.trace"
    parts = [*TRACE, member(("end", 2_000, "the time was up"))]

    assert run(monkeypatch, kubeconfig, out, parts) == 0

    assert out.read_bytes().startswith(b"".join(parts))
    assert lines_of(out)[-1] == ["end", 2_000, "the time was up"]
    assert out.stat().st_mode & 0o777 == 0o600, "it names what runs in the cluster"
    assert capsys.readouterr().out == f"{out}: 2 decisions in 2.0 s; it ended because the time was up\n"


def test_what_came_is_in_the_file_at_once_so_that_nothing_can_take_it_back(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path
) -> None:
    out, seen = tmp_path / "a.trace", []

    class Watched(FakeScheduler):
        async def _parts(self) -> AsyncIterator[bytes]:
            for part in self.parts:
                yield part
                seen.append(out.read_bytes())

    monkeypatch.setattr(recording, "RunningScheduler", lambda *_: Watched(TRACE))
    assert main(["record", f"--out={out}", f"--kubeconfig={kubeconfig}"]) == 0
    assert seen == [TRACE[0], TRACE[0] + TRACE[1]]


def test_a_connection_that_is_lost_leaves_what_came(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.trace"
    cut = [*TRACE, member(("decide", 1_600, "c"))[:15]]

    assert run(monkeypatch, kubeconfig, out, cut, ClusterError("reset by peer")) == 0

    assert lines_of(out)[-1] == ["end", 1_500, "the connection to the scheduler was lost: reset by peer"]
    assert [line[0] for line in lines_of(out)] == ["begin", "decide", "decide", "end"]
    assert "2 decisions in 1.5 s" in capsys.readouterr().out


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
    parts: list[bytes],
    failure: Exception | None,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    kubeconfig: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "a.trace"
    assert run(monkeypatch, kubeconfig, out, parts, failure) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error
    assert not out.exists() or out.read_bytes().startswith(BEGINNING)


def test_a_file_that_is_there_is_not_touched(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.trace"
    out.write_text("precious")
    assert run(monkeypatch, kubeconfig, out, TRACE) == 2
    assert out.read_text() == "precious"
    assert f"{out}: is there already" in capsys.readouterr().err


@pytest.mark.parametrize("out", ["missing/a.trace", "a\0b", "x" * 300])
def test_a_place_that_cannot_be_written_is_one_sentence(
    out: str, monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, kubeconfig, Path(out), TRACE) == 2
    assert "cannot be written" in capsys.readouterr().err


class SmallDisk(io.FileIO):
    """Has room for so many bytes."""

    room = 0

    def write(self, data: Any) -> int:
        part = memoryview(data)[: self.room - self.tell()]
        if not part:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(part)


def test_what_fits_on_a_full_disk_is_whole_and_the_rest_one_sentence(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.trace"
    monkeypatch.setattr(recording, "created", lambda path: SmallDisk(path, "xb"))
    monkeypatch.setattr(SmallDisk, "room", len(b"".join(TRACE)) + 10)
    assert run(monkeypatch, kubeconfig, out, [*TRACE, member(("decide", 1_600, "c"))]) == 2
    assert out.read_bytes() == b"".join(TRACE)
    said = capsys.readouterr().err
    assert f"{out}: cannot be written: No space left on device; what came before that is in it" in said


def test_nothing_is_left_of_a_recording_that_a_full_disk_kept_from_beginning(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.trace"
    monkeypatch.setattr(recording, "created", lambda path: SmallDisk(path, "xb"))
    monkeypatch.setattr(SmallDisk, "room", 10)
    assert run(monkeypatch, kubeconfig, out, TRACE) == 2
    assert not out.exists()
    assert capsys.readouterr().err == f"{out}: cannot be written: No space left on device\n"


def test_a_file_that_is_taken_away_meanwhile_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.trace"

    def taken_away(path: Path) -> Any:
        file = created(path)
        path.unlink()
        return file

    created = recording.created
    monkeypatch.setattr(recording, "created", taken_away)
    assert run(monkeypatch, kubeconfig, out, [], ClusterError("asking is not allowed")) == 2
    assert "asking is not allowed" in capsys.readouterr().err


def test_a_scheduler_that_ends_it_without_a_word_is_no_lost_connection(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.trace"
    assert run(monkeypatch, kubeconfig, out, TRACE) == 0
    assert lines_of(out)[-1] == ["end", 1_500, recording.ENDED_THERE]
    assert recording.ENDED_THERE in capsys.readouterr().out


def test_what_the_scheduler_says_does_not_reach_the_terminal_as_it_is(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, kubeconfig, tmp_path / "a.trace", [*TRACE, member(("end", 2_000, "\x1b[2Jgone"))]) == 0
    assert "\x1b" not in capsys.readouterr().out


class Hanging:
    """A scheduler that never answers, while the user loses his patience."""

    @asynccontextmanager
    async def record(self, seconds: int) -> AsyncIterator[AsyncIterator[bytes]]:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
        yield FakeScheduler([])._parts()


def test_ctrl_c_ends_it_before_the_scheduler_has_answered(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.trace"
    monkeypatch.setattr(recording, "RunningScheduler", lambda *_: Hanging())
    assert main(["record", f"--out={out}", f"--kubeconfig={kubeconfig}"]) == 2
    assert capsys.readouterr().err == f"{recording.TOO_EARLY}\n"
    assert not out.exists()


@pytest.mark.parametrize("seconds", ["0", "-5", "1.5", "ten", "86401", "9" * 5_000])
def test_seconds_that_make_no_sense_are_refused(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["record", "--out=a.trace", f"--seconds={seconds}"])
    assert ended.value.code == 2
    assert "expected a whole number of seconds, from 1 to 86400" in capsys.readouterr().err
