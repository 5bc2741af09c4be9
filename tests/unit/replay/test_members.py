"""Whatever ends a recording, the file has whole lines."""

import gzip

import pytest

from scheduler.replay.lines import DECIDE, END, POD, encode
from scheduler.replay.members import BadStream, Members, last_member


def member(*lines: tuple[object, ...]) -> bytes:
    return gzip.compress(b"".join(map(encode, lines)))


STREAM = [
    member((DECIDE, 10, "a"), (POD, 20, "b")),
    member((DECIDE, 30, "c"), (DECIDE, 40, "d")),
    member((END, 50, "the time was up")),
]


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_members_come_out_as_they_went_in_however_they_are_divided(size: int) -> None:
    data, members = b"".join(STREAM), Members()
    found = [each for at in range(0, len(data), size) for each in members.feed(data[at : at + size])]
    assert found == STREAM
    assert (members.decisions, members.milliseconds) == (3, 50)
    assert "the time was up" in members.end


def test_a_member_that_is_cut_off_is_left_out() -> None:
    data, members = b"".join(STREAM), Members()
    cut = len(STREAM[0]) + 10

    found = [*members.feed(data[:cut]), last_member(members.milliseconds, "enough")]

    assert gzip.decompress(b"".join(found)) == gzip.decompress(STREAM[0]) + encode((END, 20, "enough"))
    assert not members.end


def test_what_is_no_trace_is_refused() -> None:
    with pytest.raises(BadStream):
        list(Members().feed(b"<html>"))
