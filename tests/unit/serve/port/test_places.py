"""Who gets a connection when there are too many."""

import pytest

from scheduler.serve.port.connection import Connection
from scheduler.serve.port.limits import Limits
from scheduler.serve.port.places import MAX_RATES, Places, peer_of
from tests.fakes import FakeClock

FEW = Limits(connections=6, connections_per_address=3, handshakes_per_second=2.0, burst=4)


class FakePlace(Connection):
    def __init__(self, address: str, quiet_since: float | None = 0.0, has_spoken: bool = True) -> None:
        self.address, self.quiet_since, self.has_spoken = address, quiet_since, has_spoken
        self.evicted = False

    def end(self, why: str) -> None:
        self.evicted = True


class Setup:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.places = Places(FEW, self.clock)

    def fill(self, *places: FakePlace) -> list[FakePlace]:
        assert all(self.places.admit(each) for each in places)
        return list(places)


def test_up_to_the_limit_everybody_is_admitted() -> None:
    setup = Setup()

    taken = setup.fill(*(FakePlace(f"a{i // 3}") for i in range(6)))

    assert len(setup.places) == 6
    assert not any(place.evicted for place in taken)


def test_an_address_with_its_share_loses_the_connection_that_is_quiet_for_longest() -> None:
    setup = Setup()
    mine = setup.fill(*(FakePlace("a", quiet_since=since) for since in (5.0, 1.0, 3.0)))
    (other,) = setup.fill(FakePlace("b", quiet_since=0.0))

    admitted = setup.places.admit(FakePlace("a", quiet_since=9.0))

    assert admitted
    assert [place.evicted for place in (*mine, other)] == [False, True, False, False]


def test_without_a_place_the_address_with_most_connections_loses_one() -> None:
    setup = Setup()
    greedy = setup.fill(*(FakePlace("greedy", quiet_since=8.0 + i) for i in range(3)))
    modest = setup.fill(*(FakePlace(f"m{i}", quiet_since=0.0) for i in range(3)))

    admitted = setup.places.admit(FakePlace("kubelet"))

    assert admitted
    assert [place.evicted for place in greedy] == [True, False, False]
    assert not any(place.evicted for place in modest)
    assert len(setup.places) == 6


def test_who_has_not_said_a_byte_goes_before_who_has() -> None:
    setup = Setup()
    probe, silent, _ = setup.fill(
        FakePlace("a", quiet_since=1.0),
        FakePlace("a", quiet_since=2.0, has_spoken=False),
        FakePlace("a", quiet_since=3.0, has_spoken=False),
    )

    setup.places.admit(FakePlace("a", quiet_since=4.0, has_spoken=False))

    assert (probe.evicted, silent.evicted) == (False, True)


def test_requests_under_way_are_never_ended_for_others() -> None:
    setup = Setup()
    busy = setup.fill(*(FakePlace("a", quiet_since=None) for _ in range(3)))

    admitted = setup.places.admit(FakePlace("a"))

    assert not admitted
    assert not any(place.evicted for place in busy)
    assert (len(setup.places), setup.places.busy) == (3, 3)


def test_a_connection_that_has_ended_leaves_its_place_once() -> None:
    setup = Setup()
    first, *_ = setup.fill(*(FakePlace("a") for _ in range(3)))

    setup.places.release(first)
    setup.places.release(first)

    assert len(setup.places) == 2
    assert setup.places.admit(FakePlace("a"))


def test_an_address_shakes_hands_at_its_rate() -> None:
    setup = Setup()

    at_once = [setup.places.may_shake_hands("a") for _ in range(6)]
    setup.clock.advance(1.0)
    later = [setup.places.may_shake_hands("a") for _ in range(3)]

    assert at_once == [True] * 4 + [False] * 2
    assert later == [True, True, False]
    assert setup.places.may_shake_hands("b")


def test_the_rates_of_many_addresses_take_no_more_memory_than_those_of_some() -> None:
    setup = Setup()

    for number in range(3 * MAX_RATES):
        setup.places.may_shake_hands(f"a{number}")

    assert len(setup.places._rates) == MAX_RATES


@pytest.mark.parametrize(
    ("host", "peer"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:0db8:0001:0002::/64"),
        ("2001:db8:1:2::ffff", "2001:0db8:0001:0002::/64"),
        ("fe80::1%eth0", "fe80:0000:0000:0000::/64"),
    ],
)
def test_what_counts_as_one_address(host: str, peer: str) -> None:
    assert peer_of(host) == peer
