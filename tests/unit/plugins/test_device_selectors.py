"""CEL over devices: what Kubernetes adds to it, and what goes wrong."""

import time
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from plugins.dynamic_resources.allocation import selectors
from plugins.dynamic_resources.allocation.selectors import Expression, NotCompiled, SelectorError, compiled, view_of
from scheduler.api.devices import Device

DRIVER = "gpu.example.com"
NOT_COMPILED = "CEL compile error: compilation failed: ERROR: <input>:"
HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)


def view(**fields: Any) -> Any:
    attributes = {
        "model": {"string": "A100"},
        "cores": {"int": 64},
        "fast": {"bool": True},
        "version": {"version": "1.10.0"},
        "other.example.com/rail": {"string": "r1"},
    }
    whole = {"name": "d", "attributes": attributes, "capacity": {"memory": {"value": "40Gi"}}, **fields}
    return view_of(DRIVER, msgspec.convert(whole, Device))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.driver == "gpu.example.com"', True),
        ('device.attributes["gpu.example.com"].model == "A100"', True),
        ('device.attributes["gpu.example.com"].model in ["H100"]', False),
        ('device.attributes["other.example.com"].rail == "r1"', True),
        ('device.attributes["gpu.example.com"].cores > 63', True),
        ('device.attributes["gpu.example.com"].cores == 64.0', True),
        ('device.attributes["gpu.example.com"].fast', True),
        ('"cores" in device.attributes["gpu.example.com"]', True),
        ('has(device.attributes["gpu.example.com"].slow)', False),
        ('device.attributes["gpu.example.com"].?slow.orValue(true)', True),
        ('cel.bind(d, device.attributes["gpu.example.com"], d.fast && d.cores == 64)', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) == 0', True),
        ('device.capacity["gpu.example.com"].memory == quantity("40960Mi")', True),
        ('device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40G"))', True),
        ('device.capacity["gpu.example.com"].memory.isLessThan(quantity("40G"))', False),
        ('device.capacity["gpu.example.com"].memory.sub(quantity("40Gi")).sign() == 0', True),
        ('quantity("50k").add(20).asInteger() == 50020', True),
        ('quantity("1500m").isInteger()', False),
        ('quantity("1500m").asApproximateFloat() == 1.5', True),
        ('isQuantity("200K")', False),
        ('device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.9.9"))', True),
        ('device.attributes["gpu.example.com"].version.compareTo(semver("1.10.0-rc.1")) == 1', True),
        ('device.attributes["gpu.example.com"].version.minor() == 10', True),
        ('semver("v01.1", true) == semver("1.1.0+build")', True),
        ("device.allowMultipleAllocations", False),
        ('device.attributes["gpu.example.com"].model.lowerAscii() == "a100"', True),
        # The functions that Kubernetes adds.
        ('cidr("10.0.0.0/8").containsIP("10.1.2.3") && !cidr("10.0.0.0/8").containsIP(ip("11.0.0.1"))', True),
        ('cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && !cidr("10.1.0.0/16").containsCIDR("10.0.0.0/8")', True),
        ('cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8") && cidr("10.1.2.3/8").ip() == ip("10.1.2.3")', True),
        ('ip("2001:DB8::1") == ip("2001:db8::1") && !ip.isCanonical("2001:DB8::1")', True),
        ('isIP("::ffff:1.2.3.4") || isIP("fe80::1%eth0") || isIP("01.2.3.4") || isCIDR("10.0.0.0/08")', False),
        (
            'ip("fe80::1").isLinkLocalUnicast() && ip("224.0.0.1").isLinkLocalMulticast() && ip("::1").family() == 6',
            True,
        ),
        ('url("https://u@[::1]:80/a b?x=1&x=2").getHost() == "[::1]:80" && url("/p").getHost() == ""', True),
        (
            'url("https://example.com:80/a b").getEscapedPath() == "/a%20b" && url("https://e:80").getPort() == "80"',
            True,
        ),
        ('url("https://e/?x=1&x=2&y").getQuery() == {"x": ["1", "2"], "y": [""]}', True),
        ('isURL("https://a:b/") || isURL("x") || isURL("") || isURL("http://h%41/")', False),
        ('device.attributes["gpu.example.com"].model.find("[0-9]+") == "100"', True),
        ('"123 abc 456".findAll("[0-9]*") == ["123", "", "", "", "", "456"]', True),
        ('"a1b22c".findAll("[0-9]+", 1) == ["1"] && "aab".findAll("a*") == ["aa", ""]', True),
        ("[1, 3].sum() == 4 && [2, 1].min() == 1 && ['a', 'b'].max() == 'b' && [1, 2].isSorted()", True),
        ('["a", "b", "b"].lastIndexOf("b") == 2 && [1].indexOf(2) == -1 && "abcb".lastIndexOf("b") == 3', True),
        ("''.split('') == [] && 'abc'.split('', 2) == ['a', 'bc'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']", True),
        ("sets.contains([1, 2], [1]) && !sets.intersects([1], [2]) && sets.equivalent([1, 1], [1])", True),
        ("lists.range(3).slice(1, 3) == [1, 2] && [[1], [2]].flatten() == [1, 2] && [2, 1].sort() == [1, 2]", True),
        ("[3, 1].sortBy(x, -x).first().value() == 3 && [1, 1].distinct().size() == 1", True),
        ('{"a": 1}.all(key, value, key == "a" && value == 1) && [4, 5].transformList(i, v, v + i) == [4, 6]', True),
        # A look-up of an unknown domain gives an empty map.
        ('"x" in device.attributes["absent.example.com"]', False),
        ("has(device.attributes['absent.example.com'].x)", False),
        ('"absent.example.com" in device.attributes', False),
        ('"gpu.example.com" in device.attributes', True),
        ("size(device.attributes) == 2", True),
        ('device.attributes.exists(domain, domain.startsWith("absent"))', False),
        ('"device.attributes[" == "device.attributes["', True),
        # Versions have the order of semver.org.
        *(
            (f'semver("{one}").isLessThan(semver("{other}"))', True)
            for one, other in pairwise(
                [
                    "1.0.0-a",
                    "1.0.0-a.1",
                    "1.0.0-a.b",
                    "1.0.0-b.2",
                    "1.0.0-b.11",
                    "1.0.0-rc.1",
                    "1.0.0",
                    "1.0.1",
                    "1.1.0",
                ]
            )
        ),
        *((f'isSemver("{text}")', False) for text in ("1.0", "01.0.0", "1.0.0-01", "1.0.0-", "v1.0.0", "1.0.0+")),
    ],
)
def test_expressions_see_a_device(expression: str, expected: bool) -> None:
    assert compiled(expression).matches(view()) is expected


