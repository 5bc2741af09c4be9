"""Extenders that come, change and go while the scheduler works."""

import logging
from typing import Any

import pytest

from scheduler.config.extenders import Extender as Settings
from scheduler.config.types import Config
from scheduler.engine.engine import ExtenderAccess
from scheduler.extenders.roster import Roster
from scheduler.framework.errors import ConfigError
from scheduler.process.metrics import Metrics
from scheduler.testing import a_node, a_pod
from tests.fakes import Unschedulable
from tests.fakes.extenders import Answer, FakeExtender, FakePods, only
from tests.unit.assembly.test_reloading import Reloading, a_profile

GPU = "example.com/gpu"


class Connecting:
    """Makes extenders that answer as the test says, and keeps them."""

    def __init__(self) -> None:
        self.made: list[FakeExtender] = []
        self.answers: dict[str, Answer] = {}
        self.hangs = False

    def __call__(self, settings: Settings, path: str) -> FakeExtender:
        if settings.tls_config is not None:
            raise ConfigError([f"{path}.tlsConfig.caFile: cannot read {settings.tls_config.ca_file!r}: gone"])
        self.made.append(FakeExtender(settings, dict(self.answers), self.hangs))
        return self.made[-1]

    def open(self) -> list[FakeExtender]:
        return [extender for extender in self.made if not extender.is_closed]


class OfExtenders(Reloading):
    """An engine that follows a configuration with extenders, on nodes n0 and n1."""

    backoff = 20.0
    """Seconds after which those that wait are tried once more."""

    def __init__(self, *extenders: dict[str, Any], **fields: Any) -> None:
        super().__init__(profiles=[a_profile("one")], extenders=list(extenders), **fields)

    async def use(self, *extenders: dict[str, Any], **fields: Any) -> None:
        """Change the extenders in the file, and have it noticed."""
        await self.change(**{"profiles": [a_profile("one")], "extenders": list(extenders), **fields})

    async def try_again(self) -> None:
        """Try those that wait once more, once their backoff is over."""
        self.under_test.wait(self.backoff)
        await self.under_test.schedule()

    @property
    def bound(self) -> dict[str, str]:
        return self.under_test.world.bound


class WithExtenders(OfExtenders):
    """With extenders that answer as the test says."""

    def __init__(self, *extenders: dict[str, Any], **fields: Any) -> None:
        self.connecting = Connecting()
        super().__init__(*extenders, **fields)
        self.under_test.see(*(a_node(f"n{number}", cpu="4", allocatable={GPU: 8}) for number in range(2)))

    def extender_access(self, config: Config) -> ExtenderAccess:
        self.pods = FakePods()
        return ExtenderAccess(Roster(self.connecting, Metrics(), config.extenders), self.pods)

    async def schedule(self, name: str, **wishes: Any) -> None:
        """Have a pod come, and try it."""
        self.under_test.see(a_pod(name, scheduler_name="one", **wishes))
        await self.under_test.schedule()


def an_entry(name: str = "a", **fields: Any) -> dict[str, Any]:
    """An extender in a file, that knows the nodes and filters."""
    return {"urlPrefix": f"http://{name}", "filterVerb": "filter", "nodeCacheCapable": True, **fields}


async def test_one_that_comes_is_asked_from_then_on() -> None:
    reloading = WithExtenders()
    await reloading.schedule("before", requests={"cpu": "100m"})
    reloading.connecting.answers = {"filter": only("n1")}

    await reloading.use(an_entry())
    await reloading.schedule("after", requests={"cpu": "100m"})

    (extender,) = reloading.connecting.made
    assert [question["Pod"]["metadata"]["name"] for _, question in extender.asked] == ["after"]
    assert reloading.bound["default/after"] == "n1"
    assert reloading.reloads("success") == 1


async def test_one_that_goes_is_asked_no_more_and_its_connections_are_closed() -> None:
    reloading = WithExtenders(an_entry())
    await reloading.schedule("before")

    await reloading.use()
    await reloading.schedule("after")

    (extender,) = reloading.connecting.made
    assert len(extender.asked) == 1
    assert extender.is_closed
    assert len(reloading.bound) == 2


