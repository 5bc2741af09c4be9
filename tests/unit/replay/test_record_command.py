"""`loadmaster record`: whatever goes wrong is one sentence, and a file is left only if it has something."""

import gzip
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scheduler.__main__ import main
from scheduler.ask import record
from scheduler.framework.errors import ClusterError
from scheduler.kube.service_proxy import NotRunning
from scheduler.replay.lines import BEGIN, DECIDE, END, encode


def member(*lines: tuple[Any, ...]) -> bytes:
    return gzip.compress(b"".join(map(encode, lines)))


TRACE = [member((BEGIN, 0)), member((DECIDE, 900, "a"), (DECIDE, 1_500, "b"))]


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
    monkeypatch.setattr(record, "RunningScheduler", lambda *_: FakeScheduler(parts, failure))
    return main(["record", f"--out={out}", f"--kubeconfig={kubeconfig}"])


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_a_recording_that_ends_by_itself_is_written_as_it_came(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.trace"
    parts = [*TRACE, member((END, 2_000, "the time was up"))]

    assert run(monkeypatch, kubeconfig, out, parts) == 0

    assert out.read_bytes() == b"".join(parts)
    assert out.stat().st_mode & 0o777 == 0o600, "it names what runs in the cluster"
    assert capsys.readouterr().out == f"{out}: 2 decisions in 2.0 s; it ended as the time was up\n"


def test_a_connection_that_is_lost_leaves_what_came(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.trace"
    cut = [*TRACE, member((DECIDE, 1_600, "c"))[:15]]

    assert run(monkeypatch, kubeconfig, out, cut, ClusterError("reset by peer")) == 0

    assert lines_of(out)[-1] == [END, 1_500, "the connection to the scheduler was lost: reset by peer"]
    assert [line[0] for line in lines_of(out)] == [BEGIN, DECIDE, DECIDE, END]
    assert "2 decisions in 1.5 s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("parts", "failure", "sentence"),
    [
        ([], NotRunning("the scheduler's Service kube-system/loadmaster is not there"), "is not there"),
        ([], ClusterError("asking is not allowed: no"), "asking is not allowed"),
        ([b"<html>proxy error</html>"], None, "no trace"),
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
    assert not out.exists() or lines_of(out)[0][0] == BEGIN


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


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full disk to offer")
def test_a_full_disk_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(record, "created", lambda path: path.touch() or open("/dev/full", "wb"))  # noqa: SIM115 - as there
    assert run(monkeypatch, kubeconfig, tmp_path / "a.trace", TRACE) == 2
    assert "a.trace: cannot be written: No space left on device" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "-5", "1.5", "ten", "86401", "9" * 5_000])
def test_seconds_that_make_no_sense_are_refused(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["record", "--out=a.trace", f"--seconds={seconds}"])
    assert ended.value.code == 2
    assert "expected a whole number of seconds, from 1 to 86400" in capsys.readouterr().err
