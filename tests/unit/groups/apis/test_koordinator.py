"""Gangs by the annotations of Koordinator."""

import pytest

from tests.unit.groups.coscheduling import Coscheduled

PREFIX = "gang.scheduling.koordinator.sh"


def annotations(minimum: str = "3", **further: str) -> dict[str, str]:
    said = {"name": "g", "min-available": minimum, **further}
    return {f"{PREFIX}/{key}": value for key, value in said.items()}


async def test_the_pods_of_a_gang_start_together() -> None:
    stage = Coscheduled()
    stage.see(["p0", "p1"], annotations=annotations())
    await stage.schedule()
    assert stage.bound == {}

    stage.see(["p2"], annotations=annotations())
    await stage.schedule()

    assert len(stage.bound) == 3


def test_a_gang_waits_as_long_as_its_pods_say() -> None:
    stage = Coscheduled()
    (pod,) = stage.see(["p0"], annotations=annotations(**{"waiting-time": "90s"}))

    group = stage.under_test.framework.handle.pod_groups.of(pod)

    assert group is not None
    assert group.timeout_seconds == 90


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (annotations("many"), f'the annotation {PREFIX}/min-available is "many", which is not a number of pods'),
        (
            annotations(**{"waiting-time": "soon"}),
            f'the annotation {PREFIX}/waiting-time is "soon", which is no',
        ),
    ],
)
def test_what_cannot_be_read_is_said(said: dict[str, str], problem: str) -> None:
    stage = Coscheduled()
    (pod,) = stage.see(["p0"], annotations=said)

    assert problem in stage.refusal(pod)


def test_pods_that_need_different_numbers_are_not_tried() -> None:
    stage = Coscheduled()
    (pod, _) = (*stage.see(["p0"], annotations=annotations("1")), *stage.see(["p1"], annotations=annotations("2")))

    assert 'min-available, got: "1" and "2"' in stage.refusal(pod)
