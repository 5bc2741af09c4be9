"""The selector that Services and controllers give a pod: the intent of helper/spread_test.go."""

from typing import Any

import pytest

from plugins.pod_topology_spread.default_selectors import DefaultSelectors
from scheduler import framework as fw
from scheduler.api.label_selectors import Requirement, Selector, selector_from_labels
from tests.unit.plugins.spread import WEB, Objects, a_spread, a_spread_pod

RC = ("v1", "ReplicationController", "above")
RS = ("apps/v1", "ReplicaSet", "above")
SS = ("apps/v1", "StatefulSet", "above")
NEW = {"matchLabels": {"version": "2"}}
RESOURCES = {RC: fw.REPLICATION_CONTROLLER, RS: fw.REPLICA_SET, SS: fw.STATEFUL_SET}


def the_labels(**labels: str) -> Selector:
    return selector_from_labels(labels)


def test_nothing_above_a_pod_selects_everything() -> None:
    assert DefaultSelectors(Objects().handle).of(a_spread_pod()).is_everything


@pytest.mark.parametrize("selector", [None, {}, {"app": "db"}, {"app": "web", "tier": "front"}])
def test_a_service_that_does_not_select_the_pod_adds_nothing(selector: Any) -> None:
    assert DefaultSelectors(Objects().service(selector).handle).of(a_spread_pod()).is_everything


def test_all_services_of_the_namespace_that_select_the_pod_count() -> None:
    objects = Objects().service(WEB, "one").service({"version": "2"}, "two").service({"x": "y"}, "three", "team")
    pod = a_spread_pod(labels={**WEB, "version": "2", "x": "y"})

    assert DefaultSelectors(objects.handle).of(pod) == the_labels(app="web", version="2")


@pytest.mark.parametrize(("owner", "selector"), [(RC, {"version": "2"}), (RS, NEW), (SS, NEW)])
def test_the_controllers_selector_is_added(owner: tuple[str, str, str], selector: Any) -> None:
    objects = Objects().service(WEB).add(RESOURCES[owner], "above", selector)
    pod = a_spread_pod(labels={**WEB, "version": "2"}, owner=owner)

    assert DefaultSelectors(objects.handle).of(pod) == the_labels(app="web", version="2")


def test_a_replication_controller_has_the_last_word_on_a_label() -> None:
    objects = Objects().service(WEB).add(fw.REPLICATION_CONTROLLER, "above", {"app": "db"})

    assert DefaultSelectors(objects.handle).of(a_spread_pod(owner=RC)) == the_labels(app="db")


def test_a_controller_may_select_by_expressions() -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}
    objects = Objects().service(WEB).add(fw.REPLICA_SET, "above", selector)

    found = DefaultSelectors(objects.handle).of(a_spread_pod(owner=RS))

    assert set(found.requirements) == {
        Requirement("app", "In", frozenset({"web"})),
        Requirement("app", "In", frozenset({"web", "db"})),
    }


@pytest.mark.parametrize(
    "owner",
    [
        ("apps/v1beta1", "ReplicaSet", "above"),
        ("apps/v1", "Deployment", "above"),
        ("apps/v1", "ReplicaSet", "gone"),
        None,
    ],
)
def test_other_owners_add_nothing(owner: tuple[str, str, str] | None) -> None:
    objects = Objects().service(WEB).add(fw.REPLICA_SET, "above", NEW).add(fw.REPLICA_SET, "other", NEW)

    assert DefaultSelectors(objects.handle).of(a_spread_pod(owner=owner)) == the_labels(app="web")


@pytest.mark.parametrize("selector", [None, {}, {"matchExpressions": [{"key": "a", "operator": "Near"}]}, "odd"])
def test_a_controller_without_a_usable_selector_adds_nothing(selector: Any) -> None:
    objects = Objects().service(WEB).add(fw.STATEFUL_SET, "above", selector)

    assert DefaultSelectors(objects.handle).of(a_spread_pod(owner=SS)) == the_labels(app="web")


def test_what_services_say_is_asked_again_when_they_change() -> None:
    objects = Objects()
    selectors = DefaultSelectors(objects.handle)
    assert selectors.of(a_spread_pod()).is_everything

    objects.service(WEB)

    assert selectors.of(a_spread_pod()) == the_labels(app="web")


def test_a_plain_pod_concerns_the_plugin_once_an_object_selects_pods() -> None:
    objects, pod = Objects(), a_spread_pod()
    plugin = a_spread(objects.service(None))
    store = objects.handle.columns.store
    before, era = plugin.concerns_score(pod), store.era

    objects.add(fw.REPLICA_SET, "above", NEW)

    assert (before, plugin.concerns_score(pod)) == (False, True)
    assert store.era is not era, "it was remembered that such pods do not concern the plugin"
