"""Why a pod waits for its share: what is lacking, who borrows it, what would help, and how long it may last."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from scheduler import framework as fw
from scheduler.api.objects import GroupAnnotations
from scheduler.explain.documents import PodReport, ShareEstimate, ShareWait, Suggestion
from scheduler.explain.explainer import Explainer
from scheduler.explain.screen import PLAIN, lines_of, lines_of_group
from scheduler.framework.shares import DeclaredShare
from tests.unit.quota.kueue_objects import a_flavor
from tests.unit.quota.waiting.shares import Sharing
from tests.unit.quota.waiting.test_groups import Stage
from tests.unit.quota.waiting.test_kueue_queues import Queues

NOW = datetime(2026, 1, 2, tzinfo=UTC).timestamp()

COMPANY = DeclaredShare("company")
A = DeclaredShare("team-a", "company", minimum={"cpu": "2"}, namespaces=("a",))
B = DeclaredShare("team-b", "company", minimum={"cpu": "2"}, namespaces=("b",))


def explainer(stage: Sharing) -> Explainer:
    return Explainer(stage.engine, stage.clock, wall_clock=lambda: NOW)


async def about(stage: Sharing, pod: fw.Pod) -> PodReport:
    report = await explainer(stage).about(pod.namespace, pod.name)
    as_sent: PodReport = msgspec.json.decode(msgspec.json.encode(report), type=PodReport)
    return as_sent


async def wait_of(stage: Sharing, pod: fw.Pod) -> ShareWait:
    share = (await about(stage, pod)).share
    assert isinstance(share, ShareWait), "it does not wait for its share"
    return share


def estimate(share: ShareWait) -> ShareEstimate:
    assert isinstance(share.estimate, ShareEstimate)
    return share.estimate


def texts(suggestions: Any) -> list[str]:
    return [each.text for each in suggestions]


def running(stage: Sharing, name: str, namespace: str = "b", **fields: Any) -> fw.Pod:
    return stage.pod(name, namespace=namespace, node_name="n", **fields)


def says(pod: fw.Pod, *, deadline: int | None = None, expected: str = "", minutes_ago: float = 0) -> fw.Pod:
    """The pod with what it says of how long it runs."""
    started = datetime.fromtimestamp(NOW, UTC) - timedelta(minutes=minutes_ago)
    annotations = GroupAnnotations(expected_seconds=expected) if expected else None
    return replace(
        pod,
        metadata=replace(pod.metadata, group_annotations=annotations, resource_version="2"),
        spec=replace(pod.spec, active_deadline_seconds=deadline),
        status=replace(pod.status, start_time=started),
    )


async def borrowed() -> tuple[Sharing, fw.Pod]:
    """Team a uses all that the company has: one of team b's pods waits."""
    stage = Sharing(COMPANY, A, B)
    for number in range(4):
        running(stage, f"a-{number}", "a", priority=number)
    waiting = stage.pod("waits", namespace="b")
    await stage.schedule()
    return stage, waiting


async def test_the_ancestor_that_lacks_something_and_who_borrows_it_are_named_with_what_would_help() -> None:
    stage, waiting = await borrowed()
    used = stage.used("team-a"), stage.used("company")

    report = await about(stage, waiting)

    share = report.share
    assert isinstance(share, ShareWait)
    assert (share.name, share.source) == ("team-b", "shares")
    assert share.lacks == ["1 cpu more than company has: team-a borrows 2"]
    assert share.text.startswith('share "team-b" has no space: 1 of cpu more than "company" has')
    assert texts(share.suggestions) == [
        "raise the minimum of team-b to 3 cpu",
        "raise the minimum of company to 1 cpu",
        "delete 1 pod of team-a (a/a-0)",
    ]
    assert [each.count for each in share.suggestions] == [1, 1, 1]
    assert share.suggestions[2].command == "kubectl delete pod --namespace a a-0"
    found = estimate(share)
    assert (found.seconds, found.running, found.silent) == (None, 4, 4)
    assert found.text == (
        "unknown: 4 of the 4 pods that could leave what it lacks say nothing of that, or run longer than they said"
    )
    lines = list(lines_of(report, PLAIN))
    first = lines.index("NO SPACE IN ITS SHARE, team-b")
    assert lines[first + 1] == "  1 cpu more than company has: team-a borrows 2"
    assert lines[first + 2].startswith("  wait: unknown: 4 of the 4 pods")
    assert "WHAT WOULD MAKE SPACE IN ITS SHARE, each tried out" in lines
    assert "  delete 1 pod of team-a (a/a-0)" in lines
    assert (stage.used("team-a"), stage.used("company")) == used, "nothing that was tried stays"


