"""Kueue's table of what is available, where a resource is a flavor's cpu; Kueue shows a negative amount as 0."""

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.quota.tree import Share, ShareTree

TABLE = json.loads(Path(__file__).with_name("kueue_available.json").read_text("utf-8"))


def as_share(name: str, parent: str, quotas: dict[str, list[int | None]]) -> Share:
    amounts: list[dict[str, int]] = [{}, {}, {}]
    for flavor, quota in quotas.items():
        for kind, amount in zip(amounts, quota, strict=False):
            if amount is not None:
                kind[flavor] = amount
    return Share(name=name, parent=parent, minimum=amounts[0], borrowing_limit=amounts[1], lending_limit=amounts[2])


def test_the_table_is_whole() -> None:
    assert len(TABLE["cases"]) == TABLE["count"] == 8


@pytest.mark.parametrize("case", TABLE["cases"].values(), ids=TABLE["cases"])
def test_as_much_is_available_as_in_kueue(case: dict[str, Any]) -> None:
    tree = ShareTree([as_share(name, *declared) for name, declared in case["shares"].items()])

    for name, amounts in case["usage"].items():
        tree.add(name, amounts)

    for name, amounts in case["available"].items():
        assert {each: max(0, tree.available(name, each)) for each in amounts} == amounts
    for name, amounts in case["potential"].items():
        assert {each: tree.potential(name, each) for each in amounts} == amounts
