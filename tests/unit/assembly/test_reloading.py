"""Another configuration while the scheduler works: what changes, what stays, and what a bad one costs."""

import asyncio
import gzip
import logging
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from plugins import IN_TREE
from scheduler import framework as fw
from scheduler.api.objects import AnnotatedMeta
from scheduler.api.storage.volumes import StorageClass
from scheduler.assembly.reloading import RETRY_SECONDS, Reloader
from scheduler.config.load import config_from_dict
from scheduler.config.source import Loaded
from scheduler.config.types import Config
from scheduler.engine.engine import ExtenderAccess, build_engine
from scheduler.engine.profiles import Resources
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.replay.recorder import OTHER_CONFIG, Recorder
from scheduler.runtime.registry import Registry
from scheduler.testing import a_node, a_pod
from tests.fakes import FakeClock, FakeWorld, a_plugin, settle
from tests.unit.config.fakes import a_config
from tests.unit.cycle.fakes import EngineUnderTest

BUDGETS = "budgets.v1.example.com"


@dataclass
class Keeping(fw.PreEnqueuePlugin, fw.PermitPlugin):
    """Counts the pods that it has seen, across configurations, and holds those that are told to wait."""

    name: ClassVar[str] = "Keeping"
    stopped: ClassVar[list[str]] = []
    tone: str = "plain"
    refuses: bool = False

    def __post_init__(self) -> None:
        self.seen: list[str] = []

        self.fail_at("__post_init__")

    def fail_at(self, point: str) -> None:
        """Do what the arguments say if they say it of this point."""
        if self.tone == f"ends the program in {point}":
            sys.exit(3)

    def start(self, handle: fw.Handle) -> None:
        self.fail_at("start")
        if self.tone == "cannot start":
            raise OSError("no such socket")

    def stop(self) -> None:
        self.fail_at("stop")
        self.stopped.append(self.tone)

    def kept(self) -> list[str]:
        self.fail_at("kept")
        return self.seen

    def take_over(self, kept: list[str]) -> None:
        self.fail_at("take_over")
        if self.tone == "forgetful":
            raise KeyError("what was that?")
        self.seen = kept

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        self.fail_at("events_to_register")
        if self.tone == "confused":
            raise RuntimeError("which?")
        return ()

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status | None:
        self.seen.append(f"{pod.name} by {self.tone}")
        return fw.unschedulable("not now") if self.refuses else None

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | fw.PermitWait | None:
        return fw.PermitWait(60.0) if pod.labels.get("wait") else None


class Budgets(fw.FilterPlugin):
    """Reads a resource that nobody else does."""

    name = "Budgets"
    reads = (BUDGETS,)

    def start(self, handle: fw.Handle) -> None:
        self._objects = handle.objects

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        return ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return None if self._objects.list(BUDGETS) else fw.unschedulable("no budget")


class Needy(Keeping):
    """Reads raw pods, and holds them."""

    name = "Needy"
    reads_raw_pods = True


class LastName(fw.QueueSortPlugin):
    """The last in the alphabet first."""

    name = "LastName"

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return a.pod.name > b.pod.name


REGISTRY: Registry = {**IN_TREE, "Keeping": Keeping, "Budgets": Budgets, "LastName": LastName, "Needy": Needy}


class FakeCluster:
    """Watches what it is told to, and remembers what it was told."""

    def __init__(self, reloading: "Reloading") -> None:
        self.watched: set[str] = set()
        self.has_whole_nodes = False
        self.events: list[str] = []
        self.fails: Exception | None = None
        self.brings: dict[str, list[Any]] = {}
        self.profiles: tuple[str, ...] = ()
        self.kept: Resources | None = None
        self._reloading = reloading

    async def open(self, resources: Resources) -> None:
        new = resources.watched.keys() - self.watched
        if self.fails is not None:
            raise self.fails
        self.watched |= new
        self.has_whole_nodes |= resources.whole_nodes
        self._reloading.engine.object_handlers.watch(new)
        await asyncio.sleep(0)

    async def close(self, names: Collection[str], *, whole_nodes: bool) -> None:
        self.watched -= set(names)
        self.has_whole_nodes &= not whole_nodes

    def keep_only(self, resources: Resources) -> None:
        self.kept = resources

    def report_as(self, profiles: Sequence[str]) -> None:
        self.profiles = tuple(profiles)

    async def report(self, type_: str, reason: str, note: str) -> None:
        self.events.append(f"{type_} {reason}: {note}")


