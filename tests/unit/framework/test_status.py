import pytest

from scheduler.framework.status import SKIP, Code, Status, pending, unresolvable, unschedulable


@pytest.mark.parametrize(
    ("number", "label"),
    list(enumerate(("Success", "Error", "Unschedulable", "UnschedulableAndUnresolvable", "Wait", "Skip", "Pending"))),
)
def test_codes_have_the_numbers_and_names_of_kube_scheduler(number: int, label: str) -> None:
    assert Code(number).label == label


@pytest.mark.parametrize("code", Code)
def test_a_pod_is_rejected_by_three_codes(code: Code) -> None:
    rejections = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)

    assert Status(code).is_rejected == (code in rejections)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (unschedulable("too small", "too far"), Code.UNSCHEDULABLE),
        (unresolvable("too small", "too far"), Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        (pending("too small", "too far"), Code.PENDING),
    ],
)
def test_a_refusal_has_reasons(status: Status, code: Code) -> None:
    assert status == Status(code, ("too small", "too far"))


def test_reasons_are_joined_in_the_message() -> None:
    assert unschedulable("too small", "too far").message == "too small, too far"


def test_a_status_without_reasons_has_no_message() -> None:
    assert SKIP.message == ""


def test_a_status_gets_the_name_of_its_plugin_in_a_copy() -> None:
    status = unschedulable("too small")

    signed = status.by("Fit")

    assert signed == Status(Code.UNSCHEDULABLE, ("too small",), "Fit")
    assert status.plugin == ""


def test_a_status_that_has_its_plugin_stays_as_it_is() -> None:
    status = unschedulable("too small").by("Fit")

    assert status.by("Fit") is status
