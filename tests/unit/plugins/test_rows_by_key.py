"""Keys that one row has, and keys that more have."""

from plugins.volumes.limits.attached import RowsByKey


def test_a_key_has_the_rows_that_were_added_and_not_removed() -> None:
    rows: RowsByKey[str] = RowsByKey()
    rows.add(["a", "b"], 0)
    rows.add(["b"], 1)
    rows.add(["b"], 2)
    rows.remove(["b"], 1)

    assert {key: sorted(rows.of(key)) for key in "abc"} == {"a": [0], "b": [0, 2], "c": []}


def test_a_key_that_no_row_has_any_more_is_forgotten() -> None:
    rows: RowsByKey[str] = RowsByKey()
    rows.add(["a"], 0)
    rows.add(["b"], 1)
    rows.add(["b"], 2)
    rows.remove(["a"], 0)
    rows.remove(["b"], 2)
    rows.remove(["b"], 1)
    rows.add(["b"], 0)

    assert (list(rows.of("a")), list(rows.of("b"))) == ([], [0])
