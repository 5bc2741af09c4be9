"""A plan is a pure function of seed and number."""

from tests.chaos.faults import WORKS
from tests.chaos.load import batches, nodes
from tests.chaos.plan import KINDS, PROCESSES, plan_round
from tests.chaos.test_rounds import ROUNDS, SEED


def test_the_same_seed_and_number_make_the_same_round() -> None:
    first, again = plan_round(7, 3), plan_round(7, 3)

    assert first == again
    assert str(first) == str(again)
    assert batches(first) == batches(again)
    assert [node["metadata"]["labels"] for node in nodes(first)] == [
        node["metadata"]["labels"] for node in nodes(again)
    ]


def test_other_seeds_and_numbers_make_other_rounds() -> None:
    assert len({str(plan_round(seed, number)) for seed in range(5) for number in range(1, 21)}) == 100


def test_the_rounds_that_make_test_plays_see_each_kind() -> None:
    seen = {fault.kind for number in range(1, ROUNDS + 1) for fault in plan_round(SEED, number).faults}

    assert seen == KINDS.keys()


def test_a_round_has_several_faults_and_stops_the_same_process_once() -> None:
    for number in range(1, 201):
        groups = [KINDS[fault.kind].group for fault in plan_round(1, number).faults]
        stopped = [group for group in groups if group]

        assert len(groups) >= 4
        assert len(stopped) == len(set(stopped))


def test_every_kind_of_fault_can_be_done() -> None:
    assert WORKS.keys() == KINDS.keys()


def test_most_faults_of_one_replica_hit_the_leader_and_some_a_standby() -> None:
    faults = [fault for number in range(1, 201) for fault in plan_round(1, number).faults if KINDS[fault.kind].replica]
    at_the_leader = sum(fault.role == "leader" for fault in faults) / len(faults)

    assert 0.6 < at_the_leader < 0.8


def test_without_ends_nothing_happens_to_processes_and_the_rest_stays() -> None:
    for plan in (plan_round(1, number) for number in range(1, 30)):
        left = {fault.kind for fault in plan.without_ends().faults}

        assert left == {fault.kind for fault in plan.faults} - PROCESSES.keys()
        assert all(plan.has(kind) for kind in left)