class Reloading:
    """An engine that follows a configuration, which the test writes."""

    name = "config.yaml"

    def __init__(self, registry: Registry = REGISTRY, **fields: Any) -> None:
        self.registry = registry
        self.version = 1
        self.content: Callable[[], dict[str, Any]] = lambda: a_config(**fields)
        loaded = self.load()
        world, clock, metrics = FakeWorld(), FakeClock(), Metrics()
        self.clock = clock
        built = build_engine(
            loaded.config, registry, world.writers, metrics, clock, extender_access=self.extender_access(loaded.config)
        )
        self.under_test = EngineUnderTest(built, world, clock, metrics)
        self.engine = built
        self.cluster = FakeCluster(self)
        self.cluster.watched = set(built.watched)
        self.reloader = Reloader(self, loaded, built, self.cluster, metrics, Tasks(metrics), clock)

    def extender_access(self, config: Config) -> ExtenderAccess | None:
        """What is needed to ask extenders; nothing, as there are none."""
        return None

    def signature(self) -> int:
        return self.version

    async def load_again(self, before: Registry) -> Loaded:
        return self.load()

    def load(self) -> Loaded:
        return Loaded(config_from_dict(self.content(), self.registry), self.registry)

    def write(self, **fields: Any) -> None:
        """Change the file."""
        self.content = lambda: a_config(**fields)
        self.version += 1

    async def change(self, **fields: Any) -> None:
        """Change the file and have it noticed."""
        self.write(**fields)
        await self.look_twice()

    async def look_twice(self) -> None:
        await self.reloader.look()
        await self.reloader.look()

    def reloads(self, result: str) -> float:
        return self.under_test.count("loadmaster_config_reloads_total", result=result)


def a_profile(name: str = "one", *plugins: str, **arguments: Any) -> dict[str, Any]:
    """A profile with the default plugins and these, the last of them with these arguments."""
    return {
        "schedulerName": name,
        "plugins": {"multiPoint": {"enabled": [{"name": plugin} for plugin in plugins]}},
        "pluginConfig": [{"name": plugins[-1], "args": arguments}] if arguments else [],
    }


def a_storage_class(name: str) -> StorageClass:
    return StorageClass(metadata=AnnotatedMeta(name=name, uid=name, resource_version="1"))


def a_waiting_pod(name: str, profile: str = "one", **labels: str) -> fw.Pod:
    return a_pod(name, scheduler_name=profile, labels=labels)


async def test_a_recording_ends_with_the_configuration_that_it_is_of() -> None:
    reloading = Reloading()
    recording = Recorder(reloading.engine, dict, lambda: True, pause=0.0).record()
    parts = [await anext(recording)]
    await reloading.change(loadmaster={"seed": 7})
    parts += [part async for part in recording if part]
    assert OTHER_CONFIG.encode() in gzip.decompress(b"".join(parts))


async def test_a_profile_that_has_changed_gets_new_plugins_and_its_pods_take_them() -> None:
    reloading = Reloading(profiles=[a_profile("one", "Keeping")])

    await reloading.change(profiles=[a_profile("one", "Keeping", refuses=True)])
    reloading.under_test.see(a_waiting_pod("web"))

    assert reloading.under_test.where(a_waiting_pod("web").uid) == "gated"
    assert reloading.reloads("success") == 1


async def test_a_profile_that_is_as_before_keeps_its_plugins_and_what_is_stored_for_it() -> None:
    reloading = Reloading(profiles=[a_profile("one"), a_profile("two")])
    before = dict(reloading.engine.frameworks)

    await reloading.change(profiles=[a_profile("one"), a_profile("two", "Keeping")])

    assert reloading.engine.frameworks["one"] is before["one"]
    assert reloading.engine.frameworks["two"] is not before["two"]


async def test_a_plugin_whose_class_is_another_one_is_made_anew() -> None:
    reloading = Reloading(profiles=[a_profile("one", "Keeping")])
    before = reloading.engine.frameworks["one"]

    reloading.registry = {**REGISTRY, "Keeping": type("Keeping", (Keeping,), {})}
    await reloading.change(profiles=[a_profile("one", "Keeping")])

    assert reloading.engine.frameworks["one"] is not before


async def test_the_file_is_read_once_it_is_the_same_at_two_looks() -> None:
    reloading = Reloading(profiles=[a_profile("one")])

    reloading.write(profiles=[a_profile("two")])
    await reloading.reloader.look()
    reloading.write(profiles=[a_profile("three")])
    await reloading.reloader.look()
    before = set(reloading.engine.frameworks)
    await reloading.reloader.look()

    assert before == {"one"}
    assert set(reloading.engine.frameworks) == {"three"}


