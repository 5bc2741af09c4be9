import math
from typing import Any

import pytest
import yaml

from scheduler.config.documents import Document, parse_documents
from scheduler.config.yaml_reader import MAX_DEPTH, read_yaml
from scheduler.framework.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("yes", True),
        ("off", False),
        ("y", "y"),
        ("12", 12),
        ("-0x1F", -31),
        ("017", 15),
        ("0o17", 15),
        ("0b11", 3),
        ("1_000", 1000),
        ("+5", 5),
        ("08", 8),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000),
        ("1.0e+06", 1_000_000),
        ("1e-3", 0.001),
        ("1e+21", 1e21),
        ("-.Inf", -math.inf),
        ("1.2.3", "1.2.3"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("=", "="),
        ("<<", "<<"),
        ("100m", "100m"),
        ("'12'", "12"),
        ('""', ""),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("|\n  a\n", "a\n"),
    ],
)
def test_a_scalar_means_what_it_means_in_go(text: str, value: object) -> None:
    ((_, found),) = read_yaml(f"- {text}")

    assert found == [value]
    assert type(found[0]) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a: &x [1]\nb: *x", {"a": [1], "b": [1]}, id="an alias"),
        pytest.param("a: &x {b: 1}\nc: {<<: *x, d: 2}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}, id="a merge"),
        pytest.param("{b: 2, <<: {b: 1, c: 1}}", {"b": 2, "c": 1}, id="own keys win over merged ones"),
        pytest.param("{<<: [{a: 1}, {a: 2, b: 2}]}", {"a": 1, "b": 2}, id="the first of several merged ones wins"),
        pytest.param("{'<<': 1}", {"<<": 1}, id="in quotes it is no merge"),
        pytest.param("a:\n- b: [{}, []]\n", {"a": [{"b": [{}, []]}]}, id="nesting"),
    ],
)
def test_collections_are_built(text: str, value: object) -> None:
    assert [found for _, found in read_yaml(text)] == [value]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: 1\na: 2", "2:1: the key 'a' is there twice", id="a key twice"),
        pytest.param("? [a]\n: b", "1:5: a key must not be a list or a mapping", id="a list as a key"),
        pytest.param(
            "\n".join(["a0: &a0 [1, 1]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9))]),
            "7:25: aliases stand for more than 4000000 bytes",
            id="aliases of aliases of aliases",
        ),
        pytest.param(
            "\n---\n".join(["a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 15 + "]"] * 3),
            "8:41: aliases stand for more than 4000000 bytes",
            id="aliases of a long text in several documents",
        ),
        pytest.param("&a [*a]", "1:5: there is no anchor 'a' before this", id="a list in itself"),
        pytest.param("*a", "1:1: there is no anchor 'a' before this", id="no anchor"),
        pytest.param("{<<: 1}", "1:6: only mappings can be merged", id="a number is merged"),
        pytest.param("!!int x", "1:1: 'x' does not fit its tag", id="a word with a number's tag"),
        pytest.param("!foo x", "1:1: the tag '!foo' means nothing here", id="an unknown tag"),
        pytest.param("!foo {}", "1:1: the tag '!foo' means nothing here", id="an unknown tag of a mapping"),
        pytest.param("9" * 5000, "1:1: not a number that can be read", id="a number of many digits"),
        pytest.param("[" * 100_000, f"1:{MAX_DEPTH + 1}: nested too deeply", id="many brackets"),
        pytest.param("- " * 50_000, f"1:{2 * MAX_DEPTH + 1}: nested too deeply", id="many dashes"),
        pytest.param("a\0", "not a text: character 0x00 at position 1", id="a control character"),
        pytest.param("{a: 1", "2:1: did not find expected ',' or '}', while parsing a flow mapping", id="no end"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_documents(text, "f")

    assert [each.removeprefix("f:").strip() for each in caught.value.problems] == [problem]


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("---\n---\na: 1\n---\nb: 2\n", [("f:3", {"a": 1}), ("f:5", {"b": 2})], id="YAML, some empty"),
        pytest.param('{"a":\t1}\n\n{"b": 2} [3]', [("f:1", {"a": 1}), ("f:3", {"b": 2}), ("f:3", [3])], id="JSON"),
        pytest.param("{a: 1}", [("f:1", {"a": 1})], id="YAML that looks like JSON"),
    ],
)
def test_a_file_has_documents(text: str, documents: list[tuple[str, Any]]) -> None:
    assert parse_documents(text, "f") == [Document(place, value) for place, value in documents]


def test_a_key_twice_in_json_has_a_place_too() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_documents('{"a": 1,\n"a": 2}', "f")

    assert caught.value.problems == ("f:2:1: the key 'a' is there twice",)


def test_it_reads_what_pyyaml_reads() -> None:
    text = yaml.safe_dump({"a": [1, "1", None, True, "yes", 1.5, {"b": ["x\ny", "é", ""]}], "c d": "- e"})

    assert [value for _, value in read_yaml(text)] == [yaml.safe_load(text)]


def test_half_a_surrogate_pair_in_json_is_replaced_as_go_does() -> None:
    (document,) = parse_documents('{"\\ud800": ["a\\udc00", "\\ud83d\\ude00"]}', "a.json")

    assert document.value == {"\ufffd": ["a\ufffd", "\U0001f600"]}
