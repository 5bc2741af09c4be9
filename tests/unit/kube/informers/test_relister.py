"""The comparison with the API server."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from scheduler.api.pods.pod import Pod
from scheduler.framework.nodes.resources import parse_resource
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.informers.comparison_schedule import ComparisonSchedule
from scheduler.kube.informers.deadlines import COMPARISON_SECONDS, FIRST_COMPARISON, Deadlines
from scheduler.kube.informers.intake import NODES, PODS, Restored, node_intake, object_intake, pod_intake
from scheduler.kube.informers.relister import ListFailed, Relister
from scheduler.process.metrics import Metrics
from tests.fakes import FakeClock, sample
from tests.unit.kube.fake_api import (
    Answer,
    FakeApi,
    FakeHandlers,
    FakeObjectHandlers,
    fake_client,
    node_dict,
    object_dict,
    object_list,
    pod_dict,
    until,
    watch_line,
)

LIST_PODS = "GET /api/v1/pods"
LIST_NODES = "GET /api/v1/nodes"
LIST_BUDGETS = "GET /apis/example.com/v1/budgets"
BUDGETS = "budgets.v1.example.com"


class Setup:
    """A relister that runs, against a fake API server."""

    task: "asyncio.Task[None]"

    def __init__(self, api: FakeApi, client: Any, interval: float, *, with_budgets: bool) -> None:
        self.api = api
        self.handlers = FakeHandlers()
        self.metrics = Metrics()
        self.clock = FakeClock()
        self.deadlines = Deadlines(self.metrics, self.clock)
        schedule = ComparisonSchedule(RetryPolicy(0.01, 60.0))
        failed = schedule.request_later
        self.pods = pod_intake(self.handlers, self.metrics, failed)
        self.nodes = node_intake(self.handlers, self.metrics, failed)
        self.others = FakeObjectHandlers()
        self.budgets = object_intake(BUDGETS, parse_resource(BUDGETS), self.others, self.metrics, failed=failed)
        self.deadlines.expect(FIRST_COMPARISON, COMPARISON_SECONDS)
        intakes = [self.pods, *([self.budgets] if with_budgets else []), self.nodes]
        self.relister = Relister(
            client, intakes, schedule, self.hold, self.deadlines, self.metrics, interval, settle=0.0
        )

    @contextmanager
    def hold(self) -> Iterator[None]:
        """What the scheduling loop does for a relister, as calls of `others`."""
        self.others.calls.append("hold")
        yield
        self.others.calls.append("go on")

    async def sync(self) -> None:
        """As at the start, when kopf has listed both."""
        self.relister.request(PODS)
        self.relister.request(NODES)
        await self.relister.synced.wait()
        self.handlers.calls.clear()

    def overdue(self) -> set[str]:
        return set(self.deadlines.overdue())

    async def compare_pods(self) -> None:
        await self.relister.compare(self.pods, first=False)

    def repairs(self, kind: str) -> float:
        return sample(self.metrics, "loadmaster_resync_repairs_total", resource="pods", kind=kind)


@asynccontextmanager
async def a_setup(
    directory: Path, *pods: Answer, interval: float = 0.0, budgets: Sequence[Answer] = ()
) -> AsyncIterator[Setup]:
    api = FakeApi().on(LIST_BUDGETS, *budgets)
    api.on(LIST_PODS, *pods)
    api.on(LIST_NODES, object_list(node_dict("n"), version=10))
    async with fake_client(directory, api) as client:
        setup = Setup(api, client, interval, with_budgets=bool(budgets))
        setup.task = asyncio.create_task(setup.relister.run())
        try:
            yield setup
        finally:
            setup.task.cancel()
            await asyncio.wait([setup.task])


@asynccontextmanager
async def synced(
    directory: Path, *pods: Answer, interval: float = 0.0, budgets: Sequence[Answer] = ()
) -> AsyncIterator[Setup]:
    """When all has been listed once."""
    async with a_setup(directory, *pods, interval=interval, budgets=budgets) as setup:
        if budgets:
            setup.relister.request(BUDGETS)
        await setup.sync()
        yield setup


async def test_pages_are_read_to_the_end(tmp_path: Path) -> None:
    first = object_list(pod_dict("a"), version=10, continue_="next/+=")
    last = object_list(pod_dict("b"), version=10)

    async with synced(tmp_path, first, last) as setup:
        api, pods = setup.api, set(setup.handlers.pods)
    assert pods == {"uid-a", "uid-b"}
    selector = "status.phase!=Succeeded,status.phase!=Failed"
    assert [dict(request.query) for request in api.seen(LIST_PODS)] == [
        {"limit": "500", "fieldSelector": selector},
        {"limit": "500", "fieldSelector": selector, "continue": "next/+="},
    ]


async def test_differences_are_repaired_and_counted(tmp_path: Path) -> None:
    before = object_list(pod_dict("changed", 1), pod_dict("gone", 2), pod_dict("same", 3), version=10)
    after = object_list(pod_dict("changed", 11), pod_dict("new", 12), pod_dict("same", 3), version=20)

    async with synced(tmp_path, before, after) as setup:
        assert setup.repairs("added") == 0, "the first list is no repair"
        await setup.compare_pods()

    assert setup.handlers.calls == ["changed changed 11", "changed new 12", "deleted gone"]
    assert [setup.repairs(kind) for kind in ("added", "updated", "deleted")] == [1, 1, 1]


async def test_what_the_watch_knows_better_stays(tmp_path: Path) -> None:
    """While the list is on its way, the watch reports a later change, addition and deletion."""
    nothing = object_list(version=5)
    late = object_list(pod_dict("changed", 1), pod_dict("deleted", 2), version=10)

    async with synced(tmp_path, nothing, late) as setup:
        setup.pods.from_line(watch_line("ADDED", pod_dict("deleted", 2)))
        setup.api.held.clear()
        comparing = asyncio.create_task(setup.compare_pods())
        await until(lambda: setup.api.busy)
        setup.pods.from_line(watch_line("ADDED", pod_dict("changed", 11)))
        setup.pods.from_line(watch_line("ADDED", pod_dict("new", 12)))
        setup.pods.from_line(watch_line("DELETED", pod_dict("deleted", 13)))
        setup.handlers.calls.clear()
        setup.api.held.set()
        await comparing

        assert setup.handlers.calls == []


@pytest.mark.parametrize(
    "lists",
    [
        pytest.param(
            [
                object_list(pod_dict("a"), version=10, continue_="old"),
                Answer(410, {"message": "the continue token is too old"}),
            ],
            id="expired",
        ),
        pytest.param([Answer(500)], id="in trouble"),
    ],
)
async def test_a_list_that_expired_and_an_api_server_in_trouble_are_asked_again(
    tmp_path: Path, lists: list[Answer]
) -> None:
    async with a_setup(tmp_path, *lists, object_list(pod_dict("a"), pod_dict("b"), version=11)) as setup:
        setup.api.on(LIST_NODES, Answer(500), object_list(node_dict("n"), version=10))
        await setup.sync()

        assert (set(setup.handlers.pods), set(setup.handlers.nodes)) == ({"uid-a", "uid-b"}, {"uid-n"})


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"metadata": {}, "items": []}, id="no version"),
        pytest.param({"metadata": {"resourceVersion": "9", "continue": "x"}, "items": []}, id="no end"),
        pytest.param("a greeting", id="no list"),
    ],
)
async def test_a_list_that_is_none_ends_the_comparison(tmp_path: Path, body: Any) -> None:
    async with a_setup(tmp_path, Answer(body=body)) as setup:
        with pytest.raises(ListFailed):
            await setup.compare_pods()

        assert len(setup.api.seen(LIST_PODS)) <= 2


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_failed_handler_is_made_up_for_and_what_fails_again_tried_again(tmp_path: Path, failures: int) -> None:
    async with synced(tmp_path, object_list(version=5), object_list(pod_dict("a", 6), version=10)) as setup:
        setup.handlers.fail_on = "a"
        setup.pods.from_line(watch_line("ADDED", pod_dict("a", 6)))
        await until(lambda: setup.repairs("failed") == failures - 1)
        setup.handlers.fail_on = ""
        await until(lambda: not setup.pods.is_dirty)

        assert setup.handlers.calls == ["mend"] * failures + ["repaired a 6"]
        assert setup.repairs("failed") == failures


async def test_a_deletion_that_failed_is_made_up_for(tmp_path: Path) -> None:
    before, after = object_list(pod_dict("a", 4), version=5), object_list(version=10)

    async with synced(tmp_path, before, after) as setup:
        setup.handlers.fail_on = "deleted"
        setup.pods.from_line(watch_line("DELETED", pod_dict("a", 6)))
        setup.handlers.fail_on = ""
        await until(lambda: not setup.pods.is_dirty)

        assert setup.handlers.calls == ["mend", "deleted a"]


async def test_a_list_from_before_the_failure_puts_nothing_right(tmp_path: Path) -> None:
    lists = [object_list(pod_dict("a", version), version=version) for version in (4, 5, 7)]

    async with synced(tmp_path, *lists) as setup:
        setup.api.held.clear()
        comparing = asyncio.create_task(setup.compare_pods())
        await until(lambda: setup.api.busy)
        setup.handlers.fail_on = "a"
        setup.pods.from_line(watch_line("MODIFIED", pod_dict("a", 7)))
        setup.handlers.fail_on = ""
        setup.api.held.set()
        await comparing
        after_the_first = list(setup.handlers.calls)
        await until(lambda: not setup.pods.is_dirty)

        assert after_the_first == ["mend"]
        assert setup.handlers.calls[-1] == "repaired a 7"


async def test_it_compares_every_interval(tmp_path: Path) -> None:
    lists = object_list(version=5), object_list(pod_dict("a", 6), version=10)
    async with a_setup(tmp_path, *lists, interval=0.01) as setup:
        setup.relister.request(PODS)
        setup.relister.request(NODES)
        await until(lambda: "changed a 6" in setup.handlers.calls)

        assert setup.relister.synced.is_set()


async def test_other_resources_are_compared_between_nodes_and_pods(tmp_path: Path) -> None:
    budgets = object_list(object_dict("shop"), version=10)

    async with a_setup(tmp_path, object_list(version=10), budgets=[budgets]) as setup:
        setup.relister.request(PODS)
        setup.relister.request(NODES)
        setup.relister.request(BUDGETS)
        await setup.relister.synced.wait()
    lists = [f"{request.method} {request.path}" for request in setup.api.requests]

    assert lists == [LIST_NODES, LIST_BUDGETS, LIST_PODS]
    assert dict(setup.api.requests[1].query) == {"limit": "500"}
    assert setup.others.calls == [f"changed {BUDGETS} shop 1"]


async def test_nothing_is_synced_before_every_watched_resource_is(tmp_path: Path) -> None:
    async with a_setup(tmp_path, object_list(version=10), budgets=[object_list(version=10)]) as setup:
        setup.relister.request(NODES)
        setup.relister.request(PODS)
        await until(lambda: setup.api.seen(LIST_PODS) and not setup.api.busy)

        assert not setup.relister.synced.is_set()


async def test_a_resource_that_is_not_served_holds_nothing_up_and_is_not_listed(tmp_path: Path) -> None:
    async with a_setup(tmp_path, object_list(version=10), interval=0.01, budgets=[Answer(404)]) as setup:
        setup.relister.absent(BUDGETS)
        await setup.sync()
        before = len(setup.api.seen(LIST_PODS))
        await until(lambda: len(setup.api.seen(LIST_PODS)) > before)

        assert setup.api.seen(LIST_BUDGETS) == []


async def test_what_is_known_of_a_resource_that_goes_is_dropped_and_comes_back_with_it(tmp_path: Path) -> None:
    budgets = object_list(object_dict("shop"), version=10), object_list(object_dict("shop", 11), version=20)

    async with synced(tmp_path, object_list(version=10), budgets=budgets) as setup:
        setup.relister.absent(BUDGETS)
        setup.relister.request(BUDGETS)
        await until(lambda: setup.others.calls.count("go on") == 2)

    dropped, taken = ["hold", "deleted shop", "go on"], ["hold", f"changed {BUDGETS} shop 11", "go on"]
    assert setup.others.calls == [f"changed {BUDGETS} shop 1", *dropped, *taken]
    assert sample(setup.metrics, "loadmaster_resync_repairs_total", resource=BUDGETS, kind="added") == 0


async def test_an_object_deleted_while_nobody_watched_is_found_missing(tmp_path: Path) -> None:
    budgets = (
        object_list(object_dict("shop"), object_dict("bank"), version=10),
        object_list(object_dict("bank"), version=20),
    )

    async with synced(tmp_path, object_list(version=10), budgets=budgets) as setup:
        setup.relister.request(BUDGETS)
        await until(lambda: len(setup.others.calls) == 3)

    assert setup.others.calls[2] == "deleted shop"
    assert sample(setup.metrics, "loadmaster_resync_repairs_total", resource=BUDGETS, kind="deleted") == 1


async def test_a_first_list_may_take_any_time_while_its_pages_come(tmp_path: Path) -> None:
    pages = [object_list(pod_dict(str(i)), version=10, continue_=f"after-{i}") for i in range(5)]

    overdue = []
    async with a_setup(tmp_path, *pages, object_list(version=10)) as setup:
        setup.api.held.clear()
        setup.relister.request(NODES)
        setup.relister.request(PODS)
        for count in range(1, len(pages) + 3):
            await until(lambda: len(setup.api.requests) == count and setup.api.busy)  # noqa: B023  not kept
            setup.clock.advance(COMPARISON_SECONDS)
            overdue.append(setup.overdue())
            setup.api.held.set()  # answers this one
            setup.api.held.clear()
        await setup.relister.synced.wait()
        setup.clock.advance(COMPARISON_SECONDS + 1.0)

        assert [*overdue, setup.overdue()] == [set()] * 8


async def test_a_first_list_that_does_not_come_is_overdue(tmp_path: Path) -> None:
    async with a_setup(tmp_path, object_list(version=10)) as setup:
        setup.api.held.clear()
        setup.relister.request(NODES)
        await until(lambda: setup.api.busy)
        setup.clock.advance(COMPARISON_SECONDS + 1.0)
        overdue = setup.overdue()
        setup.api.held.set()

        assert overdue == {FIRST_COMPARISON}


@pytest.mark.parametrize(("status", "expected"), [(403, {FIRST_COMPARISON}), (429, set()), (503, set())])
async def test_only_trouble_of_the_api_server_excuses_a_first_list(
    tmp_path: Path, status: int, expected: set[str]
) -> None:
    async with a_setup(tmp_path, Answer(status)) as setup:
        setup.relister.request(PODS)
        await until(lambda: setup.api.requests)
        setup.clock.advance(COMPARISON_SECONDS + 1.0)
        await until(lambda: len(setup.api.requests) >= 3 or not setup.overdue())

        assert setup.overdue() == expected


async def test_once_all_is_compared_nothing_is_expected_of_comparisons(tmp_path: Path) -> None:
    async with synced(tmp_path, object_list(version=10)) as setup:
        setup.api.on(LIST_PODS, Answer(403))
        setup.relister.request(PODS)
        await until(lambda: len(setup.api.requests) >= 4)
        setup.clock.advance(COMPARISON_SECONDS + 1.0)

        assert setup.overdue() == set()


async def test_comparing_anew_takes_lists_that_were_asked_for_afterwards_and_counts_nothing_as_missed(
    tmp_path: Path,
) -> None:
    before = object_list(pod_dict("old", 1), version=5)
    after = object_list(pod_dict("new", 8), version=9)
    async with synced(tmp_path, before, before, after) as setup:
        setup.api.held.clear()
        setup.relister.request(PODS)  # one is under way, and began too early
        await until(lambda: len(setup.api.seen(LIST_PODS)) == 2)

        comparing = asyncio.ensure_future(setup.relister.compare_again())
        setup.api.held.set()
        await comparing

        assert {pod.name for pod in setup.handlers.pods.values()} == {"new"}
        assert len(setup.api.seen(LIST_PODS)) == 3
        assert (setup.repairs("missed"), setup.repairs("deleted"), setup.relister.synced.is_set()) == (0, 0, True)


async def test_what_comes_back_is_taken_in_whole_with_what_the_watch_says_meanwhile(tmp_path: Path) -> None:
    first = object_list(object_dict("a", 5), object_dict("gone", 6), version=10, continue_="next")
    last = object_list(object_dict("b", 7), object_dict("c", 8), version=10)

    async with a_setup(tmp_path, object_list(version=10), budgets=[first, last]) as setup:
        setup.relister.absent(BUDGETS)
        await setup.sync()
        setup.budgets.from_line(watch_line("ADDED", object_dict("a", 5)))  # the list will have it
        setup.api.held.clear()
        setup.relister.request(BUDGETS)
        for pages in (1, 2):
            await until(lambda: len(setup.api.seen(LIST_BUDGETS)) == pages and setup.api.busy)  # noqa: B023  not kept
            if pages == 2:
                setup.budgets.from_line(watch_line("MODIFIED", object_dict("b", 11)))
                setup.budgets.from_line(watch_line("ADDED", object_dict("d", 12)))
                setup.budgets.from_line(watch_line("DELETED", object_dict("gone", 13)))
            before = list(setup.others.calls)
            setup.api.held.set()
            setup.api.held.clear()
        setup.api.held.set()
        await until(lambda: setup.others.calls[-1] == "go on" and len(setup.others.calls) > 4)

    changed = [f"changed {BUDGETS} {what}" for what in ("a 5", "b 7", "c 8", "b 11", "d 12")]
    assert before == ["hold", "go on"], "nothing is known before all is"
    assert setup.others.calls == ["hold", "go on", "hold", *changed, "go on"]


@pytest.mark.parametrize("status", [410, 500])
async def test_a_list_that_fails_half_way_brings_nothing(tmp_path: Path, status: int) -> None:
    first = object_list(object_dict("a", 5), version=10, continue_="next")
    whole = object_list(object_dict("b", 12), version=20)

    async with a_setup(tmp_path, object_list(version=10), budgets=[first, Answer(status), whole]) as setup:
        setup.relister.absent(BUDGETS)
        await setup.sync()
        setup.relister.request(BUDGETS)
        await until(lambda: setup.others.calls.count("go on") == 2)

    assert setup.others.calls == ["hold", "go on", "hold", f"changed {BUDGETS} b 12", "go on"]


async def test_one_list_that_hangs_holds_up_no_other(tmp_path: Path) -> None:
    hangs = asyncio.Event()
    async with synced(tmp_path, object_list(version=10), budgets=[object_list(version=10)]) as setup:
        before = len(setup.api.seen(LIST_PODS))
        setup.api.hanging[LIST_BUDGETS] = hangs
        setup.relister.request(BUDGETS)
        await until(lambda: setup.api.busy)
        for count in (1, 2, 3):
            setup.relister.request(PODS)
            await until(lambda: len(setup.api.seen(LIST_PODS)) == before + count)  # noqa: B023  not kept
        hangs.set()

        assert len(setup.api.seen(LIST_BUDGETS)) == 2


async def restored(setup: Setup) -> str:
    """Wait for the relister to end, and return why."""
    with pytest.raises(Restored) as raised:
        await setup.task
    return str(raised.value)


@pytest.mark.parametrize(
    ("lists", "event", "seen"),
    [
        pytest.param([object_list(version=10), object_list(version=9)], None, (10, 9), id="older than the last one"),
        pytest.param([object_list(version=10)], pod_dict("a", 11), (11, 10), id="older than an event"),
        pytest.param(
            [object_list(pod_dict("a", 7), version=10), object_list(pod_dict("a", 5), version=1_000_010)],
            None,
            (7, 5),
            id="new, with an old object: the revision was raised",
        ),
    ],
)
async def test_a_list_that_goes_back_means_that_etcd_was_restored(
    tmp_path: Path, lists: list[Answer], event: Any, seen: tuple[int, int]
) -> None:
    async with synced(tmp_path, *lists) as setup:
        if event is not None:
            setup.pods.from_line(watch_line("ADDED", event))
        setup.relister.request(PODS)

        assert await restored(setup) == f"pods: version {seen[0]} was seen, and now the newest is {seen[1]}"


async def test_a_watch_that_goes_on_is_an_occasion_to_look(tmp_path: Path) -> None:
    async with synced(tmp_path, object_list(version=10), object_list(version=9)) as setup:
        setup.relister.watch_opened(PODS)

        assert await restored(setup) == "pods: version 10 was seen, and now the newest is 9"
        assert [request.query["limit"] for request in setup.api.seen(LIST_PODS)] == ["500", "1"]


async def test_an_interruption_is_a_gap_until_all_was_compared_anew(tmp_path: Path) -> None:
    async with synced(tmp_path, object_list(version=10), object_list(pod_dict("a", 11), version=12)) as setup:
        gaps = setup.relister.gaps
        before = gaps.is_current
        setup.relister.watch_interrupted(PODS)
        closing = asyncio.create_task(gaps.close_forever(setup.relister.compare_again))
        setup.relister.watch_opened(PODS)
        during = gaps.is_current
        await until(lambda: gaps.is_current)
        closing.cancel()

        assert (before, during) == (True, False)
        assert "changed a 11" in setup.handlers.calls
        assert len(setup.api.seen(LIST_NODES)) == 2


async def test_a_watch_that_is_behind_is_no_restore(tmp_path: Path) -> None:
    """After its reconnection it may repeat what we have; only a consistent read must never be older."""
    async with synced(tmp_path, object_list(pod_dict("a", 7), version=10), object_list(version=12)) as setup:
        setup.pods.from_line(watch_line("MODIFIED", pod_dict("a", 11)))
        setup.pods.from_line(watch_line("MODIFIED", pod_dict("a", 9)))
        setup.relister.request(PODS)
        await until(lambda: not setup.handlers.pods)

        assert setup.handlers.calls == ["changed a 11", "deleted a"]


async def test_thousands_of_repairs_give_the_event_loop_back(tmp_path: Path) -> None:
    many = object_list(*(pod_dict(str(i), 11) for i in range(5_000)), version=20)

    async with synced(tmp_path, object_list(version=10), many) as setup:
        longest = 0
        seen = len(setup.handlers.pods)
        setup.relister.request(PODS)
        while len(setup.handlers.pods) < 5_000:
            await asyncio.sleep(0)
            longest, seen = max(longest, len(setup.handlers.pods) - seen), len(setup.handlers.pods)

    assert 0 < longest < 2_500


# --- resources that come and go with the configuration


@pytest.mark.parametrize("is_served", [True, False])
async def test_a_resource_that_is_added_later_holds_up_no_decision_as_nobody_reads_it_yet(
    tmp_path: Path, is_served: bool
) -> None:
    async with synced(tmp_path, object_list(pod_dict("a"), version=10)) as setup:
        setup.api.on(LIST_BUDGETS, object_list(object_dict("shop", 1), version=10))
        setup.relister.add(setup.budgets)
        (setup.relister.request if is_served else setup.relister.absent)(BUDGETS)
        await setup.relister.compared([BUDGETS])

        assert setup.others.calls == [f"changed {BUDGETS} shop 1"] * is_served
        assert len(setup.api.seen(LIST_BUDGETS)) == is_served
        assert setup.relister.synced.is_set()


async def test_a_resource_that_is_removed_is_compared_no_longer(tmp_path: Path) -> None:
    budgets = object_list(object_dict("shop", 1), version=10)
    async with synced(tmp_path, object_list(pod_dict("a"), version=10), budgets=[budgets]) as setup:
        await setup.relister.remove(BUDGETS)
        setup.relister.request(BUDGETS)
        await setup.relister.compare_again()

        assert len(setup.api.seen(LIST_BUDGETS)) == 1


async def test_a_removal_waits_for_the_comparison_under_way(tmp_path: Path) -> None:
    held = asyncio.Event()
    budgets = object_list(object_dict("shop", 1), version=10)
    async with a_setup(tmp_path, object_list(pod_dict("a"), version=10), budgets=[budgets]) as setup:
        setup.api.hanging[LIST_BUDGETS] = held
        setup.relister.request(BUDGETS)
        await until(lambda: setup.api.seen(LIST_BUDGETS))

        removal = asyncio.create_task(setup.relister.remove(BUDGETS))
        await asyncio.sleep(0)
        is_early = removal.done()
        held.set()
        await removal

        assert not is_early


async def test_what_is_read_anew_is_no_repair(tmp_path: Path) -> None:
    async with synced(tmp_path, object_list(pod_dict("a"), version=10)) as setup:
        setup.pods.decode_into(Pod)
        setup.relister.read_again(PODS)
        await setup.relister.compared([PODS])

        assert setup.handlers.calls == ["repaired a 1"]
        assert setup.repairs("updated") == 0


async def test_a_comparison_under_way_does_not_count_for_what_is_read_anew(tmp_path: Path) -> None:
    async with synced(tmp_path, object_list(pod_dict("a"), version=10)) as setup:
        held = setup.api.hanging[LIST_PODS] = asyncio.Event()
        before = len(setup.api.seen(LIST_PODS))
        setup.relister.request(PODS)
        await until(lambda: len(setup.api.seen(LIST_PODS)) > before)

        setup.pods.decode_into(Pod)
        setup.relister.read_again(PODS)
        held.set()
        await setup.relister.compared([PODS])

        assert len(setup.api.seen(LIST_PODS)) == before + 2
