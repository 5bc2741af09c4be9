"""Who leads, when: replicas against a server, in virtual time. Times in the names are of SETTINGS: 15 s, 10 s, 2 s."""

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes.aio.leaderelection import leaderelection as library

from scheduler.process.virtual_time import run_virtually
from tests.fakes import Metrics
from tests.unit.kube.lease_server import Fault, LeaseServer, Replica

A_LEASE = {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 3, "renewTime": "t0"}
RELEASED = {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3}


def virtual(test: Callable[..., Any]) -> Callable[..., None]:
    """Run a test in virtual time."""

    @functools.wraps(test)
    def wrapped(**given: Any) -> None:
        run_virtually(test(**given))

    return wrapped


def now() -> float:
    return asyncio.get_running_loop().time()


def a_replica(server: LeaseServer, name: str, **wishes: Any) -> Replica:
    return Replica(server, name, Metrics(), **wishes).start()


async def seconds_until(condition: Callable[[], bool], limit: float = 60.0, step: float = 0.01) -> float:
    began = now()
    while not condition():
        assert now() - began < limit, "it did not happen"
        await asyncio.sleep(step)
    return now() - began


async def a_leader(server: LeaseServer, name: str = "a", **wishes: Any) -> Replica:
    server.put(**RELEASED)
    replica = a_replica(server, name, **wishes)
    await seconds_until(lambda: replica.leads)
    return replica


@virtual
async def test_a_released_lease_is_taken_at_once_and_its_fields_are_kept() -> None:
    server = LeaseServer()
    server.put(**RELEASED, strategy="OldestEmulationVersion", unknown={"deep": [1]})
    replica = a_replica(server, "a", time_of_day=lambda: 1_800_000_000.25)

    assert await seconds_until(lambda: replica.leads) < 0.05
    assert server.spec == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 4,
        "acquireTime": "2027-01-15T08:00:00.250000Z",
        "renewTime": "2027-01-15T08:00:00.250000Z",
        "strategy": "OldestEmulationVersion",
        "unknown": {"deep": [1]},
    }


@virtual
async def test_without_a_lease_it_is_created_after_the_time_of_a_leader_that_may_not_know() -> None:
    server = LeaseServer()
    replica = a_replica(server, "a")

    assert 15 <= await seconds_until(lambda: replica.leads) < 15.1
    assert server.spec["leaseTransitions"] == 0


@pytest.mark.parametrize(("watches", "longest"), [(True, 15.1), (False, 15 + 2 * 2.2)])
@virtual
async def test_a_leader_that_was_killed_is_replaced_a_lease_duration_after_its_last_renewal_or_a_poll_later(
    watches: bool, longest: float
) -> None:
    server = LeaseServer()
    leader, standby = await a_leader(server), a_replica(server, "b", watches=watches)
    await asyncio.sleep(7.5)

    await leader.kill()

    assert 13 <= await seconds_until(lambda: standby.leads) <= longest
    assert server.spec["leaseTransitions"] == 5


@virtual
async def test_a_leader_that_stops_is_replaced_within_milliseconds() -> None:
    server = LeaseServer()
    leader, standby = await a_leader(server), a_replica(server, "b")
    await asyncio.sleep(20)
    began = now()

    await leader.stop()
    await seconds_until(lambda: standby.leads)

    assert now() - began < 0.05
    assert leader.told == ["became leader", "stopped leading"]
    assert standby.told == ["became leader"]


@virtual
async def test_a_release_whose_first_answer_was_lost_is_a_release() -> None:
    server = LeaseServer()
    faults: list[Fault] = []
    leader = await a_leader(server, next_fault=lambda: faults.pop() if faults else Fault())
    await asyncio.sleep(1)
    faults.append(Fault("lost"))

    assert await leader.lock.release()
    assert server.spec["holderIdentity"] == ""
    assert server.spec["leaseDurationSeconds"] == 1


@virtual
async def test_a_leader_renews_every_retry_period_with_one_call() -> None:
    server = LeaseServer()
    await a_leader(server)
    await asyncio.sleep(1)
    server.calls.clear()

    await asyncio.sleep(10)

    assert server.calls == ["PUT"] * 5


