"""If a share had other amounts: which pods would start, and which would wait."""

from typing import Any, Final

import pytest

from scheduler.config.types import Config
from scheduler.framework.errors import ConfigError
from scheduler.plugin_loading.in_tree import in_tree
from scheduler.simulate.what_if.answers import answered
from scheduler.simulate.what_if.questions import Questions, QuotaChange
from scheduler.simulate.what_if.screen import lines_of
from tests.fakes.config import config_with
from tests.unit.simulate.what_if.world import CONFIG, Json, a_node, a_spec, cluster_with, on, placed

REGISTRY: Final = in_tree()


def asked(*objects: Json, config: Config = CONFIG, **questions: Any) -> Json:
    """The whole document."""
    return answered(cluster_with(*objects), Questions(**questions), config, REGISTRY)


def config(**arguments: Any) -> Config:
    name = CONFIG.profiles[0].scheduler_name
    return config_with(REGISTRY, "CapacityScheduling", name=name, args={"CapacityScheduling": arguments})


QUOTAS: Final = config()
TREE: Final = config(
    shares=[
        {"name": "company"},
        {"name": "team-a", "parent": "company", "minimum": {"cpu": 1}, "maximum": {"cpu": 3}, "namespaces": ["a"]},
        {"name": "team-b", "parent": "company", "minimum": {"cpu": 1}, "namespaces": ["b"]},
    ]
)


def a_quota(namespace: str, **spec: Json) -> Json:
    metadata = {"name": "quota", "namespace": namespace}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": metadata, "spec": spec
    }  # fmt: skip


def a_pod(name: str, namespace: str) -> Json:
    return {"kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": a_spec(1)}


PODS: Final = [a_pod("a1", "a"), a_pod("a2", "a"), a_pod("a3", "a"), a_pod("b1", "b")]
OBJECTS: Final = [a_node("n1", cpu=8), a_quota("a", min={"cpu": 1}, max={"cpu": 3}), a_quota("b", min={"cpu": 1})]


def change(share: str, field: str, **amounts: str) -> list[QuotaChange]:
    return [QuotaChange(share, field, amounts)]


def test_quotas_of_files_keep_pods_waiting() -> None:
    found = asked(*OBJECTS, *PODS, config=QUOTAS, utilisation=True)

    assert placed(found) == {"a/a1": "n1", "a/a2": "n1", "a/a3": None, "b/b1": None}
    messages = {pod["name"]: pod["message"] for pod in found["pods"]}
    assert "Pod a/a3 is rejected in PreFilter because total ElasticQuota used is more than min" in messages["a3"]


def test_a_higher_minimum_lets_pods_start_and_says_which() -> None:
    found = asked(*OBJECTS, *PODS, config=QUOTAS, quota=change("a/quota", "minimum", cpu="2"))

    assert found["whatIf"]["quota"] == {
        "changes": [{"share": "a/quota", "field": "minimum", "resource": "cpu", "before": 1, "after": "2"}],
        "start": ["a/a3"],
        "wait": [],
        "victims": [],
    }
    lines = list(lines_of(found["whatIf"]))
    assert lines[:2] == ["minimum of a/quota: 2 cpu instead of 1", "  1 pod would start: a/a3"]


def test_a_lower_maximum_makes_pods_wait_and_others_start() -> None:
    found = asked(*OBJECTS, *PODS, config=QUOTAS, quota=change("a/quota", "maximum", cpu="1"))

    answer = found["whatIf"]["quota"]
    assert (answer["start"], answer["wait"]) == (["b/b1"], ["a/a2"])


def test_shares_of_the_arguments_are_changed_likewise() -> None:
    running = on("n1", "r", cpu=1, metadata={"namespace": "a"})
    found = asked(a_node("n1", cpu=8), running, *PODS, config=TREE, quota=change("team-b", "minimum", cpu="3"))

    answer = found["whatIf"]["quota"]
    assert answer["changes"][0]["before"] == 1
    assert answer["start"] == ["a/a2", "b/b1"]


def test_where_nothing_changes_it_says_so() -> None:
    found = asked(*OBJECTS, PODS[0], config=QUOTAS, quota=change("a/quota", "minimum", cpu="1"))

    assert "  no pod would start or wait for it" in list(lines_of(found["whatIf"]))


@pytest.mark.parametrize(
    ("quota", "problem"),
    [
        (change("a/quotas", "minimum", cpu="2"), "there is no such share; did you mean a/quota or b/quota?"),
        (
            change("a/quota", "lendingLimit", cpu="2"),
            "an ElasticQuota has a minimum and a maximum, and no lendingLimit",
        ),
        (change("a/quota", "minimum", cpu="lots"), "lots"),
        (change("a/quota", "minimum", cpu="4"), "its minimum of cpu, 4000, is above its maximum, 3000"),
    ],
)
def test_what_makes_no_sense_is_an_error(quota: list[QuotaChange], problem: str) -> None:
    with pytest.raises(ConfigError, match=r"^--quota a/quota") as caught:
        asked(*OBJECTS, config=QUOTAS, quota=quota)

    assert problem in caught.value.problems[0]


def test_without_the_plugin_there_are_no_shares_to_change() -> None:
    with pytest.raises(ConfigError, match="no profile of --config has the plugin CapacityScheduling"):
        asked(*OBJECTS, quota=change("a/quota", "minimum", cpu="2"))
