"""Which volumes of a pod matter to scheduling, and when two pods use the same."""

from typing import Any

import pytest

from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.api.storage.pod_storage import NO_STORAGE, claim_key, conflicting_keys, ephemeral_claim_key
from scheduler.api.storage.volumes import claim_name_of, made_for_another
from tests.controlplane.objects import a_pod
from tests.unit.plugins.claims import a_claim

TOKEN: dict[str, Any] = {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}


def with_volumes(*volumes: dict[str, Any]) -> Pod:
    whole = a_pod("web", "default", volumes=list(volumes))
    whole["metadata"]["uid"] = "1"
    return pod_from_dict(whole)


@pytest.mark.parametrize("volumes", [(), (TOKEN,), ({"name": "tmp", "emptyDir": {}}, TOKEN)])
def test_what_is_made_on_the_node_is_no_storage(volumes: tuple[dict[str, Any], ...]) -> None:
    assert with_volumes(*volumes).storage is NO_STORAGE


def test_claims_are_known_by_name_and_by_whether_they_are_made_for_the_pod() -> None:
    pod = with_volumes(
        TOKEN,
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {}}},
    )

    assert pod.storage.keys == (claim_key("default", "data"), ephemeral_claim_key("default", "web-own"))
    assert [claim_name_of(pod, volume) for volume in pod.storage.volumes] == ["data", "data", "web-own"]


def test_readers_are_in_the_way_of_writers_only() -> None:
    reader, writer = (
        with_volumes({"name": "a", "gcePersistentDisk": {"pdName": "d", "readOnly": read_only}}).storage
        for read_only in (True, False)
    )

    assert set(conflicting_keys(reader.volumes[0])) == set(writer.keys)
    assert set(conflicting_keys(writer.volumes[0])) == {*writer.keys, *reader.keys}


def test_storage_is_worked_out_once_and_goes_on_with_the_binding() -> None:
    pod = with_volumes({"name": "a", "cinder": {"volumeID": "c"}})

    assert pod.storage is pod.bound_to("n1").storage
    assert (len(pod.storage.volumes), pod.storage.keys) == (1, ())  # of cinder no disk is ever in the way of another


@pytest.mark.parametrize(("owner", "own"), [("1", True), ("2", False), (None, False)])
def test_a_claim_is_made_for_the_pod_that_controls_it(owner: str | None, own: bool) -> None:
    claim = a_claim("web-own") if owner is None else a_claim("web-own", owner=owner)

    problem = made_for_another(claim, with_volumes())

    expected = "PVC default/web-own was not created for pod default/web (pod is not owner)"
    assert problem == (None if own else expected)
