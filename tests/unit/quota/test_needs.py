"""What a group still needs of its share: the least that makes it complete."""

import cProfile

from scheduler.api.pods.pod import Pod
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.quota.adapters import AdaptedShares
from scheduler.quota.needs import need_of_group
from scheduler.state.group_members import Members
from scheduler.state.nominator import Nominator
from scheduler.state.share_usage import ShareSelector
from scheduler.testing import a_pod
from tests.unit.cycle.fakes import newer


def members(*pods: Pod) -> Members:
    made = Members()
    for pod in pods:
        (made.assign if pod.node_name else made.see)(pod)
    return made


def needed(minimum: int, *pods: Pod) -> tuple[int, dict[str, int]] | None:
    found = need_of_group(
        PodGroup("a", "g", "uid", "", minimum), members(*pods), lambda pod: ShareSelector(pod.namespace)
    )
    return None if found is None else (found[1].pods, dict(found[1].requests))


def pod(name: str, node: str = "", namespace: str = "a", **requests: str) -> Pod:
    return a_pod(name, namespace=namespace, node_name=node, requests=requests)


def test_the_smallest_amount_of_each_resource_counts() -> None:
    pods = (pod("one", cpu="1", memory="3"), pod("two", cpu="2", memory="2"), pod("three", cpu="3"))

    assert needed(2, *pods) == (2, {"cpu": 3000, "memory": 2})


def test_those_that_have_a_node_are_there_already() -> None:
    assert needed(3, pod("one", "n", cpu="1"), pod("two", cpu="1"), pod("three", cpu="1")) == (2, {"cpu": 2000})


def test_nothing_is_said_of_a_group_that_is_complete_or_has_too_few_pods() -> None:
    assert needed(1, pod("one", "n", cpu="1"), pod("two", cpu="1")) is None
    assert needed(3, pod("one", cpu="1"), pod("two", cpu="1")) is None
    assert needed(0, pod("one", cpu="1")) is None


def test_the_age_of_a_group_is_that_of_its_oldest_pod() -> None:
    later, first = (
        newer(pod(name), creation_timestamp=f"2026-01-01T00:00:{second}Z") for name, second in (("a", 19), ("b", 17))
    )

    found = need_of_group(
        PodGroup("a", "g", "uid", "", 2), members(later, first), lambda pod: ShareSelector(pod.namespace)
    )

    assert found is not None
    assert found[1].pod is first


def test_nothing_is_said_of_pods_of_several_tenants() -> None:
    assert needed(2, pod("one", cpu="1"), pod("two", namespace="b", cpu="1")) is None


def test_no_member_is_looked_at_where_there_are_no_shares() -> None:
    unreadable = members(pod("one", cpu="many"))

    assert AdaptedShares(Nominator()).refusal_of_group(PodGroup("a", "g", "uid", "", 1), unreadable) is None


def test_members_that_each_name_a_resource_of_their_own_are_read_once() -> None:
    def calls(count: int) -> int:
        profile = cProfile.Profile()
        group = PodGroup("a", "g", "uid", "", count)
        those = members(*(pod(f"p{number}", **{f"example.com/r{number}": "1"}) for number in range(count)))
        profile.enable()
        found = need_of_group(group, those, lambda pod: ShareSelector(pod.namespace))
        profile.disable()
        assert found is not None
        assert set(found[1].requests.values()) == {1}
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(400) < 4.5 * calls(100)
