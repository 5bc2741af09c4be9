"""Which taints are tolerated."""

import itertools

import pytest

from scheduler.api.objects import Taint, Toleration
from scheduler.api.pods.tolerations import first_untolerated, is_tolerated, relevant, tolerates, untolerated

TAINT = Taint(key="k", value="v", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration(key="k", operator="Equal", value="v", effect="NoSchedule"), True, id="all equal"),
        pytest.param(Toleration(key="k", value="v"), True, id="an empty operator is Equal, an empty effect is any"),
        pytest.param(Toleration(key="k", operator="Exists"), True, id="Exists takes any value"),
        pytest.param(Toleration(operator="Exists"), True, id="no key and Exists is everything"),
        pytest.param(Toleration(value="v"), True, id="no key and the same value"),
        pytest.param(Toleration(key="k", value="w"), False, id="another value"),
        pytest.param(Toleration(key="j", operator="Exists"), False, id="another key"),
        pytest.param(Toleration(key="k", operator="Exists", effect="NoExecute"), False, id="another effect"),
        pytest.param(Toleration(key="k", operator="Lt", value="5"), False, id="Lt"),
        pytest.param(Toleration(key="k", operator="exists"), False, id="an unknown operator"),
    ],
)
def test_a_toleration_covers_a_taint(toleration: Toleration, expected: bool) -> None:
    assert tolerates(toleration, TAINT) == expected
    assert is_tolerated(TAINT, [Toleration(key="other"), toleration]) == expected


@pytest.mark.parametrize(
    ("operator", "limit", "value", "expected"),
    [
        pytest.param("Lt", "5", "4", True, id="less"),
        pytest.param("Lt", "5", "5", False, id="not less"),
        pytest.param("Gt", "-5", "-4", True, id="more"),
        pytest.param("Gt", "5", "5", False, id="not more"),
        pytest.param("Gt", "9", "10", True, id="as numbers, not as text"),
        pytest.param("Gt", "0", "", False, id="a taint without a value"),
        pytest.param("Gt", "0", "gold", False, id="a taint whose value is no number"),
        pytest.param("Gt", "0", "05", False, id="a leading zero"),
        pytest.param("Gt", "-0", "5", False, id="minus zero"),
        pytest.param("Gt", "+1", "5", False, id="a plus sign"),
        pytest.param("Gt", "0", "\u0665", False, id="other digits"),
        pytest.param("Lt", "9223372036854775807", "-9223372036854775808", True, id="the ends of 64 bits"),
        pytest.param("Lt", "9223372036854775808", "1", False, id="beyond 64 bits"),
        pytest.param("Lt", "9" * 5_000, "1", False, id="thousands of digits"),
        pytest.param("Ge", "1", "5", False, id="an unknown comparison"),
    ],
)
def test_numbers_are_compared_if_the_gate_is_on(operator: str, limit: str, value: str, expected: bool) -> None:
    toleration = Toleration(key="k", operator=operator, value=limit)
    taint = Taint(key="k", value=value, effect="NoSchedule")

    assert tolerates(toleration, taint, by_number=True) == expected
    assert not tolerates(toleration, taint)


def test_the_first_untolerated_taint_with_one_of_the_effects_is_found() -> None:
    soft = Taint(key="soft", effect="PreferNoSchedule")
    other = Taint(key="other", effect="NoExecute")

    assert relevant(None, {TAINT}) == ()
    assert not is_tolerated(TAINT, None)
    assert first_untolerated([soft, TAINT, other], None) == TAINT
    assert first_untolerated([soft, TAINT, other], [Toleration(key="k", operator="Exists")]) == other
    assert first_untolerated([soft], None) is None
    assert first_untolerated([soft, TAINT], None, ["PreferNoSchedule"]) == soft


def test_what_may_cover_some_taints_is_found_among_thousands_of_tolerations() -> None:
    others = [Toleration(key=f"other-{number}", operator="Exists") for number in range(1_000)]
    wrong = [Toleration(key="k", operator="Equal", value=f"{number}") for number in range(1_000)]
    by_key, by_value, general = (
        Toleration(key="k", operator="Exists"),
        Toleration(value="v"),
        Toleration(operator="Exists"),
    )

    assert list(relevant([*others, by_key, *wrong, by_value, general, by_key], {TAINT})) == [by_key, by_value, general]
    assert list(relevant([*others, *wrong], {TAINT})) == []


@pytest.mark.parametrize("by_number", [False, True])
@pytest.mark.parametrize("count", [1, 60])
def test_however_many_tolerations_there_are_they_cover_the_same_taints(count: int, by_number: bool) -> None:
    operators, values = ("", "Exists", "Lt", "Gt"), ("", "v", "3", "7")
    made = itertools.product(("", "k", "l"), values, operators, ("", "NoSchedule"))
    tolerations = [Toleration(key=key, operator=how, value=value, effect=effect) for key, value, how, effect in made]
    taints = [Taint(key=key, value=value, effect="NoSchedule") for key in ("k", "m") for value in (*values, "1", "5")]

    for start in range(0, len(tolerations), count):
        some = tuple(tolerations[start : start + count])
        assert untolerated(taints, some, by_number=by_number) == [
            taint for taint in taints if not is_tolerated(taint, some, by_number=by_number)
        ]


def test_of_thousands_of_comparisons_the_widest_are_looked_at() -> None:
    below = [Toleration(key="k", operator="Lt", value=f"{number}") for number in range(1_000)]
    above = [Toleration(key="k", operator="Gt", value=f"{number}") for number in range(2_000, 3_000)]

    assert list(relevant([*below, *above], {TAINT}, by_number=True)) == [below[-1], above[0]]
