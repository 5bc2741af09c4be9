"""A snapshot keeps what is decoded anywhere else, and nothing that is a secret."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from scheduler.api import devices
from scheduler.api.objects import Wire
from scheduler.api.storage import volumes
from scheduler.framework.nodes.resources import STRUCTS
from scheduler.simulate.apiserver.creation import USED
from scheduler.simulate.apiserver.defaults import ServerAnnotations, ServerPod, WrittenNode
from scheduler.simulate.files.unknown_fields import known_fields
from scheduler.simulate.what_if.templates import CRON_JOB
from scheduler.snapshots.kept_fields import ANNOTATIONS, FIELDS, KINDS
from scheduler.snapshots.reduction import fields_of
from tests.reference.plugin_page import struct_in

READER = Path(__file__).parents[3] / "docs" / "examples" / "snapshot-reader.yaml"

NOT_KEPT = {
    "status.conditions.message": "a text that decides nothing",
    "status.devices.conditions.message": "likewise",
    "status.devices.conditions.reason": "likewise",
    "spec.devices.config": "a driver's parameters, which no decision reads",
    "spec.config": "likewise",
    "status.allocation.devices.config": "likewise",
    "spec.volumes.ephemeral.volumeClaimTemplate": "decoded whole; what is kept is what is kept of claims",
}

SECRETS = {
    "args", "command", "configMap", "data", "env", "envFrom", "hostAliases", "imagePullSecrets", "lifecycle",
    "livenessProbe", "managedFields", "mountOptions", "nodePublishSecretRef", "opaque", "parameters", "projected",
    "providerID", "secret", "secretRef", "securityContext", "serviceAccountName", "stringData", "volumeAttributes",
}  # fmt: skip


def lacking(struct: type[Any], kind: str, path: str = "") -> Iterator[str]:
    """The paths that are decoded and not kept."""
    kept = fields_of(kind)
    for field in msgspec.structs.fields(struct):
        name = field.encode_name
        at = f"{path}.{name}".lstrip(".")
        if name.startswith("(") or at in NOT_KEPT:
            continue
        if name not in kept:
            yield at
            continue
        inner = struct_in(field.type)
        if inner is not None and issubclass(inner, Wire) and kept[name].kind:
            yield from lacking(inner, kept[name].kind, at)


@pytest.mark.parametrize(
    ("kind", "struct"),
    [
        ("Pod", ServerPod),
        ("Node", WrittenNode),
        *((struct.__name__, struct) for struct in STRUCTS.values()),
    ],
)
def test_all_that_is_decoded_is_kept(kind: str, struct: type[Any]) -> None:
    elsewhere = {"Node": {"metadata.annotations"}, "PodGroup": {"status"}, "ClusterQueue": {"status"}}

    assert set(lacking(struct, kind)) - elsewhere.get(kind, set()) == set()


def test_the_annotations_that_are_read_are_kept() -> None:
    read = {value for name, value in vars(volumes).items() if name.isupper() and isinstance(value, str)}

    assert {each for each in read if "kubernetes.io/" in each} <= ANNOTATIONS.keys()
    assert devices.EXTENDED_CLAIM_ANNOTATION in ANNOTATIONS


def test_no_field_is_kept_in_which_secrets_are() -> None:
    for kind in FIELDS:
        assert not fields_of(kind).keys() & SECRETS, kind


def test_the_kinds_and_annotations_that_new_pods_evictions_and_groups_read_are_kept() -> None:
    labels = {kind.name if kind.api_version == "v1" else f"{kind.name} ({kind.api_version})" for kind in KINDS}

    assert labels >= {*USED, CRON_JOB}
    assert {field.encode_name for field in msgspec.structs.fields(ServerAnnotations)} <= ANNOTATIONS.keys()


def test_the_kinds_have_no_fields_that_they_do_not_have_in_kubernetes() -> None:
    for kind in KINDS:
        if kind.name in known_fields():
            assert fields_of(kind.name).keys() <= known_fields()[kind.name][1].keys(), kind.name


def test_nothing_is_listed_that_nobody_has() -> None:
    reached: set[str] = set()
    to_do = [kind.name for kind in KINDS]
    while to_do:
        kind = to_do.pop()
        if kind not in reached:
            reached.add(kind)
            to_do += [field.kind for field in fields_of(kind).values() if field.kind]

    assert reached == FIELDS.keys()


def test_what_decides_whether_a_controller_makes_pods_is_kept() -> None:
    assert "paused" in fields_of("DeploymentSpec")
    assert fields_of("JobSpec").keys() >= {"parallelism", "completions", "completionMode", "suspend", "managedBy"}
    assert "deletionTimestamp" in fields_of("Meta")


def test_the_example_of_a_role_has_the_kinds_and_no_others() -> None:
    role, _ = yaml.safe_load_all(READER.read_text())
    allowed = {(group, plural) for rule in role["rules"] for group in rule["apiGroups"] for plural in rule["resources"]}

    assert allowed == {(kind.resource.group, kind.resource.plural) for kind in KINDS}
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list"}
