"""Which taints are tolerated."""

import itertools

import pytest

from scheduler.api.objects import Taint, Toleration
from scheduler.api.tolerations import first_untolerated, is_tolerated, relevant, tolerates

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


def test_without_tolerations_nothing_is_tolerated() -> None:
    assert not is_tolerated(TAINT, None)
    assert not is_tolerated(TAINT, ())


def test_the_first_untolerated_taint_with_one_of_the_effects_is_found() -> None:
    soft = Taint(key="soft", effect="PreferNoSchedule")
    other = Taint(key="other", effect="NoExecute")

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


@pytest.mark.parametrize("count", [1, 40])
def test_what_may_cover_taints_covers_the_same_ones(count: int) -> None:
    made = itertools.product(("", "k", "l"), ("", "Equal", "Exists", "Lt"), ("", "v", "w"), ("", "NoSchedule"))
    tolerations = [Toleration(key=key, operator=how, value=value, effect=effect) for key, how, value, effect in made]
    taints = [Taint(key=key, value=value, effect="NoSchedule") for key in ("k", "m") for value in ("", "v")]

    for start in range(0, len(tolerations), count):
        some = tuple(tolerations[start : start + count])
        covered = [is_tolerated(taint, some) for taint in taints]
        assert [is_tolerated(taint, relevant(some, taints)) for taint in taints] == covered


def test_without_tolerations_none_is_relevant() -> None:
    assert relevant(None, {TAINT}) == ()
