import pytest

from scheduler.framework.cycle_state import CycleState


class Count:
    """State that has a copy of its own in each what-if."""

    def __init__(self, pods: int) -> None:
        self.pods = pods

    def clone(self) -> "Count":
        return Count(self.pods)


def test_what_was_written_is_read() -> None:
    state = CycleState()

    state.write("Fit", {"cpu": 1})

    assert state.read("Fit", dict) == {"cpu": 1}


def test_the_last_value_under_a_key_counts() -> None:
    state = CycleState()

    state.write("Fit", 1)
    state.write("Fit", 2)

    assert state.read("Fit", int) == 2


def test_reading_what_nobody_wrote_is_an_error() -> None:
    with pytest.raises(LookupError):
        CycleState().read("Fit", dict)


def test_getting_what_nobody_wrote_gives_nothing() -> None:
    assert CycleState().get("Fit", dict) is None


def test_a_value_of_another_kind_is_an_error() -> None:
    state = CycleState()
    state.write("Fit", [1])

    with pytest.raises(TypeError, match="'Fit' holds a list, not a dict"):
        state.read("Fit", dict)
    with pytest.raises(TypeError):
        state.get("Fit", dict)


def test_a_clone_has_its_own_copy_of_what_can_be_cloned() -> None:
    state = CycleState()
    state.write("Spread", Count(1))

    clone = state.clone()
    clone.read("Spread", Count).pods = 5

    assert state.read("Spread", Count).pods == 1


def test_a_clone_shares_all_other_values() -> None:
    state, shared = CycleState(), [1]
    state.write("Fit", shared)

    assert state.clone().read("Fit", list) is shared


def test_what_is_written_to_a_clone_stays_there() -> None:
    state = CycleState()
    state.write("Fit", 1)

    clone = state.clone()
    clone.write("Fit", 2)
    clone.write("New", 3)

    assert state.read("Fit", int) == 1
    assert state.get("New", int) is None


def test_a_clone_skips_what_was_skipped_and_may_skip_more() -> None:
    state = CycleState()
    state.skip_filter |= {"A"}
    state.skip_score |= {"B"}
    state.skip_pre_bind |= {"C"}

    clone = state.clone()
    state.skip_filter |= {"D"}

    assert (clone.skip_filter, clone.skip_score, clone.skip_pre_bind) == tuple(map(frozenset, "ABC"))


def test_a_clone_is_timed_like_the_original() -> None:
    state = CycleState()
    state.record_plugin_metrics = True

    assert state.clone().record_plugin_metrics


def test_pods_to_activate_in_a_clone_are_activated() -> None:
    state = CycleState()

    state.clone().pods_to_activate.add("uid")

    assert state.pods_to_activate == {"uid"}


def test_the_error_names_the_key_or_says_what_it_is_told_to() -> None:
    with pytest.raises(LookupError, match=r'^reading "PreFilterFit" from cycleState: not found$'):
        CycleState().read("PreFilterFit", dict)
    with pytest.raises(LookupError, match=r'^no "PreFilterFit" here$'):
        CycleState().read("PreFilterFit", dict, 'no "{key}" here')
