import pytest

from scheduler.framework.cycle_state import CycleState


class Count:
    """State that has a copy of its own in each what-if."""

    def __init__(self, pods: int) -> None:
        self.pods = pods

    def clone(self) -> "Count":
        return Count(self.pods)


def test_the_last_value_under_a_key_counts() -> None:
    state = CycleState()

    state.write("Fit", 1)
    state.write("Fit", 2)

    assert state.read("Fit", int) == 2


def test_a_value_of_another_kind_is_an_error() -> None:
    state = CycleState()
    state.write("Fit", [1])

    with pytest.raises(TypeError, match="'Fit' holds a list, not a dict"):
        state.read("Fit", dict)
    with pytest.raises(TypeError):
        state.get("Fit", dict)


def test_a_clone_has_its_own_copy_of_what_can_be_cloned_and_shares_the_rest() -> None:
    state = CycleState()
    state.write("Spread", Count(1))

    shared = [1]
    state.write("Fit", shared)

    clone = state.clone()
    clone.read("Spread", Count).pods = 5

    assert state.read("Spread", Count).pods == 1
    assert clone.read("Fit", list) is shared


def test_what_is_written_to_a_clone_stays_there() -> None:
    state = CycleState()
    state.write("Fit", 1)

    clone = state.clone()
    clone.write("Fit", 2)
    clone.write("New", 3)

    assert state.read("Fit", int) == 1
    assert state.get("New", int) is None


def test_a_clone_skips_and_times_what_the_original_does_and_its_pods_are_activated_with_it() -> None:
    state = CycleState()
    state.skip_filter |= {"A"}
    state.skip_score |= {"B"}
    state.skip_pre_bind |= {"C"}
    state.record_plugin_metrics = True

    clone = state.clone()
    state.skip_filter |= {"D"}
    clone.pods_to_activate.add("uid")

    assert (clone.skip_filter, clone.skip_score, clone.skip_pre_bind) == tuple(map(frozenset, "ABC"))
    assert clone.record_plugin_metrics
    assert state.pods_to_activate == {"uid"}


def test_the_error_names_the_key_or_says_what_it_is_told_to() -> None:
    with pytest.raises(LookupError, match=r'^reading "PreFilterFit" from cycleState: not found$'):
        CycleState().read("PreFilterFit", dict)
    with pytest.raises(LookupError, match=r'^no "PreFilterFit" here$'):
        CycleState().read("PreFilterFit", dict, 'no "{key}" here')
