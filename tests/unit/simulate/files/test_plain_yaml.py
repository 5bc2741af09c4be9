"""What is read by its lines must be what libyaml reads."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scheduler.config.yaml_reader import MAX_DEPTH, read_yaml
from scheduler.simulate.files.plain_yaml import find_list, read_items, read_plain

KEYS = st.sampled_from(["a", "name", "app.kubernetes.io/name", "on", "x-1", "null", "<<", "k k", "0"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**20),
    st.floats(),
    st.sampled_from(
        ["", "a: b", "a #b", "it's", '"', "\\n", "0x10", "1e3", "1e999", "~", "- a", "{}", "2026-05-04", "ü"]
    ),
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.text("ab:# -'\"\\{[.0\n\t", max_size=5),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)


def by_libyaml(text: str) -> Any:
    ((_, value),) = read_yaml(text)
    return value


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=3), st.booleans())
def test_what_a_dumper_writes_is_read_as_libyaml_reads_it(value: dict[str, Any], indented: bool) -> None:
    text = yaml.safe_dump(value, width=10_000, allow_unicode=indented, default_flow_style=False)

    plain = read_plain(text)

    assert plain is None or repr(plain) == repr(by_libyaml(text))


LINES = st.lists(
    st.builds(
        lambda indent, dash, rest: " " * indent + dash + rest,
        st.integers(0, 5),
        st.sampled_from(["", "", "- ", "- - ", "-"]),
        st.sampled_from(
            [
                *(
                    "a: 1",
                    "b:",
                    "c: x",
                    "a:",
                    "d: 'it''s'",
                    'e: "x"',
                    "x",
                    "{}",
                    "f: []",
                    "g: a: b",
                    "h: x # y",
                    "i: |",
                ),
                *("", "j:k", "1: 2", "'k': v", "l: &x 1", "m: *x", "n: - 1", "o: 1 ", "--- x", "# y", "yes: 1"),
                *('p: "a\\nb"', "q: 'a"),
            ]
        ),
    ),
    min_size=1,
    max_size=7,
)


@given(LINES)
def test_any_lines_are_read_as_libyaml_reads_them_or_not_at_all(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"

    plain = read_plain(text)

    assert plain is None or repr(plain) == repr(by_libyaml(text))


@given(st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=3), min_size=1, max_size=3))
def test_the_items_of_a_list_are_found_one_by_one(items: list[dict[str, Any]]) -> None:
    whole = {"apiVersion": "v1", "items": items, "kind": "List"}
    text = yaml.safe_dump(whole, width=10_000, default_flow_style=False)
    found = find_list(text)
    assert found is not None

    try:
        read = [json.loads(bytes(item)) for item in read_items(text, found.items)]
    except (yaml.YAMLError, ValueError):  # numbers without end, or half of a document: all of it is read then
        return

    value = by_libyaml(text)
    assert found.rest == {"apiVersion": "v1", "kind": "List"}
    assert json.dumps(read) == json.dumps(json.loads(json.dumps(value["items"])))


@given(LINES, LINES)
def test_odd_items_are_read_as_a_whole_text_reads_them_or_not_at_all(one: list[str], two: list[str]) -> None:
    text = "items:\n" + "".join(f"- {line}\n" if not index else f"  {line}\n" for lines in (one, two)
                                for index, line in enumerate(lines)) + "kind: List\n"  # fmt: skip
    found = find_list(text)
    try:
        read = [] if found is None else [json.loads(bytes(item)) for item in read_items(text, found.items)]
    except (yaml.YAMLError, ValueError):
        return

    assert found is None or read == json.loads(json.dumps(by_libyaml(text)["items"]))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: 1\na: 2\n", id="a key that is there twice"),
        pytest.param("a: &x 1\nb: *x\n", id="an alias"),
        pytest.param("a: |\n  b\n", id="a text of several lines"),
        pytest.param("a: x\n  b: 1\n", id="a mapping in a text"),
        pytest.param("a: .inf\n", id="a number without end"),
        pytest.param("a: 1e999\n", id="a number that is too large"),
        pytest.param("a: b\r\n", id="lines as Windows ends them"),
        pytest.param("on: 1\n", id="a key that is no text"),
        pytest.param("a:\tb\n", id="a tab"),
        pytest.param("- a\n", id="no mapping"),
        pytest.param("", id="nothing"),
        pytest.param("".join(f"{' ' * n}a:\n" for n in range(MAX_DEPTH + 1)), id="deep"),
        pytest.param("items:\n  a: 1\n", id="no list"),
    ],
)
def test_what_is_not_plain_is_left_to_libyaml(text: str) -> None:
    if "items" in text:
        assert find_list(text) is None
    else:
        assert read_plain(text) is None


@pytest.mark.parametrize(
    "text", ["items:\n- a: 1\n---\nitems:\n- b: 1\n", "%YAML 1.1\nitems:\n- a: 1\n", "items:\n- a: 1\nitems: []\n"]
)
def test_several_documents_are_no_list(text: str) -> None:
    assert find_list(text) is None