async def test_what_nodes_do_not_take_is_said() -> None:
    stage = Sharing()
    stage.quota("a", minimum={"cpu": "1"}, maximum={"cpu": "1"})
    waiting = stage.pod("large", requests={"cpu": "100"})
    await stage.schedule()

    share = await wait_of(stage, waiting)

    assert share.lacks == ["99 cpu above its limit"]
    assert share.suggestions[0].obstacle == "no node takes it then, as they are"


async def test_quotas_are_raised_until_nothing_stands_in_the_way_by_a_command() -> None:
    stage = Sharing()
    stage.quota("a", minimum={"cpu": "1", "memory": "1Gi"}, maximum={"cpu": "1500m", "memory": "1Gi"})
    running(stage, "a-0", "a")
    waiting = stage.pod("waits")
    await stage.schedule()

    share = await wait_of(stage, waiting)

    assert share.suggestions[0] == Suggestion(
        "raise the min of a/quota to 2 cpu, and the max of a/quota to 2 cpu",
        1,
        ["n"],
        command="kubectl patch elasticquotas.scheduling.x-k8s.io --namespace a quota --type=merge "
        """--patch='{"spec":{"min":{"cpu":"2"},"max":{"cpu":"2"}}}'""",
    )
    assert texts(share.suggestions)[1:] == ["delete 1 pod of a/quota (a/a-0)"]


async def test_no_command_is_offered_for_the_quotas_of_kueue() -> None:
    queues = Queues()
    pods = [queues.pod(f"p{number}") for number in range(4)]
    await queues.schedule()

    report = await Explainer(queues.engine, queues.under_test.clock, wall_clock=lambda: NOW).about("ns", pods[3].name)

    assert isinstance(report.share, ShareWait)
    raised = [each for each in report.share.suggestions if each.text.startswith("raise")]
    assert raised
    assert [each.command for each in raised] == [""] * len(raised)


async def test_a_pod_for_whose_flavor_there_is_no_node_may_be_woken_by_one() -> None:
    queues = Queues(a_flavor("gone", {"kind": "gone"}), groups=({"gone": {"cpu": ["9"]}},))
    queues.pod("p")
    await queues.schedule()

    report = await Explainer(queues.engine, queues.under_test.clock).about("ns", "p")

    assert isinstance(report.about, list)
    assert report.about[-1].startswith("refused by CapacityScheduling; may be woken by a new")
    assert "a new or changed Node (label)" in report.about[-1]


