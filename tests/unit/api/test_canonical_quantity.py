import pytest

from scheduler.api.quantities.canonical_quantity import canonical


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
