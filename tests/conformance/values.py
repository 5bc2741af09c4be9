"""Quantities, durations and selectors against apimachinery's own code: `python -m tests.conformance.values`.

Generated texts and selectors are read by the oracle and by us, and must mean the same: what is refused, values rounded
to units and thousandths, overflow included, sums, which of two is larger, what matches. `--record` keeps cases that
run without Go.
"""

import random
import re
import sys
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

from scheduler.api.decoding import convert
from scheduler.api.label_selectors import parse_label_selector
from scheduler.api.objects import LabelSelector, NodeSelector
from scheduler.api.pods.pod import pod_from_dict
from scheduler.api.quantities.go_quantity import GoQuantity
from scheduler.api.quantities.quantity import is_plain, parse_quantity, to_milli, to_value
from scheduler.api.selectors import pod_selects
from scheduler.framework.duration import Duration
from tests.conformance.readings import compare
from tests.fuzz.hostile import text

Json = dict[str, Any]
RECORDED: Final = Path(__file__).parent / "values" / "generated.jsonl.gz"

_QUANTITY: Final = "0123456789.eE+-numkMGTPKi "
_LIKELY: Final = (
    "",
    "n",
    "u",
    "m",
    "k",
    "M",
    "G",
    "T",
    "P",
    "E",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "Ei",
    "e3",
    "E-3",
    "e+19",
    "e-30",
)
_ENDLESS: Final = re.compile(r"[eE][+-]?\d{4}")
"""An exponent over which apimachinery itself computes for ever."""

_KEYS: Final = ("a", "b.c/d", "zone", "n", "-", "", "A" * 64, "x/" + "y" * 63, "é")
_VALUES: Final = ("", "a", "1", "-1", "+2", "007", "9223372036854775808", "x_y.z", "-a", "A" * 64, "é", "a b")


def cases(seeds: range) -> Iterator[Json]:
    """A case for each seed."""
    for seed in seeds:
        dice = random.Random(seed)
        yield {
            "quantities": list(islice(filter(_is_quick, (_quantity(dice) for _ in count())), 20)),
            "durations": [_duration(dice) for _ in range(5)],
            "selectors": [_label_selector(dice) for _ in range(5)],
            "nodeSelectors": [_node_selector(dice) for _ in range(5)],
            "labels": [{dice.choice(_KEYS): dice.choice(_VALUES) for _ in range(dice.randint(0, 3))} for _ in range(4)],
        }


def _quantity(dice: random.Random) -> str:
    if dice.random() < 0.3:
        return text(dice, _QUANTITY)
    digits = "".join(dice.choices("0123456789", k=dice.choice((1, 2, 3, 10, 17, 18, 19, 20, 30))))
    if dice.random() < 0.5:
        at = dice.randint(0, len(digits))
        digits = f"{digits[:at]}.{digits[at:]}"
    return dice.choice(("", "", "-", "+")) + digits + dice.choice(_LIKELY)


def _duration(dice: random.Random) -> str:
    if dice.random() < 0.3:
        return text(dice, "0123456789.hmsnuµ+- ")
    units = ("ns", "us", "µs", "ms", "s", "m", "h")
    parts = [
        f"{dice.randint(0, 10**6) / dice.choice((1, 10, 1000))}{dice.choice(units)}" for _ in range(dice.randint(1, 3))
    ]
    return dice.choice(("", "-", "+")) + "".join(parts)


def _label_selector(dice: random.Random) -> Json:
    return {
        "matchLabels": {dice.choice(_KEYS): dice.choice(_VALUES) for _ in range(dice.choice((0, 0, 1)))},
        "matchExpressions": [_expression(dice) for _ in range(dice.randint(0, 2))],
    }


def _expression(dice: random.Random) -> Json:
    operator = dice.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "in", ""))
    some = [dice.choice(_VALUES) for _ in range(dice.choice((0, 1, 1, 2)))]
    return {"key": dice.choice(_KEYS), "operator": operator, "values": some or None}