def test_a_list_is_not_made_as_long_as_an_expression_asks_for() -> None:
    with pytest.raises(SelectorError, match="more than 10000 entries"):
        compiled("lists.range(1000000000).size() == 1").matches(view())


def test_a_pattern_that_would_keep_other_engines_busy_for_ever_is_searched_at_once() -> None:
    expression = Expression(f"('a'.replace('a', '{'a' * 5000}')).find('(a*)*b') == ''")

    assert expression.matches(view())


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('of.names.exists(each, each == "b")', True),
        ("of.sizes.all(size, size > 1)", False),
        ("of.flags == [true, false]", True),
        ('of.names.includes("b")', True),
        ('of.names.includes("c")', False),
        ("of.sizes.includes(2.0)", True),
        ("of.flags.includes(1)", False),
        ('of.versions.includes(semver("1.2.3"))', True),
        ('of.model.includes("A100")', True),
        ("of.model.includes(1)", False),
        ("of.sizes.includes(of.sizes)", False),
    ],
)
def test_an_attribute_may_be_a_list(expression: str, expected: bool) -> None:
    attributes = {
        "model": {"string": "A100"},
        "names": {"strings": ["a", "b"]},
        "sizes": {"ints": [1, 2]},
        "flags": {"bools": [True, False]},
        "versions": {"versions": ["1.2.3"]},
    }

    assert compiled(f'cel.bind(of, device.attributes["{DRIVER}"], {expression})').matches(
        view(attributes=attributes)
    ) is (expected)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ('device.attributes["gpu.example.com"].slow', f"CEL runtime error: no such key: slow{HINT}"),
        ('device.attributes["absent.example.com"].x == 1', f"CEL runtime error: no such key: x{HINT}"),
        (
            'device.capacity["gpu.example.com"].memory.isLessThan(semver("1.0.0"))',
            "CEL runtime error: no such overload",
        ),
        ('device.attributes["gpu.example.com"].cores / 0 == 1', "CEL runtime error: division by zero"),
        (
            'device.attributes["gpu.example.com"].model',
            "CEL runtime error: CEL result of type string could not be converted to bool",
        ),
        (
            "nothing == 1",
            f"{NOT_COMPILED}1:1: undeclared reference to 'nothing' (in container '')\n | nothing == 1\n | ^",
        ),
        (
            'size(device.attributes["x"].b) == y',
            f"{NOT_COMPILED}1:35: undeclared reference to 'y' (in container '')\n"
            ' | size(device.attributes["x"].b) == y\n | ..................................^',
        ),
        ("1", "CEL compile error: must evaluate to bool or the unknown type, not int"),
        ("[1u]", "CEL compile error: must evaluate to bool or the unknown type, not list(uint)"),
        ("null", "CEL compile error: must evaluate to bool or the unknown type, not null_type"),
        (
            '{"a": duration("1s")}',
            "CEL compile error: must evaluate to bool or the unknown type, not map(string, google.protobuf.Duration)",
        ),
    ],
)
def test_problems_are_told_in_the_words_of_kube_scheduler(expression: str, problem: str) -> None:
    with pytest.raises(SelectorError) as raised:
        compiled(expression).matches(view())

    assert str(raised.value) == problem


