"""Shares come and go with the configuration, and cost nothing without it."""

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from scheduler.engine.dumper import dump
from scheduler.framework.shares import DeclaredShare
from scheduler.testing import a_node, a_pod
from tests.unit.cycle.fakes import PROFILE, an_engine
from tests.unit.quota.waiting.shares import Sharing

ROOT: Final = Path(__file__).parents[4]

WITHOUT = """
import sys
from tests.unit.cycle.fakes import an_engine
engine = an_engine().engine
assert engine.share_parts.waker is None
print(*sorted(name for name in sys.modules if name.startswith("scheduler.quota.")))
"""

A = DeclaredShare("a", minimum={"cpu": "1"}, namespaces=("a",))
LARGER = DeclaredShare("a", minimum={"cpu": "3"}, namespaces=("a",))


def use(stage: Sharing, *shares: DeclaredShare, **others: Any) -> None:
    """Have the same profile with other arguments of the plugin."""
    framework = stage.engine.frameworks[PROFILE]
    plugins = dict(framework.plugins.by_name)
    plugins["CapacityScheduling"] = CapacityScheduling(shares=shares, **others)
    object.__setattr__(framework.plugins, "by_name", plugins)
    stage.engine.share_parts.use(stage.engine.frameworks)


def test_a_profile_without_shares_loads_nothing_of_them() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )

    loaded = ("adapter", "adapters", "needs", "reserving", "share_refs", "waiting", "waiting.parts")
    assert run.stdout.split() == [f"scheduler.quota.{name}" for name in loaded]


async def test_other_arguments_hold_at_once_and_wake_pods() -> None:
    stage = Sharing(A)
    await stage.try_pods(4)
    assert len(stage.placed) == 1

    use(stage, LARGER)
    await stage.schedule()

    assert len(stage.placed) == 3


async def test_other_arguments_wake_pods_in_the_order_in_which_they_came() -> None:
    stage = Sharing(A)
    for name in ("running", "first", "second"):
        stage.pod(name)
        stage.clock.advance(1)
    await stage.schedule()
    stage.engine.queue.activate(["a/first"])
    await stage.schedule()  # so the second one was tried longer ago

    use(stage, DeclaredShare("a", minimum={"cpu": "2"}, namespaces=("a",)))
    await stage.schedule()

    assert stage.placed == ["first", "running"]


async def test_pods_are_pending_for_the_quotas_of_other_apis_once_the_arguments_name_these() -> None:
    stage = Sharing(A)
    await stage.try_pods(4)

    use(stage, LARGER, elastic_quotas=False)
    await stage.schedule()

    assert len(stage.placed) == 3
    assert len(stage.engine.queue.pending_for_quota) == 1


async def test_a_tenant_is_kept_when_the_amounts_of_shares_change() -> None:
    by_label = DeclaredShare("gpu", minimum={"cpu": "1"}, pod_labels={"team": "gpu"})
    stage = Sharing(by_label)
    (pod,) = await stage.try_pods(1, labels={"team": "gpu"})
    usage = stage.shares.usage.selector_of(pod.uid)

    use(stage, DeclaredShare("gpu", minimum={"cpu": "2"}, pod_labels={"team": "gpu"}))

    assert stage.shares.usage.selector_of(pod.uid) is usage
    assert stage.used("gpu") == 1000


async def test_all_pods_are_free_without_the_plugin() -> None:
    stage = Sharing(A)
    await stage.try_pods(3)
    framework = stage.engine.frameworks[PROFILE]
    plugins = {name: each for name, each in framework.plugins.by_name.items() if name != "CapacityScheduling"}
    object.__setattr__(framework.plugins, "by_name", plugins)

    stage.engine.share_parts.use(stage.engine.frameworks)
    for _ in stage.under_test.queue.ask_again([PROFILE]):
        pass
    await stage.schedule()

    assert len(stage.placed) == 3
    assert stage.engine.share_parts.waker is None


async def test_pods_that_are_there_before_the_plugin_count() -> None:
    under_test = an_engine(CapacityScheduling)
    under_test.see(a_node("n", cpu="8"), a_pod("one", namespace="a", node_name="n", requests={"cpu": "2"}))
    stage = Sharing()
    stage.engine, stage.under_test, stage.shares = under_test.engine, under_test, under_test.engine.shares

    stage.quota(minimum={"cpu": "4"})

    assert stage.used() == 2000


async def test_the_dump_says_what_is_used_and_whether_it_is_so() -> None:
    stage = Sharing(A)
    await stage.try_pods(1)
    (ledger, _) = stage.shares.ledgers

    def lines() -> list[dict[str, object]]:
        found = dump(stage.engine, stage.clock())
        return [dict(line.fields) for line in found if line.message == "Dump of share" and line.fields["share"] == "a"]

    assert lines() == [{"share": "a", "source": "shares", "used": {"cpu": "1"}}]
    ledger.tree.add("a", {"cpu": 500})
    assert lines() == [{"share": "a", "source": "shares", "used": {"cpu": "1.5"}, "countedAgain": {"cpu": "1"}}]
    ledger.tree.remove("a", {"cpu": 500})
