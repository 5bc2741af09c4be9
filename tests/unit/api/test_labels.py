"""What a label may look like."""

import pytest

from scheduler.api.labels import label_key_problems, label_value_problems


@pytest.mark.parametrize("key", ["a", "A-b_c.d", "example.com/name", "x" * 63, f"{'a' * 253}/x", "1/2"])
def test_these_are_label_keys(key: str) -> None:
    assert label_key_problems(key) == []


@pytest.mark.parametrize(
    ("key", "beginnings"),
    [
        pytest.param("", ["name part must be non-empty", "name part must consist of"], id="empty"),
        pytest.param("a/b/c", ["a valid label key must consist of"], id="two slashes"),
        pytest.param("/name", ["prefix part must be non-empty"], id="an empty prefix"),
        pytest.param("Example.com/name", ["prefix part a lowercase RFC 1123 subdomain"], id="capitals in the prefix"),
        pytest.param(f"{'a' * 254}/x", ["prefix part must be no more than 253 bytes"], id="a long prefix"),
        pytest.param("x" * 64, ["name part must be no more than 63 bytes"], id="a long name"),
        pytest.param("-a", ["name part must consist of"], id="a dash in front"),
        pytest.param("a\n", ["name part must consist of"], id="a line break at the end"),
        pytest.param("é" * 32, ["name part must be no more than 63 bytes", "name part must"], id="bytes are counted"),
    ],
)
def test_these_are_not_and_it_is_said_why(key: str, beginnings: list[str]) -> None:
    problems = label_key_problems(key)

    assert len(problems) == len(beginnings)
    assert all(map(str.startswith, problems, beginnings))


def test_the_message_is_kube_schedulers() -> None:
    assert label_value_problems("-3") == [
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
        "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    ]


@pytest.mark.parametrize(
    ("value", "problems"),
    [("", 0), ("a", 0), ("A.b-c_d", 0), ("x" * 63, 0), ("x" * 64, 1), ("a/b", 1), ("_" * 64, 2), ("a ", 1)],
)
def test_label_values_are_short_words(value: str, problems: int) -> None:
    assert len(label_value_problems(value)) == problems
