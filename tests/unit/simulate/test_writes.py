"""What plugins write in a simulation: claims get their volumes, and nothing leaves the program."""

from typing import Any

import pytest

import plugins
from scheduler.api.objects import AnnotatedMeta
from scheduler.api.storage.volumes import PersistentVolume
from scheduler.framework.errors import ApiError
from scheduler.simulate.engine import simulate
from scheduler.simulate.other_objects import OtherObject, OtherObjects
from scheduler.state.objects import ObjectStore
from scheduler.state.simulated_api import SimulatedApi, merged
from scheduler.testing import a_node, pod_from_dict
from tests.fakes.config import config_with
from tests.unit.simulate.what_if.world import a_claim_spec, a_class, a_volume, an_object

CONFIG = config_with(plugins.IN_TREE, name="default-scheduler")


def placed(claims: list[str], *others: dict[str, Any]) -> list[str | None]:
    """Where pods go, each with the claim of that name."""
    pods = []
    for i, claim in enumerate(claims):
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
        metadata = {"name": f"p{i}", "namespace": "default", "uid": f"p{i}"}
        pods.append(
            pod_from_dict({"metadata": metadata, "spec": {"schedulerName": "default-scheduler", "volumes": [volume]}})
        )
    nodes = [a_node(name, labels={"host": name}) for name in ("n1", "n2")]
    every = [
        *others,
        *(an_object("PersistentVolumeClaim", "v1", name, spec=a_claim_spec()) for name in dict.fromkeys(claims)),
    ]
    objects = OtherObjects(OtherObject("a file", each["kind"], each) for each in every)
    return [pod["node"] for pod in simulate(nodes, pods, CONFIG, plugins.IN_TREE, objects)["pods"]]


def test_two_claims_get_the_two_volumes_there_are_and_a_third_none() -> None:
    volumes = (a_volume(name, host, key="host") for name, host in (("v1", "n1"), ("v2", "n2")))

    nodes = placed(
        ["a", "b", "c"], a_class(mode="WaitForFirstConsumer", provisioner="kubernetes.io/no-provisioner"), *volumes
    )

    assert sorted(nodes[:2], key=str) == ["n1", "n2"]
    assert nodes[2] is None


def test_a_volume_is_made_for_a_claim_without_one() -> None:
    nodes = placed(["a", "a"], a_class(mode="WaitForFirstConsumer"))

    assert None not in nodes


@pytest.mark.parametrize(("name", "version", "status"), [("gone", "", 404), ("v1", "1", 409)])
async def test_a_write_to_what_is_not_as_it_was_is_refused(name: str, version: str, status: int) -> None:
    api = SimulatedApi()
    store = ObjectStore()
    store.watch(["PersistentVolume"])
    store.set("PersistentVolume", PersistentVolume(metadata=AnnotatedMeta(name="v1", uid="v1", resource_version="7")))
    api.objects = store
    with pytest.raises(ApiError) as raised:
        await api.patch("PersistentVolume", name, "", {"metadata": {"resourceVersion": version}})

    assert raised.value.status == status


def test_a_merge_patch_takes_away_what_is_null() -> None:
    assert merged({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": None, "e": 4}}) == {"a": 1, "b": {"d": 3, "e": 4}}
