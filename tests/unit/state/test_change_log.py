import pytest

from scheduler.framework.nodes.change_log import ChangeLog


def test_a_reader_gets_what_was_marked_after_its_position_with_repeats() -> None:
    log = ChangeLog()
    log.mark(7)
    position = log.position

    for row in (3, 1, 3):
        log.mark(row)

    given = log.since(position)
    log.mark(5)
    assert given == [3, 1, 3]


def test_a_full_log_forgets_its_older_half() -> None:
    log = ChangeLog(limit=4)
    positions = [log.position]

    for row in range(5):
        log.mark(row)
        positions.append(log.position)

    assert positions == [0, 1, 2, 3, 4, 5]
    assert [log.since(position) for position in positions] == [None, None, [2, 3, 4], [3, 4], [4], []]


@pytest.mark.parametrize("limit", [1, 2, 3, 8])
def test_a_log_never_withholds_a_row_whatever_its_limit(limit: int) -> None:
    log = ChangeLog(limit)
    reported: list[tuple[int, list[int]]] = []

    for row in range(50):
        reported.append((log.position, []))
        log.mark(row)
        for _, rows in reported:
            rows.append(row)

    for position, rows in reported:
        assert log.since(position) in (None, rows)
    assert log.since(reported[-1][0]) == [49]


def test_a_log_may_be_given_more_room_later() -> None:
    log = ChangeLog(limit=2)

    log.limit = 4
    for row in range(4):
        log.mark(row)

    assert log.since(0) == [0, 1, 2, 3]


@pytest.mark.parametrize("marked", [0, 1])
def test_after_mark_all_a_reader_from_before_cannot_know_which_rows_changed(marked: int) -> None:
    log = ChangeLog()
    for row in range(marked):
        log.mark(row)
    before = log.position

    log.mark_all()

    assert log.since(before) is None
    assert log.since(log.position) == []
