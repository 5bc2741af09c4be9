"""Verdicts as columns say the same as verdicts one by one."""

from typing import Any

import numpy as np
import orjson
import pytest

from scheduler.runtime.scoring import Scores
from scheduler.simulate.output import as_json
from scheduler.simulate.verdicts import FEASIBLE, NOT_ASKED, NodeOrder, NodeVerdicts

ORDER = NodeOrder({"n2": 0, 'n"1': 2, "n3": 1, "n4": 3})
REFUSAL = {"code": "Unschedulable", "plugin": "Fit", "reasons": ['not "enough": 0', "100% full"]}
SCORED = Scores(np.array([7, 0]), {"Fit": np.array([5, 0]), "50%": np.array([2, 0])})


def verdicts(scores: Scores | None) -> NodeVerdicts:
    """By name: n"1 fits, n2 is refused, n3 fits, n4 was not asked."""
    return NodeVerdicts(ORDER, np.array([FEASIBLE, 1, FEASIBLE, NOT_ASKED], np.int32), [REFUSAL], scores)


def test_verdicts_are_a_mapping_by_name() -> None:
    assert verdicts(SCORED) == {
        'n"1': {"code": "Success", "scores": {"Fit": 5, "50%": 2}, "total": 7},
        "n2": REFUSAL,
        "n3": {"code": "Success", "scores": {"Fit": 0, "50%": 0}, "total": 0},
    }
    assert len(verdicts(SCORED)) == 3
    assert "n4" not in verdicts(SCORED)


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param(SCORED, id="scored"),
        pytest.param(Scores(np.array([0, 0]), {}), id="scored by nobody"),
        pytest.param(None, id="not scored"),
    ],
)
def test_the_text_is_that_of_the_verdicts_one_by_one(scores: Scores | None) -> None:
    of_columns, of_nobody = verdicts(scores), NodeVerdicts(NodeOrder({}), np.array([], np.int32), [], None)
    pods: list[dict[str, Any]] = [
        {"name": "p", "nodes": of_columns, "message": ""},
        {"name": "q", "nodes": of_nobody},
        {"name": "r"},
    ]
    plain = [{**pod, "nodes": dict(pod["nodes"])} if "nodes" in pod else pod for pod in pods]

    text = "".join(as_json({"notes": ["a"], "pods": pods}))

    assert text.encode() == orjson.dumps({"notes": ["a"], "pods": plain}, option=orjson.OPT_INDENT_2) + b"\n"


def test_a_document_without_pods_is_one_too() -> None:
    assert "".join(as_json({"pods": []})) == '{\n  "pods": []\n}\n'
