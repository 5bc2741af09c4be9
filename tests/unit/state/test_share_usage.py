"""The usage of selectors: what pods count with, from the moment that they have a node."""

from collections.abc import Mapping

from scheduler.api.pods.pod import Pod
from scheduler.api.quota.quota_amounts import MAX
from scheduler.state.share_usage import ShareSelector, ShareUsage
from scheduler.testing import a_pod

A = ShareSelector("a")
Change = tuple[str, dict[str, int], int]


class Counting:
    """Usage by namespace, and what it reported."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.usage = ShareUsage(lambda pod: ShareSelector(pod.namespace), self._changed)

    def _changed(
        self, uid: str, selector: ShareSelector, amounts: Mapping[str, int], sign: int, is_what_if: bool
    ) -> None:
        self.changes.append((uid, dict(amounts), sign))

    def of(self, selector: ShareSelector = A) -> tuple[int, dict[str, int]]:
        found = next((each for each in self.usage.usages() if each.selector == selector), None)
        return (0, {}) if found is None else (found.pods, found.amounts)


def pod(name: str = "p", **requests: str) -> Pod:
    return a_pod(name, namespace="a", node_name="n", requests=requests)


def test_pods_add_up_and_leave_nothing_behind() -> None:
    counting = Counting()
    counting.usage.add(pod("one", cpu="1"))
    counting.usage.add(pod("two", cpu="500m", memory="1Ki"))
    assert counting.of() == (2, {"cpu": 1500, "memory": 1024})

    counting.usage.remove("a/two")
    assert counting.of() == (1, {"cpu": 1000})
    counting.usage.remove("a/one")

    assert list(counting.usage.usages()) == []
    assert counting.usage.selector_of("a/one") is None
    counting.usage.check_invariants()


def test_a_pod_that_is_resized_is_never_free_in_between() -> None:
    counting = Counting()
    counting.usage.add(pod(cpu="1"))

    counting.usage.replace(pod(cpu="3"))

    assert [sign for _, _, sign in counting.changes] == [1, 1, -1]
    assert counting.of() == (1, {"cpu": 3000})
    counting.usage.check_invariants()


def test_a_version_that_takes_as_much_changes_nothing() -> None:
    counting = Counting()
    counting.usage.add(pod(cpu="1"))

    counting.usage.replace(pod(cpu="1000m"))

    assert len(counting.changes) == 1


def test_a_request_that_overflows_counts_as_much_as_there_can_be() -> None:
    counting = Counting()

    counting.usage.add(pod(memory="9223372036854775807", **{"example.com/x": "1e30"}))

    assert counting.of()[1]["memory"] == MAX
    assert counting.of()[1]["example.com/x"] >= MAX


def test_what_is_gone_or_unknown_may_be_removed_again() -> None:
    counting = Counting()

    counting.usage.remove("a/p")

    assert counting.changes == []


def test_a_restart_reads_the_tenants_again_and_reports_nothing() -> None:
    counting = Counting()
    counting.usage.add(pod("old", cpu="1"))
    counting.changes.clear()

    counting.usage.restart([pod("new", cpu="2")])

    assert counting.of() == (1, {"cpu": 2000})
    assert counting.changes == []
    assert set(counting.usage.uids()) == {"a/new"}