async def test_one_that_is_as_before_stays_with_its_connections_even_in_another_place() -> None:
    reloading = WithExtenders(an_entry("a"), an_entry("b"))
    before = list(reloading.connecting.made)

    await reloading.use(an_entry("b"), an_entry("a"))
    await reloading.use(an_entry("c"), an_entry("a"))

    assert [extender.is_closed for extender in before] == [False, True]
    assert len(reloading.connecting.made) == 3


async def test_pods_that_it_refused_are_tried_again() -> None:
    reloading = WithExtenders()
    reloading.connecting.answers = {"filter": only(n0="no", n1="no")}
    await reloading.use(an_entry())
    await reloading.schedule("web")
    assert reloading.under_test.where("default/web") == "unschedulable"

    await reloading.use()
    await reloading.try_again()

    assert "default/web" in reloading.bound


async def test_an_attempt_under_way_ends_with_the_extenders_that_it_began_with() -> None:
    reloading = WithExtenders()
    reloading.connecting.hangs = True
    await reloading.use(an_entry(prioritizeVerb="prioritize", weight=1))
    await reloading.schedule("web")
    (old,) = reloading.connecting.made

    await reloading.use(an_entry("b"))
    open_meanwhile = not old.is_closed
    await old.answer()
    await old.answer()
    await reloading.reloader.look()

    assert open_meanwhile
    assert old.verbs() == ["filter", "prioritize"]
    assert "default/web" in reloading.bound
    assert old.is_closed
    assert reloading.connecting.made[1].asked == []


async def test_what_it_refuses_after_it_is_gone_is_tried_without_it() -> None:
    reloading = WithExtenders()
    reloading.connecting.hangs = True
    reloading.connecting.answers = {"filter": only(n0="no", n1="no")}
    await reloading.use(an_entry())
    await reloading.schedule("web")

    await reloading.use()
    await reloading.connecting.made[0].answer()
    refused = not reloading.bound
    await reloading.try_again()

    assert refused
    assert "default/web" in reloading.bound


async def test_pods_held_for_one_that_is_gone_are_placed_without_it() -> None:
    reloading = WithExtenders(loadmaster={"podsAtExtenders": 1})
    reloading.connecting.hangs = True
    await reloading.use(an_entry(), loadmaster={"podsAtExtenders": 1})
    for number in range(5):
        await reloading.schedule(f"web{number}", requests={"cpu": "100m"})
    (hanging,) = reloading.connecting.made

    await reloading.use()
    await reloading.under_test.schedule()
    others = set(reloading.bound)
    await hanging.answer()
    await reloading.reloader.look()

    assert others == {f"default/web{number}" for number in range(1, 5)}
    assert len(reloading.bound) == 5
    assert reloading.connecting.open() == []


async def test_a_lane_of_one_that_is_gone_takes_no_more_pods_before_they_are_asked_again() -> None:
    reloading = WithExtenders(loadmaster={"podsAtExtenders": 1})
    reloading.connecting.hangs = True
    await reloading.use(an_entry(), loadmaster={"podsAtExtenders": 1})
    for number in range(2):
        await reloading.schedule(f"web{number}", requests={"cpu": "100m"})
    engine = reloading.engine

    engine.roster.swap(engine.roster.prepare(()))
    engine.use_extenders(1)
    await reloading.connecting.made[0].answer()
    before = set(reloading.bound)
    for _ in engine.queue.ask_again(["one"]):
        reloading.under_test.check()
    await reloading.under_test.schedule()

    assert before == {"default/web0"}
    assert set(reloading.bound) == {"default/web0", "default/web1"}


async def test_and_by_another_one_if_that_takes_its_place() -> None:
    reloading = WithExtenders(loadmaster={"podsAtExtenders": 1})
    reloading.connecting.hangs = True
    await reloading.use(an_entry(), loadmaster={"podsAtExtenders": 1})
    for number in range(3):
        await reloading.schedule(f"web{number}", requests={"cpu": "100m"})
    reloading.connecting.hangs = False

    await reloading.use(an_entry(httpTimeout="1s"), loadmaster={"podsAtExtenders": 1})
    for _ in range(3):
        await reloading.under_test.schedule()

    old, new = reloading.connecting.made
    assert [question["Pod"]["metadata"]["name"] for _, question in new.asked] == ["web1", "web2"]
    await old.answer()
    await reloading.reloader.look()
    assert len(reloading.bound) == 3
    assert old.is_closed


