"""Quantities as exact numbers."""

import pytest

from scheduler.api.quantity import INT64_MAX, NANO, parse_quantity, to_milli, to_value


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("0", 0, 0),
        ("1", 1, 1000),
        (2, 2, 2000),
        ("1500m", 2, 1500),
        ("0.5", 1, 500),
        (".5", 1, 500),
        ("1.", 1, 1000),
        ("1e3", 1000, 1_000_000),
        ("1E-1", 1, 100),
        ("1Ki", 1024, 1_024_000),
        ("1.5Gi", 1536 * 1024 * 1024, 1536 * 1024 * 1024 * 1000),
        ("1k", 1000, 1_000_000),
        ("100u", 1, 1),
        ("1n", 1, 1),
        ("-1", -1, -1000),
        ("-1m", -1, -1),
        ("1E", 10**18, 0),
        ("12E", 0, 0),
        ("8Ei", INT64_MAX, 0),
        ("9223372036854775808", INT64_MAX, 0),
        ("1e999", 0, 0),
        ("1e-999", 1, 1),
    ],
)
def test_a_quantity_is_rounded_away_from_zero_once(text: str | int, value: int, milli: int) -> None:
    assert to_value(parse_quantity(text)) == value
    assert to_milli(parse_quantity(text)) == milli


@pytest.mark.parametrize("text", ["", "m", "1x", "1 Gi", "1KI", "0x10", "1e", "--1", "1.2.3", "Gi", "٣"])
def test_these_are_no_quantities(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        parse_quantity(text)


def test_nothing_finer_than_a_billionth_is_kept() -> None:
    assert parse_quantity("0.1n") == 1
    assert parse_quantity("1") == NANO
