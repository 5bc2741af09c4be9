"""A snapshot is there when it is whole, and only then."""

import gzip
import json
import os
import stat
from pathlib import Path

import pytest

from scheduler.framework.errors import ConfigError
from scheduler.snapshots.file import SnapshotFile
from scheduler.snapshots.header import Header, LeftOut

HEADER = Header(version=1)


def content_of(path: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads(gzip.decompress(path.read_bytes()))
    return content


def test_a_snapshot_is_a_packed_list_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.json.gz"
    with SnapshotFile(path, HEADER) as file:
        file.begin()
        file.add(b'{"kind":"Pod"}')
        file.add(b'{"kind":"Node"}')
        size = file.complete((LeftOut("LimitRange", "forbidden"),))

    content = content_of(path)
    assert content["items"] == [{"kind": "Pod"}, {"kind": "Node"}]
    assert content["leftOut"] == [{"kind": "LimitRange", "why": "forbidden"}]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert size == path.stat().st_size


def test_what_is_taken_back_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "s.json.gz"
    with SnapshotFile(path, HEADER) as file:
        file.begin()
        for _ in range(50_000):  # more than the packer keeps back
            file.add(os.urandom(8).hex().encode())
        file.take_back()
        file.begin()
        file.add(b"1")
        file.begin()
        file.add(b"2")
        file.take_back()
        file.begin()
        file.add(b"3")
        file.complete(())

    assert content_of(path)["items"] == [1, 3]


def test_an_empty_one_is_a_list_too(tmp_path: Path) -> None:
    path = tmp_path / "s.json.gz"
    with SnapshotFile(path, HEADER) as file:
        file.complete(())

    assert content_of(path)["items"] == []


def test_nothing_is_left_of_one_that_is_not_complete(tmp_path: Path) -> None:
    with SnapshotFile(tmp_path / "s.json.gz", HEADER) as file:
        file.add(b"1")

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_came_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "s.json.gz"
    with SnapshotFile(path, HEADER) as file:
        path.write_text("mine")
        with pytest.raises(ConfigError, match="it is there already"):
            file.complete(())

    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "mine"


def test_a_pipe_gets_all_of_it_at_the_end(tmp_path: Path) -> None:
    with (tmp_path / "pipe").open("w+b") as pipe:
        with SnapshotFile(pipe, HEADER) as file:
            file.add(b"1")
            assert pipe.tell() == 0
            file.complete(())

        assert pipe.tell() > 0
    assert content_of(tmp_path / "pipe")["items"] == [1]
