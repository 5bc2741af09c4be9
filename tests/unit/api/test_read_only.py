"""What cannot be written to: dicts and lists of parsed JSON, and the fields of structs."""

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import orjson
import pytest

from scheduler.api.decoding import convert
from scheduler.api.objects import ObjectMeta, Wire
from scheduler.api.read_only import ReadOnlyDict, ReadOnlyList, ReadOnlyStruct, frozen
from scheduler.api.wording.text import to_json

CONTENT = {"spec": {"pools": [{"name": "blue"}, ["a"]]}}

WRITES: list[Callable[[Any], object]] = [
    lambda it: it.__setitem__("spec", {}),
    lambda it: it["spec"].update(pools=[]),
    lambda it: it["spec"].pop("pools"),
    lambda it: it["spec"].setdefault("more", 1),
    lambda it: it["spec"].__ior__({"more": 1}),
    lambda it: it["spec"].__delitem__("pools"),
    lambda it: it["spec"].popitem(),
    lambda it: it.clear(),
    lambda it: it["spec"]["pools"].append(1),
    lambda it: it["spec"]["pools"].__iadd__([1]),
    lambda it: it["spec"]["pools"].__imul__(2),
    lambda it: it["spec"]["pools"].__setitem__(0, 1),
    lambda it: it["spec"]["pools"].__delitem__(0),
    lambda it: it["spec"]["pools"].insert(0, 1),
    lambda it: it["spec"]["pools"].extend([1]),
    lambda it: it["spec"]["pools"].pop(),
    lambda it: it["spec"]["pools"].remove(["a"]),
    lambda it: it["spec"]["pools"].reverse(),
    lambda it: it["spec"]["pools"].sort(key=str),
    lambda it: it["spec"]["pools"].clear(),
    lambda it: it["spec"]["pools"][0].__setitem__("name", "green"),
    lambda it: it["spec"]["pools"][1].append("b"),
]


@pytest.mark.parametrize("write", WRITES)
def test_nothing_in_parsed_json_can_be_written_to(write: Callable[[Any], object]) -> None:
    it = frozen(CONTENT)

    with pytest.raises(TypeError, match="is read-only, as the scheduler itself uses it: change a copy"):
        write(it)

    assert it == CONTENT


def test_every_method_of_dicts_and_lists_that_writes_is_refused() -> None:
    harmless = {"__init__", "__new__", "__getattribute__", "__class__"}
    writing = {
        dict: {"__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"},
        list: {name for name in dir(list) if name in dir(bytearray) and name not in dir(bytes)} | {"sort"},
    }

    for plain, read_only in ((dict, ReadOnlyDict), (list, ReadOnlyList)):
        own = {name for name in writing[plain] - harmless if getattr(read_only, name) is not getattr(plain, name)}
        assert own == writing[plain] - harmless - {"__alloc__", "copy"}, plain


def test_it_is_json_as_any_other_and_a_copy_is_ones_own() -> None:
    it = frozen(CONTENT)

    mine = copy.deepcopy(it)
    mine["spec"]["pools"][0]["name"] = "green"

    assert it == CONTENT
    assert json.loads(json.dumps(it)) == msgspec.json.decode(msgspec.json.encode(it)) == orjson.loads(to_json(it)) == it
    assert (type(copy.copy(it)), type(it | {}), type(mine["spec"]["pools"])) == (dict, dict, list)
    assert convert(it, dict[str, dict[str, Any]]) == CONTENT


def test_it_may_be_nested_as_deeply_as_anybody_likes() -> None:
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]

    assert type(frozen(deep)[0][0][0]) is ReadOnlyList


# Fields of structs.


class Thing(Wire, frozen=True):
    options: Mapping[str, str] | None = None


def test_a_field_that_is_a_dict_is_read_only() -> None:
    thing = msgspec.json.decode(b'{"options": {"a": "b"}}', type=Thing)

    with pytest.raises(TypeError, match="does not support item assignment"):
        thing.options["a"] = "c"  # type: ignore[index]

    assert thing == Thing(options={"a": "b"})
    assert Thing().options is None


@pytest.mark.parametrize("written", ["{}", '{"labels": null}', '{"labels": {}}'])
def test_labels_are_never_none(written: str) -> None:
    metadata = msgspec.json.decode(written, type=ObjectMeta)

    assert metadata.labels == {}
    with pytest.raises(TypeError):
        metadata.labels["a"] = "b"  # type: ignore[index]


def test_what_is_read_of_one_struct_may_be_put_into_another_and_written() -> None:
    one = Thing(options={"a": "b"})
    other = Thing(options=one.options)

    assert other == one
    assert to_json({"thing": other, "options": other.options}) == b'{"thing":{"options":{"a":"b"}},"options":{"a":"b"}}'


@pytest.mark.parametrize(
    "kind", [list[str], set[str], bytearray, tuple[dict[str, str], ...], dict[str, list[str]], list[str] | None]
)
def test_a_struct_with_a_field_that_could_be_written_to_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"Odd\.field: .* can be written to: a tuple cannot"):
        type("Odd", (ReadOnlyStruct,), {"__annotations__": {"field": kind}}, frozen=True)