@virtual
async def test_a_leader_that_cannot_renew_stops_at_its_deadline_before_another_leads() -> None:
    server = LeaseServer()
    cut = False
    leader = await a_leader(server, next_fault=lambda: Fault("unsent") if cut else Fault())
    standby = a_replica(server, "b")
    await asyncio.sleep(5.5)
    cut = True

    assert 8 <= await seconds_until(lambda: not leader.leads) <= 10
    assert not standby.leads
    assert 5 <= await seconds_until(lambda: standby.leads) <= 5.1
    assert leader.task is not None
    assert leader.task.done()
    assert leader.told == ["became leader", "stopped leading"]


@virtual
async def test_the_deadline_counts_from_when_the_renewal_was_sent_not_from_its_answer() -> None:
    server = LeaseServer()
    faults: list[Fault] = []
    cut = False

    def fault() -> Fault:
        return faults.pop() if faults else Fault("unsent" if cut else "none")

    leader = await a_leader(server, next_fault=fault)
    await asyncio.sleep(5)
    faults.append(Fault(after=3.0))
    sent = server.calls.count("PUT")
    await seconds_until(lambda: server.calls.count("PUT") > sent)
    cut = True

    assert 9.9 < await seconds_until(lambda: not leader.leads) < 10.02


@pytest.mark.parametrize("kind", ["refused", "broken", "unsent", "lost"])
@virtual
async def test_one_renewal_that_fails_is_repeated_at_once(kind: str) -> None:
    server, metrics = LeaseServer(), Metrics()
    faults: list[Fault] = []
    leader = Replica(server, "a", metrics, next_fault=lambda: faults.pop() if faults else Fault())
    server.put(**RELEASED)
    leader.start()
    await seconds_until(lambda: leader.leads)
    faults.append(Fault(kind))

    await asyncio.sleep(30)

    assert leader.leads
    assert metrics.registry.get_sample_value("leader_election_slowpath_total", {"name": "loadmaster"}) == 1


@virtual
async def test_a_takeover_whose_answer_was_lost_is_completed() -> None:
    server = LeaseServer()
    server.put(**RELEASED)
    faults = [Fault("lost"), Fault()]  # popped from the end: the read, then the update
    replica = a_replica(server, "a", next_fault=lambda: faults.pop() if faults else Fault())

    await seconds_until(lambda: replica.leads)

    assert server.spec["holderIdentity"] == "a"
    assert server.spec["leaseTransitions"] == 4


@virtual
async def test_a_lease_that_was_deleted_is_made_again_by_its_leader_and_not_by_the_standby() -> None:
    server = LeaseServer()
    leader, standby = await a_leader(server), a_replica(server, "b")
    await asyncio.sleep(5)

    server.delete()
    await asyncio.sleep(0.1)

    assert server.spec["holderIdentity"] == "a"
    assert server.spec["leaseTransitions"] == 4
    assert (leader.leads, standby.leads) == (True, False)


@virtual
async def test_a_leader_whose_lease_was_stolen_stops_at_once_and_the_standby_waits() -> None:
    server = LeaseServer()
    leader, standby = await a_leader(server), a_replica(server, "b")
    await asyncio.sleep(5)

    server.edit(holderIdentity="thief")

    assert await seconds_until(lambda: not leader.leads) < 0.02
    assert 14.9 < await seconds_until(lambda: standby.leads) < 15.1


@virtual
async def test_a_lease_that_somebody_wrote_over_to_the_standby_is_not_taken_for_its_own() -> None:
    server = LeaseServer()
    leader, standby = await a_leader(server, watches=False), a_replica(server, "b")
    await asyncio.sleep(5.1)

    server.edit(holderIdentity="b")
    await asyncio.sleep(0.1)

    assert (leader.leads, standby.leads) == (True, False)
    await seconds_until(lambda: standby.leads)
    assert not leader.leads


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"holderIdentity": ""}, id="no holder"),
        pytest.param({"holderIdentity": None, "leaseDurationSeconds": None}, id="no fields"),
        pytest.param({"leaseDurationSeconds": 1}, id="a duration too short"),
        pytest.param({"leaseDurationSeconds": 2**31 - 1}, id="a duration without end"),
        pytest.param({"renewTime": None, "acquireTime": None}, id="no times"),
        pytest.param({"leaseTransitions": 2**31 - 1}, id="a number that cannot grow"),
        pytest.param({"leaseDurationSeconds": "x", "holderIdentity": 7, "leaseTransitions": []}, id="wrong types"),
    ],
)
@virtual
async def test_a_lease_that_was_edited_is_put_right_by_its_leader_and_left_alone_by_the_standby(
    edit: dict[str, Any],
) -> None:
    server = LeaseServer()
    leader, standby = await a_leader(server), a_replica(server, "b")
    await asyncio.sleep(5)

    server.edit(**edit)
    await asyncio.sleep(3)

    assert (leader.leads, standby.leads) == (True, False)
    assert server.spec["holderIdentity"] == "a"
    assert server.spec["leaseDurationSeconds"] == 15
    await leader.stop()
    await seconds_until(lambda: standby.leads)
    assert server.spec["leaseTransitions"] <= 2**31 - 1


