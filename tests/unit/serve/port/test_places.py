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


@pytest.mark.parametrize(
    ("places", "comes", "admitted", "evicted"),
    [
        pytest.param([FakePlace(f"a{i // 3}") for i in range(5)], FakePlace("a1"), True, [], id="up to the limit"),
        pytest.param(
            [*(FakePlace("a", since) for since in (5.0, 1.0, 3.0)), FakePlace("b")],
            FakePlace("a", 9.0),
            True,
            [1],
            id="an address with its share loses the connection that is quiet for longest",
        ),
        pytest.param(
            [*(FakePlace("greedy", 8.0 + i) for i in range(3)), *(FakePlace(f"m{i}") for i in range(3))],
            FakePlace("kubelet"),
            True,
            [0],
            id="without a place the address with most connections loses one",
        ),
        pytest.param(
            [FakePlace("a", 1.0), FakePlace("a", 2.0, has_spoken=False), FakePlace("a", 3.0, has_spoken=False)],
            FakePlace("a", 4.0, has_spoken=False),
            True,
            [1],
            id="who has not said a byte goes before who has",
        ),
        pytest.param(
            [FakePlace("a", None) for _ in range(3)],
            FakePlace("a"),
            False,
            [],
            id="requests under way are never ended for others",
        ),
    ],
)
def test_who_has_a_place(places: list[FakePlace], comes: FakePlace, admitted: bool, evicted: list[int]) -> None:
    setup = Setup()
    setup.fill(*places)

    assert setup.places.admit(comes) is admitted
    assert [number for number, place in enumerate(places) if place.evicted] == evicted
    assert len(setup.places) == len(places) + admitted - len(evicted)
    assert setup.places.busy == sum(place.quiet_since is None for place in places)


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
