"""What plugins may do wrong while pods are scheduled: each costs the pod that it is about, and says so in one sentence.

The plugins are wrong about one pod, `victim`, and right about another one, which must be placed as if nothing had been.
"""

import asyncio
import logging
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from plugins.pod_topology_spread.plugin import PodTopologySpread
from scheduler import framework as fw
from scheduler.api.pod import Pod
from scheduler.framework.errors import ApiError
from scheduler.framework.status import Code
from scheduler.testing import a_pod, pod_from_dict, started
from tests.controlplane.objects import a_pod as control_plane_pod
from tests.fakes import Unschedulable, a_handle, plugin, sample
from tests.unit.cycle.harness import Scheduler, finish

VICTIM, OTHER = "victim", "other"
FILTER = 'running "Odd" filter plugin: '
PRE_FILTER = 'running PreFilter plugin "Odd": '
SCORE = 'running Score plugins: plugin "Odd" failed with: '
NORMALIZE = 'running Normalize on Score plugins: plugin "Odd" failed with: '
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

    base: type[fw.Plugin]
    method: str
    does: Callable[..., Any]
    note: str
    """How the Event of the victim begins."""


def keeps(scores: Any) -> Any:
    return scores


STATUS = "expected None or a Status"
REFUSALS = "unschedulable(…), unresolvable(…) or pending(…)"
CASES = {
    # Filter
    "filter answers True": Case(
        fw.FilterPlugin, "filter", answering(True), f"{FILTER}method answered True (bool), {STATUS}"
    ),
    "filter answers False": Case(fw.FilterPlugin, "filter", answering(False), f"{FILTER}method answered False (bool)"),
    "filter answers 0": Case(fw.FilterPlugin, "filter", answering(0), f"{FILTER}method answered 0 (int)"),
    "filter answers a text": Case(fw.FilterPlugin, "filter", answering("no"), f"{FILTER}method answered 'no' (str)"),
    "filter answers a list": Case(
        fw.FilterPlugin, "filter", answering(["no"]), f"{FILTER}method answered ['no'] (list)"
    ),
    "filter answers a class": Case(fw.FilterPlugin, "filter", answering(fw.Status), f"{FILTER}method answered <class"),
    "filter is async": Case(fw.FilterPlugin, "filter", waiting(), FILTER + f"method {ASYNC}"),
    "filter answers a Status whose reason is a text": Case(
        fw.FilterPlugin,
        "filter",
        answering(fw.Status(Code.UNSCHEDULABLE, "no")),  # type: ignore[arg-type]
        f"{FILTER}method answered 'no' (str), expected a Status whose reasons are a tuple of texts",
    ),
    "filter answers a Status whose reasons are a list": Case(
        fw.FilterPlugin,
        "filter",
        answering(fw.Status(Code.UNSCHEDULABLE, ["no"])),  # type: ignore[arg-type]
        f"{FILTER}method answered ['no'] (list), expected a Status whose reasons are a tuple of texts",
    ),
    "filter answers Skip": Case(
        fw.FilterPlugin, "filter", answering(fw.SKIP), f"{FILTER}method answered Skip; it may answer None, {REFUSALS}"
    ),
    "filter answers Wait": Case(
        fw.FilterPlugin,
        "filter",
        answering(fw.Status(Code.WAIT, ("a while",))),
        f"{FILTER}method answered Wait: a while; it may answer None, {REFUSALS}",
    ),
    "filter answers Success": Case(
        fw.FilterPlugin, "filter", answering(fw.Status(Code.SUCCESS)), f"{FILTER}method answered Success; it may"
    ),
    "filter answers that it failed": Case(
        fw.FilterPlugin, "filter", answering(fw.Status(Code.ERROR, ("no data",))), f"{FILTER}no data"
    ),
    "filter raises": Case(fw.FilterPlugin, "filter", raising(KeyError("zone")), FILTER + "KeyError: 'zone'"),
    "filter raises without a text": Case(fw.FilterPlugin, "filter", raising(ValueError()), FILTER + "ValueError"),
    "filter raises what has no words": Case(
        fw.FilterPlugin,
        "filter",
        raising(Unspeakable()),
        FILTER + "Unspeakable: (its text cannot be had: RuntimeError)",
    ),
    "filter raises a long text": Case(
        fw.FilterPlugin, "filter", raising(ValueError(LONG)), f"{FILTER}ValueError: {'x' * 1_000}…"
    ),
    "filter exits": Case(fw.FilterPlugin, "filter", exiting, FILTER + "SystemExit: I have had enough"),
    "filter exits quietly": Case(fw.FilterPlugin, "filter", raising(SystemExit()), FILTER + "SystemExit"),
    "filter interrupts": Case(fw.FilterPlugin, "filter", raising(KeyboardInterrupt()), FILTER + "KeyboardInterrupt"),
    "filter cancels": Case(fw.FilterPlugin, "filter", raising(asyncio.CancelledError()), FILTER + "CancelledError"),
    "filter ends a generator": Case(fw.FilterPlugin, "filter", raising(GeneratorExit()), FILTER + "GeneratorExit"),
    "filter stops an iteration": Case(fw.FilterPlugin, "filter", raising(StopIteration()), FILTER + "StopIteration"),
    "filter runs out of memory": Case(fw.FilterPlugin, "filter", raising(MemoryError()), FILTER + "MemoryError"),
    "filter never ends to call itself": Case(
        fw.FilterPlugin, "filter", diving, FILTER + "RecursionError: maximum recursion depth exceeded"
    ),
    "filter_nodes answers a list": Case(
        fw.FilterNodesPlugin, "filter_nodes", by_column(lambda rows: [0] * len(rows)), FILTER + "method answered [0"
    ),
    "filter_nodes answers another shape": Case(
        fw.FilterNodesPlugin,
        "filter_nodes",
        by_column(lambda rows: np.zeros(77, np.int32)),
        FILTER + "method answered int32 of shape (77,) for ",
    ),
    "filter_nodes answers fractions": Case(
        fw.FilterNodesPlugin,
        "filter_nodes",
        by_column(lambda rows: np.ones(len(rows))),
        FILTER + "method answered float64 of shape ",
    ),
    "filter takes too few": Case(
        fw.FilterPlugin,
        "filter",
        lambda state, pod: None,
        FILTER + "TypeError: <lambda>() takes 2 positional arguments",
    ),
    # PreFilter
    "pre_filter answers a set": Case(
        fw.PreFilterPlugin,
        "pre_filter",
        answering({"a"}),
        PRE_FILTER + "method answered {'a'} (set), expected None, a PreFilterResult or a Status",
    ),
    "pre_filter answers True": Case(
        fw.PreFilterPlugin, "pre_filter", answering(True), PRE_FILTER + "method answered True"
    ),
    "pre_filter answers a list of names": Case(
        fw.PreFilterPlugin,
        "pre_filter",
        answering(fw.PreFilterResult(["a"])),  # type: ignore[arg-type]
        PRE_FILTER + "method answered ['a'] (list), expected a PreFilterResult with a set of names",
    ),
    "pre_filter answers Pending": Case(
        fw.PreFilterPlugin,
        "pre_filter",
        answering(fw.pending("a quota")),
        f"{PRE_FILTER}method answered Pending: a quota; it may answer None, a PreFilterResult, SKIP, unschedulable(…)",
    ),
    "pre_filter is async": Case(fw.PreFilterPlugin, "pre_filter", waiting(), PRE_FILTER + f"method {ASYNC}"),
    "pre_filter exits": Case(fw.PreFilterPlugin, "pre_filter", exiting, PRE_FILTER + "SystemExit: I have had enough"),
    # Score
    "score answers a fraction": Case(
        fw.ScorePlugin,
        "score",
        answering(99.9, 1),
        SCORE + "method answered 99.9 (float), expected a whole number of 64 bits",
    ),
    "score answers a text": Case(fw.ScorePlugin, "score", answering("7", 1), SCORE + "method answered '7' (str)"),
    "score answers True": Case(fw.ScorePlugin, "score", answering(True, 1), SCORE + "method answered True (bool)"),
    "score answers nothing": Case(
        fw.ScorePlugin, "score", answering(None, 1), SCORE + "method answered None, expected"
    ),
    "score answers too much": Case(fw.ScorePlugin, "score", answering(2**70, 1), SCORE + "method answered 1180591620"),
    "score is async": Case(fw.ScorePlugin, "score", waiting(1), SCORE + f"method {ASYNC}"),
    "score answers 101": Case(
        fw.ScorePlugin,
        "score",
        answering(101, 1),
        'applying score defaultWeights on Score plugins: plugin "Odd" returns an invalid score 101',
    ),
    "score exits": Case(fw.ScorePlugin, "score", raising(SystemExit(1), 1), SCORE + "SystemExit: 1"),
    "score_nodes answers fractions": Case(
        fw.ScoreNodesPlugin,
        "score_nodes",
        by_column(lambda rows: np.ones(len(rows))),
        SCORE + "method answered float64",
    ),
    "pre_score answers True": Case(
        fw.PreScorePlugin,
        "pre_score",
        answering(True),
        f'running PreScore plugin "Odd": method answered True (bool), {STATUS}',
    ),
    "pre_score refuses": Case(
        fw.PreScorePlugin,
        "pre_score",
        answering(fw.unschedulable("no")),
        'running PreScore plugin "Odd": method answered Unschedulable: no; it may answer None or SKIP',
    ),
    # Reserve, Permit
    "reserve answers True": Case(
        fw.ReservePlugin,
        "reserve",
        answering(True),
        f'running Reserve plugin "Odd": method answered True (bool), {STATUS}',
    ),
    "reserve exits": Case(
        fw.ReservePlugin, "reserve", exiting, 'running Reserve plugin "Odd": SystemExit: I have had enough'
    ),
    "permit answers 5": Case(
        fw.PermitPlugin,
        "permit",
        answering(5),
        'running Permit plugin "Odd": method answered 5 (int), expected None, a Status or a PermitWait',
    ),
    "permit waits for a text": Case(
        fw.PermitPlugin,
        "permit",
        answering(fw.PermitWait("5")),  # type: ignore[arg-type]
        "running Permit plugin \"Odd\": method answered '5' (str), expected a PermitWait of seconds, 0 or more",
    ),
    "permit waits for less than nothing": Case(
        fw.PermitPlugin,
        "permit",
        answering(fw.PermitWait(-5.0)),
        'running Permit plugin "Odd": method answered -5.0 (float), expected a PermitWait of seconds, 0 or more',
    ),
    "permit waits for no number": Case(
        fw.PermitPlugin,
        "permit",
        answering(fw.PermitWait(float("nan"))),
        'running Permit plugin "Odd": method answered nan',
    ),
    "permit answers Wait": Case(
        fw.PermitPlugin,
        "permit",
        answering(fw.Status(Code.WAIT)),
        f'running Permit plugin "Odd": method answered Wait; it may answer None, a PermitWait, {REFUSALS}',
    ),
    "reserve answers Skip": Case(
        fw.ReservePlugin,
        "reserve",
        answering(fw.SKIP),
        f'running Reserve plugin "Odd": method answered Skip; it may answer None, {REFUSALS}',
    ),
    "permit is async": Case(fw.PermitPlugin, "permit", waiting(), f'running Permit plugin "Odd": method {ASYNC}'),
    # The binding cycle
    "pre_bind_pre_flight answers True": Case(
        fw.PreBindPlugin,
        "pre_bind_pre_flight",
        answering(True),
        'running PreBindPreFlight plugin "Odd": method answered True (bool)',
    ),
    "pre_bind answers Skip": Case(
        fw.PreBindPlugin,
        "pre_bind",
        awaited(fw.SKIP),
        f'running PreBind plugin "Odd": method answered Skip; it may answer None, {REFUSALS}',
    ),
    "pre_bind_pre_flight refuses": Case(
        fw.PreBindPlugin,
        "pre_bind_pre_flight",
        answering(fw.pending("no")),
        'running PreBindPreFlight plugin "Odd": method answered Pending: no; it may answer None or SKIP',
    ),
    "pre_bind answers True": Case(
        fw.PreBindPlugin,
        "pre_bind",
        awaited(True),
        f'running PreBind plugin "Odd": method answered True (bool), {STATUS}',
    ),
    "pre_bind raises": Case(
        fw.PreBindPlugin,
        "pre_bind",
        awaited(error=OSError(5, "broken")),
        'running PreBind plugin "Odd": OSError: [Errno 5] ',
    ),
    "pre_bind takes too few": Case(
        fw.PreBindPlugin, "pre_bind", lambda state: None, 'running PreBind plugin "Odd": TypeError: <lambda>() takes 1 '
    ),
    "pre_bind exits": Case(
        fw.PreBindPlugin, "pre_bind", awaited(error=SystemExit(0)), 'running PreBind plugin "Odd": SystemExit: 0'
    ),
    "pre_bind interrupts": Case(
        fw.PreBindPlugin,
        "pre_bind",
        awaited(error=KeyboardInterrupt()),
        'running PreBind plugin "Odd": KeyboardInterrupt',
    ),
    "bind answers True": Case(
        fw.BindPlugin, "bind", awaited(True), 'running Bind plugin "Odd": method answered True (bool)'
    ),
    "bind exits": Case(fw.BindPlugin, "bind", awaited(error=SystemExit(0)), 'running Bind plugin "Odd": SystemExit: 0'),
    **{
        f"{name} {what}": Case(base, name, does, f'running {point} plugin "Odd": {said}')
        for base, name, point in ((fw.PreBindPlugin, "pre_bind", "PreBind"), (fw.BindPlugin, "bind", "Bind"))
        for what, does, said in (
            ("ends a generator", awaited(error=GeneratorExit()), "GeneratorExit"),
            ("raises CancelledError", awaited(error=asyncio.CancelledError()), "CancelledError"),
            ("awaits what was cancelled", awaiting_what_was_cancelled, "CancelledError"),
            (
                "cancels its task",
                cancelling_its_task,
                "CancelledError: it has cancelled the task in which it is awaited",
            ),
            ("cancels its task and waits", cancelling_its_task_and_waiting, "CancelledError"),
            ("cancels its task and fails", cancelling_its_task_and_failing, "ValueError: broken"),
            ("raises what has no words", awaited(error=Unspeakable()), "Unspeakable: (its text cannot be had: Run"),
            ("raises what has no trace", awaited(error=Untraceable()), "Untraceable: (its text cannot be had: Sys"),
        )
    },
    **{
        f"{name} {what}": Case(base, name, does, said)
        for base, name, begins in (
            (fw.PreFilterPlugin, "pre_filter", PRE_FILTER),
            (fw.FilterPlugin, "filter", FILTER),
            (fw.ReservePlugin, "reserve", 'running Reserve plugin "Odd": '),
            (fw.PermitPlugin, "permit", 'running Permit plugin "Odd": '),
        )
        for what, does, said in (
            ("cancels the scheduler", cancelling_itself, f"{begins}AssertionError: there is no task to cancel"),
            ("raises what has no trace", raising(Untraceable()), f"{begins}Untraceable: (its text cannot be had"),
        )
    },
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
async def test_a_wrong_plugin_costs_the_pod_that_it_is_about_and_says_why(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    further: dict[str, Any] = {"normalize_score": keeps} if case.method == "normalize_score" else {}
    if case.base is fw.BindPlugin and case.method == "bind":
        case = case._replace(does=_passing_on(case.does))
    if case.base in (fw.FilterNodesPlugin,):
        further["status_of"] = lambda *_: fw.unschedulable("no")
    odd = plugin(case.base, "Odd", **{case.method: case.does}, **further)
    scoring = plugin(fw.ScorePlugin, "Score", score=lambda *_: 1)
    scheduler = Scheduler(odd, scoring, nodes=["a", "b"])

    await scheduler.schedule(a_pod(VICTIM))
    await scheduler.schedule(a_pod(OTHER))

    events = [event for event in scheduler.world.events if event.pod == f"default/{VICTIM}"]
    (event,) = [event for event in events if event.reason == "FailedScheduling"]  # a busy machine adds one on slowness
    assert event.note.startswith(case.note)
    assert len(event.note) < 1_200
    is_about_all = "TypeError" in case.note  # it cannot be called at all
    assert list(scheduler.world.bound) == ([] if is_about_all else [a_pod(OTHER).uid])
    assert scheduler.where(a_pod(VICTIM)) == "backoff"
    scheduler.check()
    await finish(scheduler)


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
    await finish(scheduler)


@pytest.mark.parametrize("name", ["n" * 10_000_000, "\ud800", 7, None])
async def test_a_post_filter_with_a_name_that_no_node_has_nominates_none(name: Any) -> None:
    refusing = plugin(fw.FilterPlugin, "No", filter=lambda *_: fw.unschedulable("no"))
    answer = fw.PostFilterResult(name), None
    scheduler = Scheduler(refusing, plugin(fw.PostFilterPlugin, "Odd", post_filter=lambda *_: answer))

    await scheduler.schedule(a_pod(VICTIM))

    (event,) = scheduler.world.events
    assert "expected a PostFilterResult with the name of a node, or none" in event.note
    assert not any(write.nominated for write in scheduler.world.written(Unschedulable))
    await finish(scheduler)


@pytest.mark.parametrize("answer", [None, fw.unschedulable("no"), "nobody", (None, True), (True, None), (1, 2, 3)])
async def test_a_post_filter_with_a_wrong_answer_leaves_the_pod_without_room(answer: Any) -> None:
    refusing = plugin(fw.FilterPlugin, "No", filter=lambda *_: fw.unschedulable("no"))
    scheduler = Scheduler(refusing, plugin(fw.PostFilterPlugin, "Odd", post_filter=lambda *_: answer))

    await scheduler.schedule(a_pod(VICTIM))

    (event,) = scheduler.world.events
    assert event.note.startswith("0/1 nodes are available: 1 no. <lambda> answered ")
    assert "expected a pair: None or a PostFilterResult, then None or a Status" in event.note
    await finish(scheduler)


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
    await finish(scheduler)


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
    scheduler.check()
    await finish(scheduler)


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
    await finish(scheduler)


async def test_another_place_in_the_plugin_is_another_fault(caplog: pytest.LogCaptureFixture) -> None:
    def two_faults(state: Any, pod: Pod, node: Any) -> None:
        if pod.name == "one":
            raise KeyError("one")
        raise KeyError("two")

    scheduler = Scheduler(plugin(fw.FilterPlugin, "Odd", filter=two_faults))

    for name in ("one", "two", "three"):
        await scheduler.schedule(a_pod(name))

    assert len([message for message in caplog.messages if message.startswith("A plugin failed")]) == 2
    await finish(scheduler)


async def test_what_a_plugin_says_on_purpose_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    says_error = fw.Status(Code.ERROR, ("the backend is away",))
    scheduler = Scheduler(plugin(fw.PreFilterPlugin, "Odd", pre_filter=lambda *_: says_error))

    await scheduler.schedule(a_pod(VICTIM))

    (event,) = scheduler.world.events
    assert event.note == 'running PreFilter plugin "Odd": the backend is away'
    assert not [message for message in caplog.messages if message.startswith("A plugin failed")]
    await finish(scheduler)


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
    await finish(scheduler)


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
    await finish(scheduler)


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
    await finish(scheduler)
