"""Caches that are bounded in bytes and forget what nobody asks for."""

import sys

import pytest

from scheduler.api.objects import Toleration
from scheduler.api.recent_caches import ENTRY_BYTES, RecentCache, cache_sizes, forget_idle, weight_of


def a_cache(limit: int = 100_000) -> RecentCache[str, str]:
    return RecentCache("test", limit, weigh=lambda key, value: len(value))


def test_what_was_put_is_got() -> None:
    cache = a_cache()

    assert cache.get("a") is None
    assert cache.put("a", "value") == "value"
    assert cache.get("a") == "value"
    assert (len(cache), cache.bytes) == (1, len("value") + ENTRY_BYTES)


def test_the_bytes_never_exceed_the_limit_whatever_is_put() -> None:
    cache = a_cache()

    for number in range(1000):
        cache.put(str(number), "x" * (number * 37 % 20_000))
        assert cache.bytes <= cache.limit

    assert cache.get("999") is not None


def test_what_takes_more_than_half_of_the_limit_is_not_kept() -> None:
    cache = a_cache()
    cache.put("small", "x")

    assert cache.put("large", "x" * 50_001) == "x" * 50_001

    assert cache.get("large") is None
    assert cache.get("small") == "x"


def test_what_is_asked_for_again_and_again_stays_while_others_come_and_go() -> None:
    cache = a_cache()
    cache.put("often", "x")

    for number in range(1000):
        assert cache.get("often") == "x"
        cache.put(str(number), "x" * 1000)

    assert cache.get("0") is None


def test_what_nobody_asks_for_is_forgotten_with_the_second_call() -> None:
    cache = a_cache()
    cache.put("idle", "x")
    cache.put("busy", "x")

    forget_idle()
    assert cache.get("busy") == "x"
    forget_idle()

    assert (cache.get("idle"), cache.get("busy"), len(cache)) == (None, "x", 1)
    forget_idle()
    forget_idle()
    assert cache.bytes == 0


def test_a_cache_can_be_cleared() -> None:
    cache = a_cache()
    cache.put("old", "x")
    cache.forget_idle()
    cache.put("young", "x")

    cache.clear()

    assert (cache.get("old"), cache.get("young"), cache.bytes) == (None, None, 0)


def test_single_entries_can_be_discarded() -> None:
    cache = a_cache()
    cache.put("old", "x")
    cache.forget_idle()
    cache.put("young", "x")

    for key in ("old", "young", "unknown"):
        cache.discard(key)

    assert (cache.get("old"), cache.get("young"), cache.bytes) == (None, None, 0)


def test_sizes_are_told_by_name_for_caches_that_still_exist() -> None:
    first, second = a_cache(), a_cache()
    first.put("a", "x")
    second.put("a", "x")

    both = dict(cache_sizes())["test"]
    del second
    one = dict(cache_sizes())["test"]

    assert (both, one) == (2 * first.bytes, first.bytes)


@pytest.mark.parametrize(
    ("value", "least"),
    [
        pytest.param("x" * 1000, 1000, id="text"),
        pytest.param(b"x" * 1000, 1000, id="bytes"),
        pytest.param(tuple("x" * 100 for _ in range(10)), 1000 + 10 * 8, id="tuple"),
        pytest.param(frozenset(str(number) * 100 for number in range(10)), 1000, id="set"),
        pytest.param({str(number): "x" * 100 for number in range(10)}, 1000 + 10 * 50, id="dict"),
        pytest.param([[["x" * 1000]]], 1000, id="nested"),
        pytest.param(Toleration(key="x" * 1000), 1000, id="struct"),
        pytest.param(2**8000, 1000, id="number"),
    ],
)
def test_a_value_weighs_as_much_as_all_that_it_holds(value: object, least: int) -> None:
    assert least < weight_of(value) < 3 * least
    assert weight_of(value, value) == 2 * weight_of(value)


def test_a_value_that_is_nested_deeper_than_functions_may_be_is_weighed_too() -> None:
    deep: tuple[object, ...] = ()
    for _ in range(10 * sys.getrecursionlimit()):
        deep = (deep,)

    assert weight_of(deep) > 10 * sys.getrecursionlimit() * sys.getsizeof(deep) * 0.9
