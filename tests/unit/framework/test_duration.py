import time

import pytest

from scheduler.framework.duration import Duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15.0),
        ("1m30s", 90.0),
        ("1h", 3600.0),
        ("1.5h", 5400.0),
        ("100ms", 0.1),
        (".5s", 0.5),
        ("-2s", -2.0),
        ("+2s", 2.0),
        ("0", 0.0),
        ("1h1m1s1ms", 3661.001),
    ],
)
def test_what_go_reads_is_read(text: str, seconds: float) -> None:
    assert Duration.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "15", "s", "1 s", "1d", "1s ", "\N{ARABIC-INDIC DIGIT ONE}s", "1e3s", "9999999999h", "--1s"]
)
def test_what_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        Duration.parse(text)


def test_a_long_text_costs_no_more_than_its_length() -> None:
    started = time.process_time()
    with pytest.raises(ValueError, match="not a duration"):
        Duration.parse("9" * 50_000)

    assert time.process_time() - started < 1.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (15, "15s"),
        (90, "1m30s"),
        (3600, "1h0m0s"),
        (0.2, "200ms"),
        (1e-9, "1ns"),
        (-1.5, "-1.5s"),
        (60.5e-6 + 60, "1m0.0000605s"),
    ],
)
def test_it_is_written_as_go_writes_it(seconds: float, text: str) -> None:
    assert str(Duration(seconds)) == text
