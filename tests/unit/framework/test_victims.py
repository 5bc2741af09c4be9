"""The fewest victims: candidates come back as far as they can be spared."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from scheduler.cycle.steps import in_one_go
from scheduler.framework.preemption.victims import needed


class Space:
    """So much has to be free on each of some nodes; candidates have a node and a size."""

    def __init__(self, wanted: Sequence[int], gone: Sequence[tuple[int, int]]) -> None:
        self.wanted = wanted
        self.gone = list(gone)
        self.asked = 0

    def put_back(self, some: Sequence[tuple[int, int]]) -> None:
        for each in some:
            self.gone.remove(each)

    def remove(self, some: Sequence[tuple[int, int]]) -> None:
        self.gone += some

    def fits(self) -> bool:
        self.asked += 1
        free = [sum(size for node, size in self.gone if node == number) for number in range(len(self.wanted))]
        return all(a >= b for a, b in zip(free, self.wanted, strict=True))


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=12),
)
def test_many_at_once_leave_the_same_as_one_by_one(wanted: list[int], candidates: list[tuple[int, int]]) -> None:
    all_gone = Space(wanted, candidates)
    if not all_gone.fits():
        return
    singly, at_once = Space(wanted, candidates), Space(wanted, candidates)

    one_by_one = in_one_go(needed([[each] for each in candidates], singly))

    assert in_one_go(needed([candidates], at_once)) == one_by_one
    assert sorted(at_once.gone) == sorted(singly.gone) == sorted(one_by_one)
    assert Space(wanted, one_by_one).fits()


def test_of_many_that_can_be_spared_it_is_asked_few_times() -> None:
    space = Space([1], [(0, 1)] * 1_000)

    assert in_one_go(needed([list(space.gone)], space)) == [(0, 1)]
    assert space.asked < 25