def _node_selector(dice: random.Random) -> Json:
    fields = [
        {"key": "metadata.name", "operator": "In", "values": ["n"]},
        {"key": "x", "operator": "NotIn", "values": ["n"]},
    ]
    terms = [
        {
            "matchExpressions": [_expression(dice) for _ in range(dice.randint(0, 2))],
            "matchFields": dice.sample(fields, dice.choice((0, 0, 1))),
        }
        for _ in range(dice.randint(1, 2))
    ]
    return {"nodeSelectorTerms": terms}


def _is_quick(written: str) -> bool:
    """Whether apimachinery reads it in no time."""
    return len(written) <= 100 and not _ENDLESS.search(written)


def ours(case: Json) -> Json:
    """What we make of a case, as the oracle says it."""
    return {
        "quantities": _quantities(case["quantities"]),
        "durations": [_nanoseconds(each) for each in case["durations"]],
        "selectors": [_labels_matched(each, case["labels"]) for each in case["selectors"]],
        "nodeSelectors": [_nodes_matched(each, case["labels"]) for each in case["nodeSelectors"]],
    }


def _quantities(texts: list[str]) -> list[Json]:
    answers: list[Json] = []
    before, total, largest = None, None, None
    for each in texts:
        try:
            if each != each.strip():
                raise ValueError("ParseQuantity refuses it; UnmarshalJSON, which we are, trims it before")
            nanos, exact = parse_quantity(each), GoQuantity.parse(each)
        except ValueError:
            nothing = {"order": 0, "whole": None, "sum": [0, 0], "largest": [0, 0]}
            answers.append({"ok": False, "value": 0, "milli": 0, **nothing})
            before = None
            continue
        order = 0 if before is None else (nanos > before) - (nanos < before)
        total = exact if total is None else total + exact
        largest = exact if largest is None else largest.raised_to(exact)
        quick = (to_value(nanos), to_milli(nanos)) if is_plain(nanos) else (exact.value(), exact.milli())
        answers.append(
            {
                "ok": True,
                "value": quick[0],
                "milli": quick[1],
                "order": order,
                "whole": exact.whole(),
                "sum": [total.value(), total.milli()],
                "largest": [largest.value(), largest.milli()],
            }
        )
        before = nanos
    return answers


def _nanoseconds(written: str) -> int | None:
    try:
        return round(Duration.parse(written) * 1e9)
    except ValueError:
        return None


def _labels_matched(selector: Json, objects: list[dict[str, str]]) -> Json:
    try:
        parsed = parse_label_selector(convert(selector, LabelSelector))
    except ValueError as error:
        return {"error": str(error), "matches": None}
    return {"error": "", "matches": [parsed.matches(each) for each in objects]}


def _nodes_matched(selector: Json, objects: list[dict[str, str]]) -> Json:
    convert(selector, NodeSelector)
    required = {"requiredDuringSchedulingIgnoredDuringExecution": selector}
    pod = pod_from_dict({"spec": {"affinity": {"nodeAffinity": required}}})
    matches, problem = [], ""
    for each in objects:
        try:
            matches.append(pod_selects(pod, each, "n"))
        except ValueError as error:
            problem = str(error)
            matches.append(False)
    return {"error": problem, "matches": matches}


def differences(case: Json, expected: Json) -> list[str]:
    """A line for each thing that means something else to us."""
    found = ours(case)
    return [
        f"{kind} {written!r}: apimachinery {theirs!r}, ours {mine!r}"
        for kind in found
        for written, theirs, mine in zip(case[kind], expected[kind], found[kind], strict=True)
        if not _same(kind, theirs, mine)
    ]


def _same(kind: str, theirs: Any, mine: Any) -> bool:
    if kind == "durations" and theirs is not None and mine is not None:
        return bool(
            abs(theirs - mine) <= max(3, abs(theirs) * 1e-12)
        )  # Go cuts each part off, and a float has 15 digits
    return bool(theirs == mine)


if __name__ == "__main__":
    sys.exit(compare("values", cases, differences, RECORDED, 2000))
