"""Our scheduling queue against recorded steps of kube-scheduler's. `make conformance` runs many more scripts."""

import pytest

from tests.conformance.queue import QUEUES, differences
from tests.conformance.queue_ours import run_script
from tests.conformance.recorded import Json, read_cases

RECORDED = list(read_cases(QUEUES))


@pytest.mark.parametrize("recorded", [pytest.param(each, id=each["case"]["name"]) for each in RECORDED])
def test_pods_go_where_kube_scheduler_puts_them(recorded: Json) -> None:
    found = differences(recorded["case"], recorded["expected"], run_script(recorded["case"]["queue"]))

    assert not found, "\n" + "\n".join(str(difference) for difference in found)