async def test_a_file_that_changed_while_the_program_was_starting_is_read() -> None:
    reloading = Reloading(profiles=[a_profile("one")])
    loaded = reloading.load()
    reloading.write(profiles=[a_profile("two")])

    metrics = Metrics()
    reloader = Reloader(reloading, loaded, reloading.engine, reloading.cluster, metrics, Tasks(metrics))
    await reloader.look()

    assert set(reloading.engine.frameworks) == {"two"}


async def test_a_file_that_says_the_same_changes_nothing() -> None:
    reloading = Reloading(profiles=[a_profile("one")])

    await reloading.change(profiles=[a_profile("one")])

    assert reloading.reloads("success") == 0
    assert reloading.cluster.events == []


async def test_pods_that_found_no_node_are_tried_again() -> None:
    reloading = Reloading(profiles=[a_profile("one")], podInitialBackoffSeconds=1)
    pod = a_waiting_pod("web")
    reloading.under_test.see(a_node("n", unschedulable=True), pod)
    await reloading.under_test.schedule()
    assert reloading.under_test.where(pod.uid) == "unschedulable"

    await reloading.change(profiles=[a_profile("one", "Keeping")])

    assert reloading.under_test.where(pod.uid) in ("backoff", "active")


async def test_a_gate_that_is_gone_lets_its_pods_in() -> None:
    reloading = Reloading(profiles=[a_profile("one", "Keeping", refuses=True)])
    pod = a_waiting_pod("web")
    reloading.under_test.see(pod)
    assert reloading.under_test.where(pod.uid) == "gated"

    await reloading.change(profiles=[a_profile("one")])

    assert reloading.under_test.where(pod.uid) == "active"


async def test_a_new_gate_takes_waiting_pods_back() -> None:
    reloading = Reloading(profiles=[a_profile("one")])
    pods = [a_waiting_pod(f"web-{number}") for number in range(3)]
    reloading.under_test.see(*pods)

    await reloading.change(profiles=[a_profile("one", "Keeping", refuses=True)])

    assert [reloading.under_test.where(pod.uid) for pod in pods] == ["gated"] * 3


async def test_another_order_counts_for_pods_that_wait_already() -> None:
    reloading = Reloading(profiles=[a_profile("one")])
    reloading.under_test.see(a_waiting_pod("a"), a_waiting_pod("b"))
    other = {"queueSort": {"enabled": [{"name": "LastName"}], "disabled": [{"name": "*"}]}}

    await reloading.change(profiles=[{"schedulerName": "one", "plugins": other}])

    assert [reloading.under_test.pop().pod.name for _ in range(2)] == ["b", "a"]


async def test_a_pod_in_flight_comes_back_under_the_new_configuration() -> None:
    reloading = Reloading(profiles=[a_profile("one")])
    pod = a_waiting_pod("web")
    reloading.under_test.see(pod)
    queued = reloading.under_test.pop()

    await reloading.change(profiles=[a_profile("one", "Keeping")])
    queued.unschedulable_plugins = {"NodeName"}
    reloading.engine.queue.add_unschedulable_if_not_present(queued)

    assert reloading.under_test.where(pod.uid) in ("backoff", "active")


async def test_pods_of_a_profile_that_comes_are_taken_in_and_of_one_that_goes_left_alone() -> None:
    reloading = Reloading(profiles=[a_profile("one")])
    ours, theirs = a_waiting_pod("ours", "one"), a_waiting_pod("theirs", "two")
    reloading.under_test.see(ours, theirs)

    await reloading.change(profiles=[a_profile("two")])

    assert reloading.under_test.where(ours.uid) == ""
    assert reloading.under_test.where(theirs.uid) == "active"
    assert reloading.cluster.profiles == ("two",)


async def test_a_binding_under_way_ends_with_the_plugins_that_it_began_with() -> None:
    Keeping.stopped.clear()
    reloading = Reloading(profiles=[a_profile("one", "Keeping", tone="old")])
    pod = a_waiting_pod("web", wait="yes")
    reloading.under_test.see(a_node("n"), pod)
    await reloading.under_test.schedule()

    await reloading.change(profiles=[a_profile("one", "Keeping", tone="new")])
    await reloading.reloader.look()
    stopped_early = list(Keeping.stopped)
    for waiting in reloading.engine.frameworks["one"].handle.waiting_pods:
        waiting.allow("Keeping")
    await settle()
    await reloading.reloader.look()

    assert stopped_early == []
    assert Keeping.stopped == ["old"]
    assert reloading.engine.cache.get(pod.uid) is not None


