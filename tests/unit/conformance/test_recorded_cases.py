"""Loadmaster against the recorded verdicts of kube-scheduler. `make conformance` compares many more, but needs Go."""

import pytest

from tests.conformance import ours
from tests.conformance.compare import differences
from tests.conformance.recorded import Json, read_cases


@pytest.mark.parametrize("recorded", [pytest.param(each, id=each["case"]["name"]) for each in read_cases()])
def test_the_verdict_is_that_of_kube_scheduler(recorded: Json, caplog: pytest.LogCaptureFixture) -> None:
    found = differences(recorded["expected"], ours.judge(recorded["case"]))
    faults = [vars(record)["err"] for record in caplog.records if record.getMessage().startswith("A plugin failed")]

    assert not found, "\n" + "\n".join(str(difference) for difference in found[:10])
    # However odd the pods are, that is not the plugins' fault; a profile without their PreFilter is the operator's.
    assert not [fault for fault in faults if not fault.endswith(": not found")]


def test_some_pods_get_devices_for_extended_resources() -> None:
    verdicts = [pod for recorded in read_cases() for pod in recorded["expected"]["pods"]]
    given = [pod for pod in verdicts if any("extended" in node for node in pod["nodes"].values())]

    assert len(given) >= 4
