"""Who may see what."""

import pytest

from scheduler.api.reviews import ANONYMOUS, AccessVerdict, User
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.serve.access.authorization import Authorization
from tests.fakes import FakeClock
from tests.unit.serve.serving import HEALTH, FakeReviews

JANE = User(username="jane")


class Setup:
    def __init__(self, *always_allow: str) -> None:
        self.clock = FakeClock()
        self.reviews = FakeReviews(allowed=[("jane", "get", "/metrics")])
        self.authorization = Authorization(self.reviews, always_allow or HEALTH, 10.0, 5.0, self.clock)

    async def may(self, user: User, path: str, verb: str = "get") -> bool:
        return (await self.authorization.verdict(user, path, verb)).allowed


ROOT = User(username="root", groups=("system:masters",))


@pytest.mark.parametrize(("user", "path"), [*((ANONYMOUS, path) for path in HEALTH), (ROOT, "/metrics")])
async def test_health_needs_no_right_and_administrators_need_not_be_asked_about(user: User, path: str) -> None:
    setup = Setup()

    assert await setup.may(user, path)
    assert setup.reviews.accesses == []


async def test_everything_else_is_asked_about() -> None:
    setup = Setup()

    answers = [await setup.may(*each) for each in ((JANE, "/metrics"), (JANE, "/livez/ping"), (ANONYMOUS, "/metrics"))]

    assert answers == [True, False, False]
    assert setup.reviews.accesses[0] == ("jane", "get", "/metrics")


@pytest.mark.parametrize(
    ("allowed", "path", "may"),
    [
        ("metrics", "/metrics", True),
        ("/livez/*", "/livez/ping", True),
        ("/livez/*", "/livez", False),
        ("*", "/anything", True),
        ("/metrics", "/metrics/", False),
    ],
)
async def test_paths_may_be_patterns(allowed: str, path: str, may: bool) -> None:
    assert await Setup(allowed).may(ANONYMOUS, path) is may


def test_a_star_elsewhere_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"--authorization-always-allow-paths: only trailing \* allowed in '/a\*/b'"):
        Setup("/a*/b")


async def test_permissions_and_refusals_are_kept_for_their_own_times() -> None:
    setup = Setup()
    asked = [(JANE, "/metrics"), (ANONYMOUS, "/metrics")]

    for seconds in (0.0, 4.0, 4.0, 4.0):
        setup.clock.advance(seconds)
        for user, path in asked:
            await setup.may(user, path)

    assert setup.reviews.accesses.count(("jane", "get", "/metrics")) == 2
    assert setup.reviews.accesses.count((ANONYMOUS.username, "get", "/metrics")) == 2


async def test_users_of_one_name_are_not_taken_for_each_other() -> None:
    setup = Setup()

    for user in (JANE, User(username="jane", groups=("devs",)), User(username="jane", uid="1")):
        await setup.may(user, "/metrics")

    assert len(setup.reviews.accesses) == 3


async def test_without_an_answer_nobody_is_let_in() -> None:
    setup = Setup()
    setup.reviews.is_away = True

    with pytest.raises(ClusterError, match="connection refused"):
        await setup.may(JANE, "/metrics")
    setup.reviews.is_away = False

    assert await setup.may(JANE, "/metrics"), "the failure is not kept"


async def test_without_anybody_to_ask_nobody_has_rights() -> None:
    nobody = Authorization(None, HEALTH, 10.0, 10.0)

    assert await nobody.verdict(JANE, "/metrics", "get") == AccessVerdict()
