"""Which suggestions are left out, as another one contains no more than a part of them."""

from typing import Any

import pytest

from scheduler.explain.documents import Suggestion
from scheduler.explain.explanation import with_smallest

CPU = "/spec/containers/0/resources/requests/cpu"


def less(amount: str, count: int = 1, command: str = "", path: str = CPU, **more: Any) -> Suggestion:
    patch = [{"op": "replace", "path": path, "value": amount}]
    return Suggestion(f"{amount} {path} {command}", count, ["n"], patch, command=command, **more)


def kept(*suggestions: Suggestion) -> list[Suggestion]:
    found: list[Suggestion] = []
    for each in suggestions:
        found = with_smallest(found, each)
    return found


SMALL, LARGE = less("3"), less("500m")


@pytest.mark.parametrize(
    ("suggestions", "expected"),
    [
        pytest.param([LARGE, SMALL], [SMALL], id="the larger one comes first"),
        pytest.param([SMALL, LARGE], [SMALL], id="the smaller one comes first"),
        pytest.param([SMALL, less("1", count=2)], [SMALL, less("1", count=2)], id="the larger one helps on more nodes"),
        pytest.param([SMALL, less("1", 1, "kubectl uncordon n")], [SMALL], id="with a command besides"),
        pytest.param([SMALL, less("1", path="/spec/other")], [SMALL, less("1", path="/spec/other")], id="another path"),
        pytest.param([SMALL, SMALL], [SMALL], id="the same twice"),
        pytest.param(
            [SMALL, less("1", object={"kind": "Deployment"})],
            [SMALL, less("1", object={"kind": "Deployment"})],
            id="of another object",
        ),
        pytest.param(
            [Suggestion("one more node", 1, ["n"]), SMALL],
            [Suggestion("one more node", 1, ["n"]), SMALL],
            id="what has neither patch nor command is contained in nothing",
        ),
    ],
)
def test_a_suggestion_that_contains_another_one_is_left_out(
    suggestions: list[Suggestion], expected: list[Suggestion]
) -> None:
    assert kept(*suggestions) == expected
