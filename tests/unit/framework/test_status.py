import pytest

from scheduler.framework.status import Code, Status, pending, unresolvable, unschedulable


@pytest.mark.parametrize(
    ("number", "label"),
    list(enumerate(("Success", "Error", "Unschedulable", "UnschedulableAndUnresolvable", "Wait", "Skip", "Pending"))),
)
def test_codes_have_the_numbers_and_names_of_kube_scheduler(number: int, label: str) -> None:
    assert Code(number).label == label


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (unschedulable("too small", "too far"), Code.UNSCHEDULABLE, "too small, too far"),
        (unresolvable("too small"), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "too small"),
        (pending(), Code.PENDING, ""),
    ],
)
def test_reasons_are_joined_in_the_message(status: Status, code: Code, message: str) -> None:
    assert (status.code, status.message) == (code, message)


@pytest.mark.parametrize("code", Code)
def test_a_pod_is_rejected_by_three_codes(code: Code) -> None:
    rejections = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)

    assert Status(code).is_rejected == (code in rejections)


def test_a_status_gets_the_name_of_its_plugin_in_a_copy() -> None:
    status = unschedulable("too small")

    signed = status.by("Fit")

    assert signed == Status(Code.UNSCHEDULABLE, ("too small",), "Fit")
    assert status.plugin == ""
    assert signed.by("Fit") is signed