async def test_a_pod_may_ask_for_what_there_is_room_for() -> None:
    stage = Sharing()
    stage.quota("a", minimum={"cpu": "2"}, maximum={"cpu": "2"})
    waiting = stage.pod("waits", requests={"cpu": "5"})
    await stage.schedule()

    report = await about(stage, waiting)

    assert report.explanation
    (less,) = report.explanation.suggestions
    assert (less.text, less.names) == ("ask for 3 cpu less in container main", ["n"])
    assert less.patch == [{"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "2000m"}]


async def test_the_wait_lasts_until_enough_of_those_that_say_so_have_ended() -> None:
    stage, waiting = await borrowed()
    pods = {pod.name: pod for pod in stage.engine.cache.counted_pods()}
    stage.under_test.see(says(pods["a-3"], deadline=3600, minutes_ago=30))
    stage.under_test.see(says(pods["a-2"], expected="7200", deadline=90_000))

    found = estimate(await wait_of(stage, waiting))

    assert (found.seconds, found.running, found.silent) == (1800.0, 4, 2)
    assert found.text == (
        "about 30 min, if the pods that say how long they run keep to it, and nobody else takes what they leave; "
        "2 of 4 say nothing of that, or run longer than they said"
    )


async def test_a_group_that_lacks_nodes_and_quota_says_so_with_what_makes_space_in_its_share() -> None:
    stage = Stage("3")
    stage.a_group("g", 4, 4, requests={"cpu": "20"})
    await stage.schedule()

    group = await explainer(stage).about_group("a", "g")

    assert isinstance(group.share, ShareWait)
    assert group.share.suggestions[0].obstacle == "then all nodes together hold 3 of 4 and lack 1 node with 20 cpu free"


async def test_a_group_waits_for_what_it_needs_as_a_whole() -> None:
    stage = Stage("3")
    stage.a_group("g", 4, 4)
    await stage.schedule()

    group = await explainer(stage).about_group("a", "g")
    pod = await explainer(stage).about("a", "g-0")

    assert isinstance(group.share, ShareWait)
    assert isinstance(pod.share, ShareWait)
    assert group.share.lacks == pod.share.lacks == ["1 cpu above its limit"]
    assert group.share.suggestions[0].obstacle == ""
    assert "  1 cpu above its limit" in list(lines_of_group(group, PLAIN))


async def test_who_in_the_share_goes_first_is_named() -> None:
    stage = Stage("1")
    running(stage, "runs", "a")
    important = []
    for number in range(3):
        important.append(stage.pod(f"important-{number}", priority=9))
        stage.clock.advance(1.0)
    stage.a_group("g", 1, 1)
    stage.clock.advance(1.0)
    last = stage.pod("last")
    await stage.schedule()

    assert (await wait_of(stage, important[0])).ahead == ""
    assert (await wait_of(stage, important[1])).ahead == "first in its share: a/important-0"
    found = await wait_of(stage, last)
    assert found.ahead == "first in its share: a/important-0, a/important-1, a/important-2 and 1 more"
    group = (await explainer(stage).about_group("a", "g")).share
    assert isinstance(group, ShareWait)
    assert group.ahead == "first in its share: a/important-0, a/important-1, a/important-2"
    assert f"  {found.ahead}" in list(lines_of(await about(stage, last), PLAIN))


async def test_a_group_that_goes_first_in_its_share_is_named_as_such() -> None:
    stage = Stage("1")
    stage.a_group("g", 2, 2)
    stage.clock.advance(1.0)
    last = stage.pod("last", requests={"cpu": "2"})
    await stage.schedule()

    assert (await wait_of(stage, last)).ahead == "first in its share: the group a/g"


async def test_a_share_that_cannot_be_used_says_so_and_nothing_is_tried() -> None:
    stage = Sharing()
    stage.quota("a", minimum={"cpu": "4"}, maximum={"cpu": "2"})
    waiting = stage.pod("waits")
    await stage.schedule()

    share = await wait_of(stage, waiting)

    assert share.text == 'share "a/quota" cannot be used: its minimum of cpu, 4000, is above its maximum, 2000'
    assert (share.lacks, share.suggestions, share.estimate) == ([], [], msgspec.UNSET)


async def test_a_pod_with_room_in_its_share_has_no_such_section() -> None:
    stage = Sharing(COMPANY, A, B)
    pod = stage.pod("large", requests={"cpu": "1"}, node_selector={"disk": "ssd"})
    await stage.schedule()

    assert (await about(stage, pod)).share is msgspec.UNSET