async def test_a_binding_under_way_at_one_that_is_gone_is_waited_for() -> None:
    reloading = WithExtenders()
    reloading.connecting.hangs = True
    await reloading.use({"urlPrefix": "http://binder", "bindVerb": "bind"})
    await reloading.schedule("web")
    (binder,) = reloading.connecting.made

    await reloading.use()
    open_meanwhile = not binder.is_closed
    await binder.answer()
    await reloading.reloader.look()
    await reloading.schedule("next")

    assert open_meanwhile
    assert binder.is_closed
    assert reloading.under_test.world.notes("Scheduled")[0].startswith("Successfully assigned default/web")
    assert set(reloading.bound) == {"default/next"}, "the plugins bind now"


BAD = an_entry("bad", tlsConfig={"caFile": "/gone"})


@pytest.mark.parametrize(
    ("profiles", "problems"),
    [
        pytest.param([a_profile("one")], ["extenders[1].tlsConfig.caFile: cannot read '/gone': gone"], id="alone"),
        pytest.param(
            [a_profile("one", "Keeping", tone="cannot start")],
            [
                "profile 'one': plugin 'Keeping' did not start: OSError: no such socket",
                "extenders[1].tlsConfig.caFile: cannot read '/gone': gone",
            ],
            id="beside a plugin that does not start",
        ),
    ],
)
async def test_a_certificate_of_no_use_keeps_the_last_good_configuration(
    profiles: list[dict[str, Any]], problems: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    reloading = WithExtenders(an_entry())

    await reloading.use(an_entry("new"), BAD, profiles=profiles)
    await reloading.schedule("web")

    told = [vars(each)["err"] for each in caplog.records if each.levelno == logging.ERROR]
    assert [text.partition(", in ")[0] for text in told] == problems
    assert reloading.reloads("error") == 1
    (kept, *_) = reloading.connecting.made
    assert kept.verbs() == ["filter"]
    assert not kept.is_closed
    assert "default/web" in reloading.bound


async def test_a_resource_that_an_extender_counts_alone_is_its_own_from_then_on() -> None:
    reloading = WithExtenders()
    await reloading.schedule("web", requests={"example.com/fpga": 1})
    assert "2 Insufficient example.com/fpga" in reloading.under_test.world.written(Unschedulable)[-1].message

    await reloading.use(an_entry(managedResources=[{"name": "example.com/fpga", "ignoredByScheduler": True}]))
    await reloading.try_again()

    assert "default/web" in reloading.bound


async def test_how_many_pods_it_is_asked_about_may_change() -> None:
    reloading = WithExtenders(loadmaster={"podsAtExtenders": 1})
    reloading.connecting.hangs = True
    await reloading.use(an_entry(), loadmaster={"podsAtExtenders": 3})
    for number in range(5):
        await reloading.schedule(f"web{number}")

    assert len(reloading.connecting.made[0].waiting) == 3


async def test_whole_nodes_are_kept_from_before_the_first_question_until_after_the_last() -> None:
    reloading = WithExtenders()
    reloading.connecting.hangs = True
    await reloading.use(an_entry(nodeCacheCapable=False))
    came = reloading.cluster.has_whole_nodes
    reloading.connecting.made[0].answers = {"filter": lambda _: {"Error": "no"}}
    await reloading.schedule("web")

    await reloading.use()
    during = reloading.cluster.has_whole_nodes
    await reloading.connecting.made[0].answer()
    await reloading.reloader.look()

    assert (came, during) == (True, True)
    assert not reloading.cluster.has_whole_nodes


async def test_many_changes_leave_one_extender_open() -> None:
    reloading = WithExtenders()

    for number in range(20):
        await reloading.use(an_entry(httpTimeout=f"{number + 1}s"))
        await reloading.schedule(f"web{number}", requests={"cpu": "10m"})
        await reloading.reloader.look()

    assert len(reloading.connecting.made) == 20
    assert len(reloading.connecting.open()) == 1
    assert len(reloading.bound) == 20
    assert not reloading.engine.roster.is_retiring
