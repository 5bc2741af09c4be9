"""What plugins need of pods is decoded, and nothing else."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from scheduler.api.needs import need_problem, pod_type
from scheduler.api.pod import Pod
from scheduler.api.undecoded import NotDecoded
from scheduler.framework import Aspect
from scheduler.runtime.changes import pod_changes
from scheduler.testing import a_cluster, a_node, a_pod, pod_from_dict
from tests.reference import pod_fields

WEB: dict[str, Any] = {
    "metadata": {"name": "web", "uid": "u", "annotations": {"example.com/tier": "gold", "large": "x" * 1000}},
    "spec": {
        "serviceAccountName": "shop",
        "containers": [
            {
                "name": "main",
                "command": ["run"],
                "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            }
        ],
        "initContainers": [{"name": "first", "resources": {"limits": {"cpu": "3"}}}],
        "securityContext": {"runAsUser": 7, "runAsGroup": 8},
    },
    "status": {"podIPs": [{"ip": "10.0.0.1"}], "qosClass": "Burstable"},
}


def web(*needs: str, **changes: Any) -> Pod:
    return pod_from_dict({**WEB, **changes}, needs)


def first_container(pod: Pod) -> Any:
    assert pod.spec.containers is not None
    return pod.spec.containers[0]


def test_without_needs_a_pod_is_a_pod() -> None:
    assert pod_type(()) is Pod
    assert pod_type(("spec.nodeName", "spec.tolerations", "spec.containers.resources.limits")) is Pod


def test_equal_needs_make_one_struct() -> None:
    needs = ("metadata.annotations", "spec.hostname")

    assert pod_type(needs) is pod_type(reversed(needs))
    assert issubclass(pod_type(needs), Pod)


def test_what_is_needed_is_typed() -> None:
    of_containers = ("spec.containers.resources.claims", "spec.containers.env")
    pod = web("metadata.annotations", *of_containers, "status.podIPs", "spec.hostname")

    assert pod.metadata.annotations is not None
    assert pod.metadata.annotations["example.com/tier"] == "gold"
    assert first_container(pod).resources.claims[0].name == "gpu"
    assert first_container(pod).env[0].value_from.field_ref.field_path == "metadata.name"
    assert pod.status.pod_ips is not None
    assert pod.status.pod_ips[0].ip == "10.0.0.1"
    assert pod.spec.hostname is None
    assert pod.requests == {"cpu": 1000}


@pytest.mark.parametrize(
    ("needs", "read", "line"),
    [
        ((), lambda pod: pod.metadata.annotations, 'needs = ("metadata.annotations",)'),
        ((), lambda pod: pod.spec.service_account_name, 'needs = ("spec.serviceAccountName",)'),
        (
            ("spec.containers.resources.claims",),
            lambda pod: pod.spec.init_containers[0].resources.claims,
            'needs = ("spec.containers.resources.claims",), or needs = ("spec.resources.claims",), or ',
        ),
        (
            (),
            lambda pod: pod.spec.containers[0].command,
            'needs = ("spec.containers.command",), or needs = ("spec.initContainers.command",) to the plugin',
        ),
        (
            ("spec.securityContext.runAsUser",),
            lambda pod: pod.spec.security_context.run_as_group,
            'needs = ("spec.securityContext.runAsGroup",)',
        ),
        (
            ("metadata.annotations[example.com/tier]",),
            lambda pod: pod.metadata.annotations.get("large"),
            'needs = ("metadata.annotations[large]",)',
        ),
    ],
)
def test_what_nobody_needs_says_which_line_is_missing(needs: Iterable[str], read: Any, line: str) -> None:
    with pytest.raises(NotDecoded) as caught:
        read(web(*needs))

    assert line in str(caught.value)
    with pytest.raises(NotDecoded):
        getattr(web().metadata, "annotations", None)


def test_all_of_an_object_is_needed_with_its_path() -> None:
    pod = web("spec.containers")

    assert first_container(pod).command == ("run",)
    assert first_container(pod).env[0].name == "A"
    assert first_container(pod).lifecycle is None
    with pytest.raises(NotDecoded):
        _ = pod.spec.init_containers[0].command  # type: ignore[index]


def test_a_whole_object_takes_the_place_of_its_parts() -> None:
    pod = web("spec.containers.resources.claims", "spec.containers", "metadata.annotations[a]", "metadata.annotations")

    assert first_container(pod).command == ("run",)
    assert dict(pod.metadata.annotations) == dict(pod.annotations) != {}


def test_some_annotations_are_a_mapping_and_the_others_take_no_memory() -> None:
    pod = web("metadata.annotations[example.com/tier]", "metadata.annotations[none]")
    found: Any = pod.metadata.annotations

    assert dict(found.items()) == {"example.com/tier": "gold"}
    assert found["example.com/tier"] == found.get("example.com/tier") == "gold"
    assert "none" not in found
    assert found.get("none", "?") == "?"
    assert (len(found), list(found), list(found.values())) == (1, ["example.com/tier"], ["gold"])
    with pytest.raises(KeyError):
        found["none"]
    assert len(msgspec.json.encode(pod.metadata)) < 200


@pytest.mark.parametrize(
    ("need", "problem"),
    [
        ("spec.container", "pods have no field spec.container; did you mean 'containers'?"),
        ("annotations", "pods have no field annotations"),
        ("spec.host_name", "pods have no field spec.host_name; did you mean 'hostname'?"),
        (
            "metadata.annotations.tier",
            'metadata.annotations of pods has no fields; needs = ("metadata.annotations",) is all of it',
        ),
        ("", "pods have no field "),
        ("spec..hostname", "pods have no field spec."),
        (
            "spec.containers[0].command",
            "spec.containers[0].command: lists are written without [0], and only of metadata.annotations one entry can "
            "be taken, by its key",
        ),
    ],
)
def test_a_path_that_pods_do_not_have_is_a_problem(need: str, problem: str) -> None:
    assert need_problem(need) == problem


def test_a_change_of_what_is_needed_is_an_event() -> None:
    def changes(*needs: str, **changed: Any) -> list[str]:
        return [event.label for event in pod_changes(web(*needs), web(*needs, **changed))]

    other = {"metadata": {**WEB["metadata"], "annotations": {}, "resourceVersion": "2", "generation": 5}}

    assert changes(**other) == []
    assert changes("metadata.annotations", **other) == ["UnschedulablePodUpdate"]
    assert changes("spec.hostname", **other) == []
    assert changes("spec.hostname", status={}) == []
    assert changes("status.qosClass", status={}) == ["UnschedulablePodUpdate"]


def test_stored_answers_follow_what_is_needed_of_pods_on_nodes() -> None:
    old, new = (a_pod("web", annotations={"tier": tier}) for tier in ("gold", "lead"))
    nodes = a_cluster(a_node("n"), pods={"n": [old]})
    log = nodes.change_log(Aspect.PODS)
    before = log.position

    nodes.replace_pod("n", old, new)

    assert list(log.since(before) or ()) == [0]


def test_the_reference_of_fields_is_up_to_date() -> None:
    for path, text in pod_fields.texts().items():
        assert path.read_text(encoding="utf-8") == text, "run `make reference`"
