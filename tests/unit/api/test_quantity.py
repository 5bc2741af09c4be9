"""Quantities as exact numbers."""

import pytest

from scheduler.api.quantities.go_quantity import INT64_MAX, INT64_MIN, GoQuantity
from scheduler.api.quantities.quantity import canonical, is_plain, parse_quantity, to_milli, to_value, value_of


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
        ("0.1n", 1, 1),
        ("1e-999", 1, 1),
        ("Gi", 0, 0),
    ],
)
def test_a_quantity_is_rounded_up_once(text: str | int, value: int, milli: int) -> None:
    assert to_value(parse_quantity(text)) == value_of(text) == GoQuantity.parse(text).value() == value
    assert to_milli(parse_quantity(text)) == GoQuantity.parse(text).milli() == milli


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("-1", -1, -1000),
        ("-1m", -1, -1),
        ("-1.5Ki", -1536, -1_536_000),
        ("-0.1Ki", -101, -102_400),
        ("1E", 10**18, 0),
        ("12E", 0, 0),
        ("8Ei", INT64_MAX, -1000),
        ("9223372036854775807", INT64_MAX, -1000),
        ("9223372036854775808", INT64_MIN, 0),
        ("10000000000000M", 10**19 - 2**64, 1864712049423024128),
        ("1e999", 0, 0),
        ("0e2000000000", 0, 0),
        ("1e4294967296", 1, 1000),
    ],
)
def test_what_is_out_of_all_proportion_overflows_as_in_go(text: str, value: int, milli: int) -> None:
    assert (value_of(text), GoQuantity.parse(text).milli()) == (value, milli)
    assert not is_plain(parse_quantity(text)) or value >= 0


def test_a_sum_that_does_not_fit_an_int64_goes_on_as_a_big_number() -> None:
    one = GoQuantity.parse("999999999999999999")
    total = one
    for _ in range(9):
        total += one

    assert (total.value(), total.milli()) == (10**19 - 10 - 2**64, (10**22 - 10**4) % 2**64)
    assert (GoQuantity.parse("9E") + GoQuantity.parse("1E")).value() == 0  # ten times a power that fits


@pytest.mark.parametrize("text", ["", "1x", "1 Gi", "1KI", "0x10", "1e", "--1", "1.2.3", "٣", "e-20", "1e" + "9" * 20])
def test_these_are_no_quantities(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("0", "0"),
        ("2000", "2k"),
        ("2000m", "2"),
        ("1500m", "1500m"),
        ("-2048Ki", "-2Mi"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("1.0001Ki", "1024102400u"),
        ("2e3", "2e3"),
        ("1e19", "10e18"),
        ("1E", "1E"),
        ("9223372036854775808", "9223372036854775808"),
        ("16Ei", "9223372036854775807"),
    ],
)
def test_a_quantity_is_written_as_the_api_does(quantity: str, expected: str) -> None:
    assert canonical(quantity) == expected
