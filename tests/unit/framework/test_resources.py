"""From the names in events to API resources, and what of them is watched."""

from typing import Any

import pytest

from plugins import IN_TREE
from scheduler import framework as fw
from scheduler.framework import events
from scheduler.framework.events import ALL_EVENTS
from scheduler.framework.nodes.resources import (
    KNOWN,
    NODES,
    PODS,
    ApiResource,
    parse_resource,
    parts_read,
    resource_problems,
    resources_to_watch,
    struct_of,
    writes_of,
)
from scheduler.testing import a_handle, started
from tests.fakes import plugin
from tests.unit.plugins.cluster import a_cluster


def registering(*resources: str, reads: tuple[str, ...] = (), name: str = "P") -> fw.Plugin:
    """A plugin that registers for these resources and reads those."""
    registered = tuple(fw.ClusterEventWithHint(fw.ClusterEvent(each, fw.Action.ALL)) for each in resources)
    made = plugin(fw.FilterPlugin, name, events_to_register=lambda: registered)
    type(made).reads = reads
    return made


@pytest.mark.parametrize(
    ("name", "expected", "path"),
    [
        pytest.param("Service", ApiResource("", "v1", "services"), "/api/v1/services", id="core"),
        pytest.param(
            "storage.k8s.io/StorageClass",
            ApiResource("storage.k8s.io", "v1", "storageclasses"),
            "/apis/storage.k8s.io/v1/storageclasses",
            id="kube-scheduler's name",
        ),
        pytest.param(
            "foos.v1.example.com", ApiResource("example.com", "v1", "foos"), "/apis/example.com/v1/foos", id="custom"
        ),
        pytest.param(
            "bars.v1beta1.a.b.c", ApiResource("a.b.c", "v1beta1", "bars"), "/apis/a.b.c/v1beta1/bars", id="deep"
        ),
        pytest.param(
            "jobs.v1.batch", ApiResource("batch", "v1", "jobs"), "/apis/batch/v1/jobs", id="group of one word"
        ),
        pytest.param(
            "foos.stable.example.com",
            ApiResource("example.com", "stable", "foos"),
            "/apis/example.com/stable/foos",
            id="a version of its own",
        ),
    ],
)
def test_a_name_stands_for_a_resource_and_its_path(name: str, expected: ApiResource, path: str) -> None:
    assert parse_resource(name) == expected
    assert expected.path == path


@pytest.mark.parametrize(
    "name", ["foos", "foos.v1", "foos.example.com", "Foo.v1.example.com", "example.com/Foo", "", "*"]
)
def test_what_is_no_resource_is_refused_with_what_to_write_instead(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"is no resource: expected <plural>\.<version>\.<group>, such as foos"
    ) as raised:
        parse_resource(name)
    assert "storage.k8s.io/CSINode" in str(raised.value)


def test_the_core_group_has_no_name_as_in_kube_scheduler() -> None:
    assert parse_resource("configmaps.v1.") == ApiResource("", "v1", "configmaps")
    with pytest.raises(ValueError, match=r"the core group has no name, so write configmaps\.v1\.$"):
        parse_resource("configmaps.v1.core")


def test_a_resource_has_one_name_only() -> None:
    with pytest.raises(ValueError, match=r"'csinodes.v1.storage.k8s.io' is called 'storage.k8s.io/CSINode' here"):
        parse_resource("csinodes.v1.storage.k8s.io")


@pytest.mark.parametrize("name", ["Pod", "Node", "pods.v1.", "nodes.v1."])
def test_pods_and_nodes_are_not_looked_up_by_name(name: str) -> None:
    with pytest.raises(ValueError, match="always watched"):
        parse_resource(name)


def test_every_event_resource_is_known() -> None:
    names = {value for key, value in vars(events).items() if key.isupper() and isinstance(value, str)}

    assert names - {"Pod", "AssignedPod", "UnscheduledPod", "TargetPod", "Node", "*"} <= KNOWN.keys()


def test_logs_and_metrics_have_one_name_for_each_resource() -> None:
    names = [resource.name for resource in KNOWN.values()]

    assert (PODS.name, NODES.name) == ("pods", "nodes")
    assert parse_resource("foos.v1.example.com").name == "foos.v1.example.com"
    assert len(set(names)) == len(names)


def test_all_that_plugins_register_for_or_read_is_watched_once() -> None:
    plugins = [
        registering("foos.v1.example.com", "Pod", "Node", "AssignedPod", reads=("Service",)),
        registering("foos.v1.example.com", "Namespace", "UnscheduledPod"),
    ]

    assert list(resources_to_watch(plugins)) == ["Namespace", "Service", "foos.v1.example.com"]


def test_of_a_resource_the_parts_are_kept_that_any_plugin_reads_and_everything_if_one_does_not_say() -> None:
    spec, status, everything = (registering("foos.v1.example.com", reads=("Service",)) for _ in range(3))
    type(spec).parts = {"foos.v1.example.com": ("spec",), "Service": ("spec.selector",)}
    type(status).parts = {"foos.v1.example.com": ("status",), "Service": ("spec.selector", "spec.type")}

    assert parts_read([spec, status]) == {
        "foos.v1.example.com": {"spec", "status"},
        "Service": {"spec.selector", "spec.type"},
    }
    assert parts_read([spec, status, everything]) == {}


def test_of_what_tenants_write_the_plugins_of_the_tree_keep_little() -> None:
    plugins = [started(kind(), a_handle(a_cluster())) for kind in IN_TREE.values()]

    whole = {name for name in resources_to_watch(plugins) if struct_of(name) is fw.Unstructured} - parts_read(
        plugins
    ).keys()

    assert whole == set()


def test_a_registration_for_all_events_names_nothing() -> None:
    assert resources_to_watch([plugin(fw.FilterPlugin, "Any"), registering(ALL_EVENTS.resource)]) == {}


def test_the_plugins_of_the_tree_name_resources_that_there_are() -> None:
    for kind in IN_TREE.values():
        assert list(resource_problems(started(kind(), a_handle(a_cluster())))) == []


def test_every_wrong_resource_of_a_plugin_is_told() -> None:
    made = registering("foos", reads=("Node", "bars"))
    type(made).writes = (fw.Write("nonsense"),)

    problems = [problem.partition(" is ")[0] for problem in resource_problems(made)]

    assert sorted(problems) == ["'Node'", "'bars'", "'foos'", "'nonsense'"]


def test_a_plugin_that_cannot_say_what_it_registers_for_is_a_problem() -> None:
    def broken() -> Any:
        raise RuntimeError("boom")

    made = plugin(fw.FilterPlugin, "Broken", events_to_register=broken)

    (problem,) = resource_problems(made)
    assert problem.startswith(f"events_to_register: RuntimeError: boom, in {__file__}:")


def test_what_plugins_write_is_known_by_resource_and_part() -> None:
    made = registering()
    type(made).writes = (fw.Write(fw.PERSISTENT_VOLUME), fw.Write(fw.POD, ("patch",), "status"))

    assert writes_of([made, made]) == {
        (KNOWN[fw.PERSISTENT_VOLUME], "", ("get", "patch")),
        (PODS, "status", ("patch",)),
    }
    assert list(resource_problems(made)) == []