@pytest.mark.parametrize(
    "expression", ["", "device.", "nothing == 1", 'format.dns1123Label().validate("a").hasValue()']
)
def test_what_cannot_be_compiled_is_told_when_it_is_asked(expression: str) -> None:
    with pytest.raises(NotCompiled, match=r"^CEL compile error: compilation failed: "):
        compiled(expression).matches(view())


@pytest.mark.parametrize(
    ("attribute", "problem"),
    [
        ({"version": "1.0"}, "attribute x: parse semantic version: "),
        ({"versions": ["1.0.0", "1.0"]}, "attribute x: parse semantic version: "),
        ({}, "attribute x: unsupported attribute value"),
    ],
)
def test_an_attribute_that_cannot_be_shown_fails_every_expression(attribute: dict[str, Any], problem: str) -> None:
    with pytest.raises(SelectorError) as raised:
        view(attributes={"x": attribute})

    assert problem in str(raised.value)


def test_expressions_take_a_bounded_amount_of_memory_however_many_there_are() -> None:
    for number in range(1000):
        compiled(f'device.driver == "{number}{"x" * 1000}"')

    assert selectors._compiled.bytes <= selectors._compiled.limit
    assert compiled('device.driver == "gpu.example.com"').matches(view())


def test_an_expression_that_is_slow_is_not_evaluated_again_and_again() -> None:
    numbers = ",".join(map(str, range(99)))
    each = 'quantity("1Gi").compareTo(quantity("2Gi")) < 0'
    slow = Expression(f"[{numbers}].all(a, [{numbers}].all(b, {each}))")

    def problem() -> str:
        try:
            slow.matches(view())
        except SelectorError as error:
            return str(error)
        return ""

    started = time.thread_time()
    problems = [problem() for _ in range(1000)]

    assert problems[-1].startswith("CEL runtime error: too slow: ")
    assert problems.count("") < 100
    assert time.thread_time() - started < 2.0


def test_an_expression_may_be_slow_now_and_then() -> None:
    clock = iter(seconds for i in range(1000) for seconds in (float(i), i + 0.0019))
    quick = Expression("true", lambda: next(clock))

    assert all(quick.matches(view()) for _ in range(500))


def test_a_collection_of_garbage_within_an_evaluation_is_not_held_against_the_expression() -> None:
    pause, once_more = (0.0, 0.4), (1.0, 1.0001)
    clock = iter((*pause, *once_more) * 100)
    quick = Expression("true", lambda: next(clock))

    assert all(quick.matches(view()) for _ in range(100))


def test_an_expression_that_takes_long_twice_is_slow() -> None:
    clock = iter((0.0, 0.4, 1.0, 1.4))
    slow = Expression("true", lambda: next(clock))

    assert slow.matches(view())
    with pytest.raises(SelectorError, match="too slow: 400 ms for one device"):
        slow.matches(view())


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        (f"[{','.join(['1'] * 200)}].all(a, [{','.join(['1'] * 200)}].all(b, true))", "Iteration budget exceeded"),
        ("(" * 40 + "true" + ")" * 40, "CEL compile error"),
        ("+".join(["1"] * 40) + " > 0", "CEL compile error"),
    ],
)
def test_what_is_too_much_for_the_evaluator_is_an_error_of_the_claim(expression: str, problem: str) -> None:
    with pytest.raises(SelectorError, match=problem):
        Expression(expression).matches(view())