@pytest.mark.parametrize(
    ("holders", "shortest", "longest"),
    [(60, 60, 60.1), pytest.param(2**31 - 1, 3600, 3603, id="a mistyped one is waited out for an hour at most")],
)
@virtual
async def test_the_duration_of_a_holder_that_is_gone_counts_where_it_is_longer_than_ours(
    holders: int, shortest: float, longest: float
) -> None:
    server = LeaseServer()
    server.put(**{**A_LEASE, "leaseDurationSeconds": holders})
    replica = a_replica(server, "b")

    assert shortest <= await seconds_until(lambda: replica.leads, limit=4000) < longest


@pytest.mark.parametrize("step", [86400.0, -86400.0])
def test_a_step_of_the_time_of_day_changes_nothing(step: float, monkeypatch: pytest.MonkeyPatch) -> None:
    offset = 1_800_000_000.0

    def time_of_day() -> float:
        return offset + now()

    class Time:
        @staticmethod
        def time() -> float:
            return time_of_day()

    async def scenario() -> None:
        nonlocal offset
        server = LeaseServer()
        leader = await a_leader(server, time_of_day=time_of_day)
        standby = a_replica(server, "b", time_of_day=time_of_day)
        await asyncio.sleep(5)

        offset += step
        await asyncio.sleep(30)

        assert (leader.leads, standby.leads) == (True, False)
        await leader.kill()
        offset += step
        assert 13 <= await seconds_until(lambda: standby.leads) <= 15.1

    monkeypatch.setattr(library, "time", Time)
    run_virtually(scenario())


@virtual
async def test_a_leader_that_was_stopped_for_longer_than_its_lease_does_not_lead_when_it_wakes() -> None:
    server = LeaseServer()
    leader, standby = await a_leader(server), a_replica(server, "b")
    await asyncio.sleep(5)

    leader.thawed.clear()
    await seconds_until(lambda: standby.leads)

    assert not leader.leads
    leader.thawed.set()
    await asyncio.sleep(5)
    assert (leader.leads, standby.leads) == (False, True)


@virtual
async def test_a_renewal_answered_after_the_deadline_does_not_bring_leadership_back() -> None:
    server = LeaseServer()
    leader = await a_leader(server)
    await asyncio.sleep(1)
    sent_at = now()

    await asyncio.sleep(11)
    server.put(**{**A_LEASE, "holderIdentity": "a"})

    assert not leader.leadership.extend(sent_at + 100) or leader.leads
    leader.leadership.end()
    assert not leader.leadership.extend(now() + 100)


@virtual
async def test_the_check_leader_election_fails_only_if_a_lost_lease_did_not_end_the_program() -> None:
    server = LeaseServer()
    leader = await a_leader(server)
    healthy = [leader.elector.is_healthy()]
    assert leader.task is not None
    leader.task.cancel()  # hangs, as it were

    await asyncio.sleep(15 + 19)
    healthy.append(leader.elector.is_healthy())
    await asyncio.sleep(2)
    healthy.append(leader.elector.is_healthy())

    assert healthy == [True, True, False]


def test_a_standby_names_the_installation_that_holds_its_lease_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        server = LeaseServer()
        server.put(**{**A_LEASE, "holderIdentity": "gpu-5d4b9c6f5d-zzzzz_2"})
        a_replica(server, "loadmaster-7d4b9c6f5d-abcde_1")
        await asyncio.sleep(10)

    run_virtually(scenario())

    warnings = [record.getMessage() for record in caplog.records if "another installation" in record.getMessage()]
    assert len(warnings) == 1
    assert warnings[0].startswith(
        "the Lease is held by gpu-5d4b9c6f5d-zzzzz of gpu, another installation than this one"
    )
