"""What plugins may do wrong while pods are scheduled: each costs the pod that it is about, and says so in one sentence.

The plugins are wrong about one pod, `victim`, and right about another one, which must be placed as if nothing had been.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import numpy as np
import pytest

from plugins.pod_topology_spread.plugin import PodTopologySpread
from scheduler import framework as fw
from scheduler.api.pods.pod import Pod
from scheduler.framework.errors import ApiError
from scheduler.framework.status import Code
from scheduler.testing import a_pod, pod_from_dict, started
from tests.controlplane.objects import a_pod as control_plane_pod
from tests.fakes import Unschedulable, a_handle, plugin, sample
from tests.unit.cycle.harness import Reserving, Scheduler

VICTIM, OTHER = "victim", "other"
FILTER = 'running "Odd" filter plugin: '
PRE_FILTER = 'running PreFilter plugin "Odd": '
SCORE = 'running Score plugins: plugin "Odd" failed with: '
ASYNC = "is `async def`, but nothing awaits it: make it `def`"
LONG = "x" * 5_000


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Untraceable(Exception):
    """Raises whenever anybody wants to know anything of it."""

    def __str__(self) -> str:
        raise SystemExit("no words")

    __repr__ = __str__

    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise KeyError("no trace")

    @property
    def __cause__(self) -> Any:  # type: ignore[override]
        raise KeyError("no cause")

    @property
    def __notes__(self) -> Any:  # type: ignore[override]
        raise KeyError("no notes")


def answering(answer: Any, otherwise: Any = None) -> Callable[..., Any]:
    """A method that answers so about the victim."""

    def method(state: Any, pod: Pod, *_: Any) -> Any:
        return answer if pod.name == VICTIM else otherwise

    return method


def raising(error: BaseException, otherwise: Any = None) -> Callable[..., Any]:
    def method(state: Any, pod: Pod, *_: Any) -> Any:
        if pod.name == VICTIM:
            raise error
        return otherwise

    return method


def exiting(state: Any, pod: Pod, *_: Any) -> None:
    if pod.name == VICTIM:
        sys.exit("I have had enough")


def diving(state: Any, pod: Pod, *_: Any) -> None:
    if pod.name == VICTIM:
        diving(state, pod)


def waiting(otherwise: Any = None) -> Callable[..., Any]:
    """`async def` where nothing awaits."""

    async def method(*_: Any) -> None: ...

    def about(state: Any, pod: Pod, *rest: Any) -> Any:
        return method() if pod.name == VICTIM else otherwise

    about.__name__ = "method"
    return about


def awaited(answer: Any = None, error: BaseException | None = None) -> Callable[..., Any]:
    async def method(state: Any, pod: Pod, *_: Any) -> Any:
        if pod.name != VICTIM:
            return None
        if error is not None:
            raise error
        return answer

    return method


def cancelling_itself(state: Any, pod: Pod, *_: Any) -> None:
    if pod.name == VICTIM:
        task = asyncio.current_task()
        assert task is not None, "there is no task to cancel"
        task.cancel()


async def cancelling_its_task(state: Any, pod: Pod, *_: Any) -> None:
    cancelling_itself(state, pod)


async def cancelling_its_task_and_waiting(state: Any, pod: Pod, *_: Any) -> None:
    cancelling_itself(state, pod)
    await asyncio.sleep(3600 if pod.name == VICTIM else 0)


async def cancelling_its_task_and_failing(state: Any, pod: Pod, *_: Any) -> None:
    if pod.name == VICTIM:
        cancelling_itself(state, pod)
        raise ValueError("broken")


async def awaiting_what_was_cancelled(state: Any, pod: Pod, *_: Any) -> None:
    if pod.name == VICTIM:
        other = asyncio.get_running_loop().create_future()
        other.cancel()
        await other


def by_column(answer: Callable[[Any], Any]) -> Callable[..., Any]:
    """`filter_nodes`, or `score_nodes`: given the rows."""

    def method(state: Any, pod: Pod, nodes: Any, rows: Any) -> Any:
        return answer(rows) if pod.name == VICTIM else None

    return method


class Case(NamedTuple):
    """A wrong plugin."""

    method: str
    does: Callable[..., Any]
    note: str
    """How the Event of the victim begins."""


BASES: Final[Mapping[str, type[fw.Plugin]]] = {
    "filter": fw.FilterPlugin,
    "filter_nodes": fw.FilterNodesPlugin,
    "pre_filter": fw.PreFilterPlugin,
    "score": fw.ScorePlugin,
    "score_nodes": fw.ScoreNodesPlugin,
    "pre_score": fw.PreScorePlugin,
    "reserve": fw.ReservePlugin,
    "permit": fw.PermitPlugin,
    "pre_bind_pre_flight": fw.PreBindPlugin,
    "pre_bind": fw.PreBindPlugin,
    "bind": fw.BindPlugin,
}
BEGINS: Final[Mapping[str, str]] = {
    "filter": FILTER,
    "filter_nodes": FILTER,
    "pre_filter": PRE_FILTER,
    "score": SCORE,
    "score_nodes": SCORE,
    "pre_score": 'running PreScore plugin "Odd": ',
    "reserve": 'running Reserve plugin "Odd": ',
    "permit": 'running Permit plugin "Odd": ',
    "pre_bind_pre_flight": 'running PreBindPreFlight plugin "Odd": ',
    "pre_bind": 'running PreBind plugin "Odd": ',
    "bind": 'running Bind plugin "Odd": ',
}

STATUS: Final = "expected None or a Status"
REFUSALS: Final = "unschedulable(…), unresolvable(…) or pending(…)"
TEXTS: Final = "expected a Status whose reasons are a tuple of texts"
WAIT: Final = "expected a PermitWait of seconds, 0 or more"
NO_TRACE: Final = "Untraceable: (its text cannot be had"
NO_TASK: Final = "AssertionError: there is no task to cancel"


def status(code: Code, *reasons: str) -> Callable[..., Any]:
    return answering(fw.Status(code, reasons))


TABLE: Final[Sequence[tuple[str, str, Callable[..., Any], str]]] = (
    # method, what it does, how, and how the sentence on it goes on
    ("filter", "answers True", answering(True), f"method answered True (bool), {STATUS}"),
    ("filter", "answers False", answering(False), "method answered False (bool)"),
    ("filter", "answers 0", answering(0), "method answered 0 (int)"),
    ("filter", "answers a text", answering("no"), "method answered 'no' (str)"),
    ("filter", "answers a list", answering(["no"]), "method answered ['no'] (list)"),
    ("filter", "answers a class", answering(fw.Status), "method answered <class"),
    ("filter", "is async", waiting(), f"method {ASYNC}"),
    ("filter", "gives a text as reasons", answering(fw.Status(Code.UNSCHEDULABLE, cast("Any", "no"))),
        f"method answered 'no' (str), {TEXTS}"),
    ("filter", "gives a list as reasons", answering(fw.Status(Code.UNSCHEDULABLE, cast("Any", ["no"]))),
        f"method answered ['no'] (list), {TEXTS}"),
    ("filter", "answers Skip", answering(fw.SKIP), f"method answered Skip; it may answer None, {REFUSALS}"),
    ("filter", "answers Wait", status(Code.WAIT, "a while"),
        f"method answered Wait: a while; it may answer None, {REFUSALS}"),
    ("filter", "answers Success", status(Code.SUCCESS), "method answered Success; it may"),
    ("filter", "answers that it failed", status(Code.ERROR, "no data"), "no data"),
    ("filter", "raises", raising(KeyError("zone")), "KeyError: 'zone'"),
    ("filter", "raises without a text", raising(ValueError()), "ValueError"),
    ("filter", "raises what has no words", raising(Unspeakable()),
        "Unspeakable: (its text cannot be had: RuntimeError)"),
    ("filter", "raises what has no trace", raising(Untraceable()), NO_TRACE),
    ("filter", "raises a long text", raising(ValueError(LONG)), f"ValueError: {'x' * 1_000}…"),
    ("filter", "exits", exiting, "SystemExit: I have had enough"),
    ("filter", "exits quietly", raising(SystemExit()), "SystemExit"),
    ("filter", "interrupts", raising(KeyboardInterrupt()), "KeyboardInterrupt"),
    ("filter", "cancels", raising(asyncio.CancelledError()), "CancelledError"),
    ("filter", "cancels the scheduler", cancelling_itself, NO_TASK),
    ("filter", "ends a generator", raising(GeneratorExit()), "GeneratorExit"),
    ("filter", "stops an iteration", raising(StopIteration()), "StopIteration"),
    ("filter", "runs out of memory", raising(MemoryError()), "MemoryError"),
    ("filter", "never ends to call itself", diving, "RecursionError: maximum recursion depth exceeded"),
    ("filter", "takes too few", lambda state, pod: None, "TypeError: <lambda>() takes 2 positional arguments"),
    ("filter_nodes", "answers a list", by_column(lambda rows: [0] * len(rows)), "method answered [0"),
    ("filter_nodes", "answers another shape", by_column(lambda rows: np.zeros(77, np.int32)),
        "method answered int32 of shape (77,) for "),
    ("filter_nodes", "answers fractions", by_column(lambda rows: np.ones(len(rows))),
        "method answered float64 of shape "),
    ("pre_filter", "answers a set", answering({"a"}),
        "method answered {'a'} (set), expected None, a PreFilterResult or a Status"),
    ("pre_filter", "answers True", answering(True), "method answered True"),
    ("pre_filter", "answers a list of names", answering(fw.PreFilterResult(cast("Any", ["a"]))),
        "method answered ['a'] (list), expected a PreFilterResult with a set of names"),
    ("pre_filter", "answers Pending", answering(fw.pending("a quota")),
        "method answered Pending: a quota; it may answer None, a PreFilterResult, SKIP, unschedulable(…)"),
    ("pre_filter", "is async", waiting(), f"method {ASYNC}"),
    ("pre_filter", "exits", exiting, "SystemExit: I have had enough"),
    ("pre_filter", "cancels the scheduler", cancelling_itself, NO_TASK),
    ("pre_filter", "raises what has no trace", raising(Untraceable()), NO_TRACE),
    ("score", "answers a fraction", answering(99.9, 1),
        "method answered 99.9 (float), expected a whole number of 64 bits"),
    ("score", "answers a text", answering("7", 1), "method answered '7' (str)"),
    ("score", "answers True", answering(True, 1), "method answered True (bool)"),
    ("score", "answers nothing", answering(None, 1), "method answered None, expected"),
    ("score", "answers too much", answering(2**70, 1), "method answered 1180591620"),
    ("score", "is async", waiting(1), f"method {ASYNC}"),
    ("score", "exits", raising(SystemExit(1), 1), "SystemExit: 1"),
    ("score_nodes", "answers fractions", by_column(lambda rows: np.ones(len(rows))), "method answered float64"),
    ("pre_score", "answers True", answering(True), f"method answered True (bool), {STATUS}"),
    ("pre_score", "refuses", answering(fw.unschedulable("no")),
        "method answered Unschedulable: no; it may answer None or SKIP"),
    ("pre_score", "raises", raising(KeyError("zone")), "KeyError: 'zone'"),
    ("reserve", "answers True", answering(True), f"method answered True (bool), {STATUS}"),
    ("reserve", "answers Skip", answering(fw.SKIP), f"method answered Skip; it may answer None, {REFUSALS}"),
    ("reserve", "exits", exiting, "SystemExit: I have had enough"),
    ("reserve", "cancels the scheduler", cancelling_itself, NO_TASK),
    ("reserve", "raises what has no trace", raising(Untraceable()), NO_TRACE),
    ("permit", "answers 5", answering(5), "method answered 5 (int), expected None, a Status or a PermitWait"),
    ("permit", "waits for a text", answering(fw.PermitWait(cast("Any", "5"))), f"method answered '5' (str), {WAIT}"),
    ("permit", "waits for less than nothing", answering(fw.PermitWait(-5.0)), f"method answered -5.0 (float), {WAIT}"),
    ("permit", "waits for no number", answering(fw.PermitWait(float("nan"))), "method answered nan"),
    ("permit", "answers Wait", status(Code.WAIT),
        f"method answered Wait; it may answer None, a PermitWait, {REFUSALS}"),
    ("permit", "is async", waiting(), f"method {ASYNC}"),
    ("permit", "cancels the scheduler", cancelling_itself, NO_TASK),
    ("permit", "raises what has no trace", raising(Untraceable()), NO_TRACE),
    ("pre_bind_pre_flight", "answers True", answering(True), "method answered True (bool)"),
    ("pre_bind_pre_flight", "refuses", answering(fw.pending("no")),
        "method answered Pending: no; it may answer None or SKIP"),
    ("pre_bind_pre_flight", "raises", raising(KeyError("zone")), "KeyError: 'zone'"),
    ("pre_bind", "answers Skip", awaited(fw.SKIP), f"method answered Skip; it may answer None, {REFUSALS}"),
    ("pre_bind", "answers True", awaited(True), f"method answered True (bool), {STATUS}"),
    ("pre_bind", "raises", awaited(error=OSError(5, "broken")), "OSError: [Errno 5] "),
    ("pre_bind", "takes too few", lambda state: None, "TypeError: <lambda>() takes 1 "),
    ("pre_bind", "interrupts", awaited(error=KeyboardInterrupt()), "KeyboardInterrupt"),
    ("bind", "answers True", awaited(True), "method answered True (bool)"),
    *(
        (method, *row)
        for method in ("pre_bind", "bind")
        for row in (
            ("exits", awaited(error=SystemExit(0)), "SystemExit: 0"),
            ("ends a generator", awaited(error=GeneratorExit()), "GeneratorExit"),
            ("raises CancelledError", awaited(error=asyncio.CancelledError()), "CancelledError"),
            ("awaits what was cancelled", awaiting_what_was_cancelled, "CancelledError"),
            ("cancels its task", cancelling_its_task,
                "CancelledError: it has cancelled the task in which it is awaited"),
            ("cancels its task and waits", cancelling_its_task_and_waiting, "CancelledError"),
            ("cancels its task and fails", cancelling_its_task_and_failing, "ValueError: broken"),
            ("raises what has no words", awaited(error=Unspeakable()), "Unspeakable: (its text cannot be had: Run"),
            ("raises what has no trace", awaited(error=Untraceable()), "Untraceable: (its text cannot be had: Sys"),
        )
    ),
)  # fmt: skip
CASES: Final = {f"{method} {what}": Case(method, does, BEGINS[method] + says) for method, what, does, says in TABLE} | {
    "score answers 101": Case(
        "score",
        answering(101, 1),
        'applying score defaultWeights on Score plugins: plugin "Odd" returns an invalid score 101',
    )
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
async def test_a_wrong_plugin_costs_the_pod_that_it_is_about_and_says_why(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    further = {"status_of": lambda *_: fw.unschedulable("no")} if case.method == "filter_nodes" else {}
    does = _passing_on(case.does) if case.method == "bind" else case.does
    odd = plugin(BASES[case.method], "Odd", **{case.method: does}, **further)
    scoring = plugin(fw.ScorePlugin, "Score", score=lambda *_: 1)
    reserving = Reserving()
    scheduler = Scheduler(reserving, odd, scoring, nodes=["a", "b"])

    await scheduler.schedule(a_pod(VICTIM))
    await scheduler.schedule(a_pod(OTHER))

    events = [event for event in scheduler.world.events if event.pod == f"default/{VICTIM}"]
    (event,) = [event for event in events if event.reason == "FailedScheduling"]  # a busy machine adds one on slowness
    assert event.note.startswith(case.note)
    assert len(event.note) < 1_200
    is_about_all = "TypeError" in case.note  # it cannot be called at all
    assert list(scheduler.world.bound) == ([] if is_about_all else [a_pod(OTHER).uid])
    assert reserving.held == ([] if is_about_all else [OTHER])
    assert scheduler.where(a_pod(VICTIM)) == "backoff"
    assert scheduler.cache.get(a_pod(VICTIM).uid) is None
    assert scheduler.attempts("error") == (2 if is_about_all else 1)
    assert {each.reason for each in scheduler.world.written(Unschedulable)} == {"SchedulerError"}
    assert scheduler.loop.bindings == 0


def _passing_on(bind: Callable[..., Any]) -> Callable[..., Any]:
    """A Bind plugin that leaves the other pods to the next one."""

    async def method(state: Any, pod: Pod, node: str) -> Any:
        return await bind(state, pod, node) if pod.name == VICTIM else fw.SKIP

    return method


@pytest.mark.parametrize(
    ("base", "method"), [(fw.PreBindPlugin, "pre_bind"), (fw.BindPlugin, "bind")], ids=["pre_bind", "bind"]
)
async def test_what_is_awaited_must_be_async(base: type[fw.Plugin], method: str) -> None:
    scheduler = Scheduler(plugin(base, "Odd", **{method: lambda *_: None}))

    await scheduler.schedule(a_pod(VICTIM))

    (event,) = scheduler.world.events
    assert event.note.endswith('plugin "Odd": <lambda> is not `async def`, as it is awaited')


@pytest.mark.parametrize("name", ["n" * 10_000_000, "\ud800", 7, None])
async def test_a_post_filter_with_a_name_that_no_node_has_nominates_none(name: Any) -> None:
    refusing = plugin(fw.FilterPlugin, "No", filter=lambda *_: fw.unschedulable("no"))
    answer = fw.PostFilterResult(name), None
    scheduler = Scheduler(refusing, plugin(fw.PostFilterPlugin, "Odd", post_filter=lambda *_: answer))

    await scheduler.schedule(a_pod(VICTIM))

    (event,) = scheduler.world.events
    assert "expected a PostFilterResult with the name of a node, or none" in event.note
    assert not any(write.nominated for write in scheduler.world.written(Unschedulable))


@pytest.mark.parametrize("answer", [None, fw.unschedulable("no"), "nobody", (None, True), (True, None), (1, 2, 3)])
async def test_a_post_filter_with_a_wrong_answer_leaves_the_pod_without_room(answer: Any) -> None:
    refusing = plugin(fw.FilterPlugin, "No", filter=lambda *_: fw.unschedulable("no"))
    scheduler = Scheduler(refusing, plugin(fw.PostFilterPlugin, "Odd", post_filter=lambda *_: answer))

    await scheduler.schedule(a_pod(VICTIM))

    (event,) = scheduler.world.events
    assert event.note.startswith("0/1 nodes are available: 1 no. <lambda> answered ")
    assert "expected a pair: None or a PostFilterResult, then None or a Status" in event.note


@pytest.mark.parametrize(
    "does",
    [
        awaited(error=SystemExit(1)),
        awaited(error=KeyError("x")),
        awaited(error=GeneratorExit()),
        awaited(error=Untraceable()),
        lambda *_: None,
        cancelling_its_task,
        cancelling_its_task_and_waiting,
    ],
)
async def test_a_post_bind_that_fails_leaves_the_pod_bound(does: Any, caplog: pytest.LogCaptureFixture) -> None:
    scheduler = Scheduler(plugin(fw.PostBindPlugin, "Odd", post_bind=does))

    await scheduler.schedule(a_pod(VICTIM))

    assert list(scheduler.world.bound) == [a_pod(VICTIM).uid]
    assert "PostBind failed; the pod is bound" in caplog.messages


@pytest.mark.parametrize("does", [exiting, answering(True), waiting(), cancelling_itself, raising(Untraceable())])
async def test_an_unreserve_that_fails_keeps_no_other_from_its_turn(
    does: Any, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []
    scheduler = Scheduler(
        plugin(fw.ReservePlugin, "First", unreserve=lambda *_: told.append("First")),
        plugin(fw.ReservePlugin, "Odd", unreserve=does),
        plugin(fw.PermitPlugin, "No", permit=lambda *_: fw.unschedulable("no")),
    )

    await scheduler.schedule(a_pod(VICTIM))

    assert told == ["First"]
    assert "Unreserve failed" in caplog.messages


async def test_the_traceback_goes_to_the_log_once_and_has_only_the_authors_frames(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scheduler = Scheduler(plugin(fw.FilterPlugin, "Odd", filter=exiting))

    scheduler.handlers.pod_changed(a_pod(VICTIM))
    for _ in range(3):
        await scheduler.schedule()
        scheduler.clock.advance(60)
        scheduler.queue.flush_backoff_completed()

    records = [record for record in caplog.records if record.message.startswith("A plugin failed")]
    (record,) = records
    assert record.exc_info is not None
    text = logging.Formatter().formatException(record.exc_info)
    assert text.count("File ") == 1
    assert 'sys.exit("I have had enough")' in text
    assert vars(record)["plugin"] == "Odd"
    assert vars(record)["extensionPoint"] == "Filter"
    assert f"{__file__}:" in vars(record)["at"]
    count = sample(
        scheduler.metrics, "loadmaster_plugin_faults_total", plugin="Odd", extension_point="Filter", kind="error"
    )
    assert count == 3


async def test_another_place_in_the_plugin_is_another_fault(caplog: pytest.LogCaptureFixture) -> None:
    def two_faults(state: Any, pod: Pod, node: Any) -> None:
        if pod.name == "one":
            raise KeyError("one")
        raise KeyError("two")

    scheduler = Scheduler(plugin(fw.FilterPlugin, "Odd", filter=two_faults))

    for name in ("one", "two", "three"):
        await scheduler.schedule(a_pod(name))

    assert len([message for message in caplog.messages if message.startswith("A plugin failed")]) == 2


async def test_what_a_plugin_says_on_purpose_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    says_error = fw.Status(Code.ERROR, ("the backend is away",))
    scheduler = Scheduler(plugin(fw.PreFilterPlugin, "Odd", pre_filter=lambda *_: says_error))

    await scheduler.schedule(a_pod(VICTIM))

    (event,) = scheduler.world.events
    assert event.note == 'running PreFilter plugin "Odd": the backend is away'
    assert not [message for message in caplog.messages if message.startswith("A plugin failed")]


async def test_what_the_api_server_refuses_is_no_fault_of_the_plugin_that_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refused(*_: Any) -> None:
        raise ApiError(404, 'pods "victim" not found')

    scheduler = Scheduler(plugin(fw.PreBindPlugin, "Odd", pre_bind=refused))

    await scheduler.schedule(a_pod(VICTIM))

    assert 'pods "victim" not found' in scheduler.world.events[0].note
    assert not [message for message in caplog.messages if message.startswith("A plugin failed")]
    assert sample(scheduler.metrics, "loadmaster_plugin_faults_total") == 0


def judging_nobody(*_: Any) -> None:
    raise fw.AttemptFailed("the pod has no team")


@pytest.mark.parametrize(
    ("base", "method", "note"),
    [
        (fw.FilterPlugin, "filter", FILTER + "the pod has no team"),
        (fw.PreFilterPlugin, "pre_filter", PRE_FILTER + "the pod has no team"),
        (fw.ReservePlugin, "reserve", 'running Reserve plugin "Odd": the pod has no team'),
    ],
)
async def test_an_attempt_that_a_plugin_ends_for_what_the_pod_is_is_no_fault(
    base: type[fw.Plugin], method: str, note: str, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = Scheduler(plugin(base, "Odd", **{method: judging_nobody}))

    await scheduler.schedule(a_pod(VICTIM))

    assert scheduler.world.events[0].note == note
    assert not [message for message in caplog.messages if message.startswith("A plugin failed")]
    assert sample(scheduler.metrics, "loadmaster_plugin_faults_total") == 0


async def test_an_odd_pod_is_no_fault_of_an_in_tree_plugin(caplog: pytest.LogCaptureFixture) -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "Odd"}]}
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    pod = pod_from_dict(
        control_plane_pod(VICTIM, scheduler="default-scheduler", topologySpreadConstraints=[constraint])
    )
    scheduler = Scheduler(started(PodTopologySpread(), a_handle()))

    await scheduler.schedule(pod)

    note = "get constraints from pod: obtaining pod's hard topology spread constraints:"
    assert scheduler.world.events[0].note.startswith(f'running PreFilter plugin "PodTopologySpread": {note}')
    assert not [message for message in caplog.messages if message.startswith("A plugin failed")]