async def test_a_plugin_hands_over_what_it_keeps() -> None:
    reloading = Reloading(profiles=[a_profile("one", "Keeping", tone="old")])
    reloading.under_test.see(a_waiting_pod("a"))

    await reloading.change(profiles=[a_profile("one", "Keeping", tone="new")])
    reloading.under_test.see(a_waiting_pod("b"))

    keeping = reloading.engine.frameworks["one"].plugins.by_name["Keeping"]
    assert isinstance(keeping, Keeping)
    assert keeping.seen[0] == "a by old"
    assert keeping.seen[-1] == "b by new"


@pytest.mark.parametrize(
    ("profiles", "problem"),
    [
        pytest.param([{"schedulerNam": "x"}], "profiles[0].schedulerNam: unknown field", id="a wrong file"),
        pytest.param(
            [a_profile("one", "Keeping", tone="cannot start")],
            "plugin 'Keeping' did not start: OSError: no such socket",
            id="a plugin that does not start",
        ),
        pytest.param(
            [a_profile("one", "Keeping", tone="forgetful")],
            "plugin 'Keeping' does not take over from its predecessor: KeyError: 'what was that?'",
            id="a plugin that does not take over",
        ),
        pytest.param(
            [a_profile("one", "Keeping", tone="confused")],
            "plugin 'Keeping': events_to_register: RuntimeError: which?",
            id="a plugin that does not say what helps",
        ),
    ],
)
async def test_a_configuration_that_cannot_be_used_leaves_the_last_good_one_at_work(
    profiles: list[dict[str, Any]], problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    reloading = Reloading(profiles=[a_profile("one", "Keeping")])
    before = reloading.engine.frameworks["one"]

    await reloading.change(profiles=profiles)

    assert reloading.engine.frameworks == {"one": before}
    assert reloading.reloads("error") == 1
    assert reloading.under_test.count("loadmaster_config_is_current") == 0
    assert len(list(reloading.reloader.detail())) == 1
    (event,) = reloading.cluster.events
    assert event.startswith("Warning ConfigurationRefused: ")
    assert problem in event
    assert [problem in vars(each)["err"] for each in caplog.records if each.levelno == logging.ERROR] == [True]
    reloading.under_test.see(a_waiting_pod("web"))
    assert reloading.under_test.where(a_waiting_pod("web").uid) == "active"


@pytest.mark.parametrize("point", ["start", "take_over", "events_to_register"])
async def test_a_plugin_that_would_end_the_program_costs_that_reload_only(point: str) -> None:
    reloading = Reloading(profiles=[a_profile("one", "Keeping")])
    before = reloading.engine.frameworks["one"]

    await reloading.change(profiles=[a_profile("one", "Keeping", tone=f"ends the program in {point}")])

    assert "SystemExit: 3" in reloading.reloader.problems[0]
    assert reloading.engine.frameworks["one"] is before


async def test_whatever_fails_while_reading_costs_that_reload_only() -> None:
    reloading = Reloading(profiles=[a_profile("one")])

    def broken() -> dict[str, Any]:
        raise RuntimeError("boom")

    reloading.content = broken
    reloading.version += 1
    await reloading.look_twice()
    refused = reloading.reloader.problems
    reloading.content = lambda: a_config(profiles=[a_profile("two")])
    reloading.clock.advance(RETRY_SECONDS)
    await reloading.reloader.look()

    (problem,) = refused
    assert problem.startswith(f"RuntimeError: boom, in {__file__}:")
    assert set(reloading.engine.frameworks) == {"two"}


async def test_a_file_that_is_put_right_is_taken_over() -> None:
    reloading = Reloading(profiles=[a_profile("one")])
    await reloading.change(profiles=[{"schedulerNam": "x"}])

    await reloading.change(profiles=[a_profile("one")])

    assert list(reloading.reloader.detail()) == []
    assert reloading.under_test.count("loadmaster_config_is_current") == 1


async def test_what_the_cluster_refuses_is_tried_again_after_a_while() -> None:
    reloading = Reloading(profiles=[a_profile("one")])
    reloading.cluster.fails = ClusterError("the API server is away")
    await reloading.change(profiles=[a_profile("one", "Budgets")])
    refused = set(reloading.engine.frameworks["one"].plugins.by_name)

    reloading.cluster.fails = None
    await reloading.reloader.look()
    too_early = set(reloading.engine.frameworks["one"].plugins.by_name)
    reloading.clock.advance(RETRY_SECONDS)
    await reloading.reloader.look()

    assert "Budgets" not in refused | too_early
    assert "Budgets" in reloading.engine.frameworks["one"].plugins.by_name


async def test_a_missing_permission_is_told_and_the_watches_stay_as_they_were() -> None:
    reloading = Reloading(profiles=[a_profile("one")])
    watched = set(reloading.cluster.watched)
    reloading.cluster.fails = ConfigError([f"may not list, watch {BUDGETS}"])

    await reloading.change(profiles=[a_profile("one", "Budgets")])

    assert reloading.cluster.watched == watched
    assert "may not list" in reloading.cluster.events[0]


async def test_watches_are_opened_before_the_swap_and_closed_when_nobody_needs_them() -> None:
    reloading = Reloading(profiles=[a_profile("one")])

    await reloading.change(profiles=[a_profile("one", "Budgets")])
    opened = BUDGETS in reloading.cluster.watched
    await reloading.change(profiles=[a_profile("one")])
    await reloading.reloader.look()

    assert opened
    assert BUDGETS not in reloading.cluster.watched


async def test_what_only_plugins_need_that_go_is_kept_until_their_last_binding_has_ended() -> None:
    reloading = Reloading(profiles=[a_profile("one", "Needy")])
    reloading.under_test.see(a_node("n"), a_waiting_pod("web", wait="yes"))
    await reloading.under_test.schedule()

    await reloading.change(profiles=[a_profile("one", "Keeping")])
    await reloading.reloader.look()
    during = reloading.cluster.kept
    for waiting in reloading.engine.frameworks["one"].handle.waiting_pods:
        waiting.allow("Needy")
    await settle()
    await reloading.reloader.look()

    assert during is None
    assert reloading.cluster.kept is not None
    assert not reloading.cluster.kept.raw_pods


async def test_listeners_of_plugins_that_are_gone_are_not_called_any_more() -> None:
    heard: list[str] = []

    def hear(old: Any, new: Any) -> None:
        heard.append(new.metadata.name)

    def start(handle: fw.Handle) -> None:
        handle.objects.listen(fw.STORAGE_CLASS, hear)

    listening = a_plugin("Listening", fw.PostBindPlugin, start=start, events_to_register=tuple)
    reloading = Reloading({**REGISTRY, "Listening": listening}, profiles=[a_profile("one", "Listening")])

    reloading.engine.object_handlers.object_changed(fw.STORAGE_CLASS, a_storage_class("a"))
    await reloading.change(profiles=[a_profile("one")])
    await reloading.reloader.look()
    reloading.engine.object_handlers.object_changed(fw.STORAGE_CLASS, a_storage_class("b"))

    assert heard == ["a"]


async def test_what_counts_from_the_next_start_is_said(caplog: pytest.LogCaptureFixture) -> None:
    reloading = Reloading(profiles=[a_profile("one")])

    await reloading.change(
        profiles=[a_profile("one")],
        leaderElection={"leaseDuration": "20s"},
        loadmaster={"bindTimeoutSeconds": 5, "seed": 7},
        podMaxBackoffSeconds=30,
    )

    fields = [record.field for record in caplog.records if hasattr(record, "field")]
    assert fields == ["leaderElection.leaseDuration", "loadmaster.bindTimeoutSeconds"]
    assert reloading.reloader.config.loadmaster.bind_timeout_seconds == 30
    assert reloading.reloader.config.loadmaster.seed == 7
    assert reloading.reloader.config.pod_max_backoff_seconds == 30


async def test_other_limits_for_plugins_count_at_once_in_profiles_that_stay_and_in_new_ones() -> None:
    reloading = Reloading(profiles=[a_profile("one", "Keeping")])
    before = reloading.engine.frameworks["one"]

    await reloading.change(
        profiles=[a_profile("one", "Keeping"), a_profile("two")],
        loadmaster={"pluginLimits": [{"name": "*", "callBudget": "2s"}, {"name": "Keeping", "callBudget": "300ms"}]},
    )

    frameworks = reloading.engine.frameworks
    assert frameworks["one"] is before
    assert [frameworks[name].budgets.shortest for name in ("one", "two")] == [0.3, 0.3]
    assert reloading.reloader.config.loadmaster.plugin_limits[0].name == "*"


async def test_many_reloads_leave_nothing_behind() -> None:
    reloading = Reloading(profiles=[a_profile("one", "Keeping")])
    listeners = len(reloading.engine.objects._listeners[fw.PERSISTENT_VOLUME])

    for number in range(20):
        await reloading.change(profiles=[a_profile("one", "Keeping", tone=str(number))])
        await reloading.reloader.look()

    assert len(reloading.engine.objects._listeners[fw.PERSISTENT_VOLUME]) == listeners
    assert not reloading.engine.profiles.is_retiring
