"""Whatever ends a recording, the file has whole lines."""

import gzip

import pytest

from scheduler.replay.recorder import BEAT
from scheduler.replay.trace import gzip_members
from scheduler.replay.trace.gzip_members import BadStream, GzipMembers
from scheduler.replay.trace.lines import MARK, Checksum
from tests.fakes.trace import line, member

STREAM = [
    gzip.compress(MARK + b"1}\n"),
    member(("decide", 10, "a"), ("pod", 20, "b")),
    BEAT,
    member(("decided", 30, "c"), ("decide", 40, "d")),
    member(("end", 50, "the time was up")),
]


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_members_come_out_as_they_went_in_however_they_are_divided(size: int) -> None:
    data, found_in = b"".join(STREAM), GzipMembers()
    found = [each for at in range(0, len(data), size) for each in found_in.feed(data[at : at + size])]
    assert found == STREAM
    assert (found_in.decisions, found_in.milliseconds) == (3, 50)
    assert "the time was up" in found_in.end


def test_a_member_that_is_cut_off_is_left_out() -> None:
    data, found_in = b"".join(STREAM), GzipMembers()
    cut = len(STREAM[0]) + len(STREAM[1]) + 10

    found = [*found_in.feed(data[:cut]), found_in.last("enough")]

    whole = gzip.decompress(b"".join(STREAM[:2])) + line("end", 20, "enough")
    assert gzip.decompress(b"".join(found)) == whole + line("sum", 20, Checksum(whole).hexdigest())


def test_a_trace_that_the_scheduler_has_ended_gets_a_checksum_and_no_other_end() -> None:
    found_in = GzipMembers()

    found = [*found_in.feed(b"".join(STREAM)), found_in.last("enough")]

    whole = gzip.decompress(b"".join(STREAM))
    assert gzip.decompress(b"".join(found)) == whole + line("sum", 50, Checksum(whole).hexdigest())


@pytest.mark.parametrize(
    "data", [b"<html>", gzip.compress(b"<html>"), gzip.compress(b"")], ids=["text", "packed", "nothing"]
)
def test_what_is_no_trace_is_refused(data: bytes) -> None:
    with pytest.raises(BadStream):
        list(GzipMembers().feed(data))


def test_a_part_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_members, "MAX_TEXT", 1_000)
    with pytest.raises(BadStream, match="a part of it has more than"):
        list(GzipMembers().feed(gzip.compress(MARK + b"x" * 1_000_000)))


def test_a_part_of_which_nothing_comes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gzip_members, "MAX_TEXT", 1_000)
    named = b"\x1f\x8b\x08\x08" + b"\0" * 6 + b"a name without an end" * 100
    with pytest.raises(BadStream, match="a part of it has more than"):
        list(GzipMembers().feed(named))
