"""Verdicts as columns say the same as verdicts one by one."""

from typing import Any

import numpy as np
import orjson
import pytest

from scheduler.runtime.scoring import Scores
from scheduler.simulate.node_evaluator import FEASIBLE, NOT_ASKED, NodeVerdicts
from scheduler.simulate.output import as_json

REFUSAL = {"code": "Unschedulable", "plugin": "Fit", "reasons": ['not "enough": 0', "100% full"]}
SCORED = Scores(np.array([7, 0]), {"Fit": np.array([5, 0]), "50%": np.array([2, 0])})


@pytest.mark.parametrize(
    ("scores", "first", "last"),
    [
        pytest.param(
            SCORED,
            {"code": "Success", "scores": {"Fit": 5, "50%": 2}, "total": 7},
            {"code": "Success", "scores": {"Fit": 0, "50%": 0}, "total": 0},
            id="scored",
        ),
        pytest.param(
            Scores(np.array([0, 0]), {}),
            {"code": "Success", "scores": {}, "total": 0},
            {"code": "Success", "scores": {}, "total": 0},
            id="scored by no plugin",
        ),
        pytest.param(None, {"code": "Success"}, {"code": "Success"}, id="not scored"),
    ],
)
def test_verdicts_are_a_mapping_by_name(scores: Scores | None, first: Any, last: Any) -> None:
    which = np.array([FEASIBLE, 1, FEASIBLE, NOT_ASKED], np.int32)
    verdicts = NodeVerdicts(['n"1', "n2", "n3", "n4"], which, [REFUSAL], scores)
    plain = {'n"1': first, "n2": REFUSAL, "n3": last}
    document: dict[str, Any] = {"notes": ["a"], "pods": [{"name": "p", "nodes": verdicts}, {"name": "r"}]}

    text = "".join(as_json(document)).encode()

    assert verdicts == plain
    assert len(verdicts) == 3
    assert "n4" not in verdicts
    document["pods"][0]["nodes"] = plain
    assert text == orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def test_a_document_without_pods_is_one_too() -> None:
    assert "".join(as_json({"pods": []})) == '{\n  "pods": []\n}\n'
