"""Other names: the same for the same, composed as the names were, and none of what people chose."""

import re
from typing import Any

import pytest

from scheduler.api.labels import label_key_problems, label_value_problems, subdomain_problems
from scheduler.api.pods.requests import is_extended_resource, is_scalar_resource
from scheduler.snapshots.aliases import MAX_LABEL, MAX_NAME, Aliases


@pytest.fixture
def aliases() -> Aliases:
    return Aliases(b"a key")


def test_the_same_name_is_the_same_in_one_snapshot_and_another_one_in_the_next() -> None:
    first, second = Aliases(), Aliases()

    assert first.name("web") == first.name("web") != second.name("web")
    assert first.name("web") != first.name("api")


def test_names_are_composed_as_they_were(aliases: Aliases) -> None:
    assert aliases.name("web-data") == f"{aliases.name('web')}-{aliases.name('data')}"
    assert aliases.name("gpu/small") == f"{aliases.name('gpu')}/{aliases.name('small')}"
    assert aliases.value("any", "eu-1a__eu-1b") == f"{aliases.name('eu-1a')}__{aliases.name('eu-1b')}"


def test_ordinals_of_pods_stay_and_addresses_in_names_do_not(aliases: Aliases) -> None:
    assert aliases.pod("db-12") == f"{aliases.name('db')}-12"
    assert aliases.value("statefulset.kubernetes.io/pod-name", "db-12") == aliases.pod("db-12")
    assert not re.search(r"\b(10|0|1|23)\b", aliases.name("ip-10-0-1-23"))


def test_a_claim_that_was_made_for_a_pod_is_found_by_its_pod(aliases: Aliases) -> None:
    owner = {"kind": "Pod", "name": "db-0", "uid": "1"}
    aliases.look_at({"metadata": {"name": "db-0-tmp", "namespace": "shop", "ownerReferences": [owner]}})
    alias = aliases.claim("db-0-tmp")

    assert alias == f"{aliases.pod('db-0')}-{aliases.name('tmp')}"
    aliases.look_at({"metadata": {"name": "other", "namespace": "shop"}})
    assert aliases.claim("db-0-tmp") == alias
    reference = aliases.of_kind("ClaimReference", {"namespace": "shop", "name": "db-0-tmp"})
    assert reference == {"namespace": aliases.namespace("shop"), "name": alias}


@pytest.mark.parametrize(("text", "stays"), [("12345", True), ("0", True), ("007", True), ("123456789012", False)])
def test_whole_numbers_in_labels_stay_as_gt_compares_them_but_for_those_of_accounts(
    aliases: Aliases, text: str, stays: bool
) -> None:
    assert (text in aliases.value("example.com/generation", text)) is stays


def test_no_alias_is_a_number(aliases: Aliases) -> None:
    assert not any(aliases.name(f"{number:x}").isdigit() for number in range(2000))


@pytest.mark.parametrize(
    "key",
    [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.ebs.csi.aws.com/zone",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/instance-type",
        "metadata.name",
    ],
)
def test_well_known_keys_stay(aliases: Aliases, key: str) -> None:
    assert aliases.key(key) == key


def test_keys_under_well_known_domains_that_people_choose_do_not_stay(aliases: Aliases) -> None:
    assert "secret" not in aliases.key("node-role.kubernetes.io/secret-team")
    assert "secret" not in aliases.key("node.kubernetes.io/secret-team")
    assert "secret" not in aliases.key("secret.node-restriction.kubernetes.io/a")


@pytest.mark.parametrize(
    "text", ["web", "a-b-c-d-e-f-g-h-i-j-k-l", "X_y.Z", "x" * 63, "a.b" * 20, "ünï", "a" * 253, "1-2-3-4-5-6-7-8-9"]
)
def test_aliases_are_fit_for_what_they_stand_for(aliases: Aliases, text: str) -> None:
    value, key = aliases.value("team", text), aliases.key(f"example.com/{text}")

    assert not label_value_problems(value)
    assert not label_key_problems(key)
    assert len(value) <= MAX_LABEL
    assert len(aliases.name(text)) <= MAX_NAME
    assert not subdomain_problems(aliases.name(text.lower().replace("_", "-")))


@pytest.mark.parametrize(
    ("resource", "kept"),
    [
        ("cpu", True),
        ("hugepages-2Mi", True),
        ("hugepages-acme", False),
        ("acme", False),
        ("example.kubernetes.io/foo", False),
        ("corp.example/gpu", False),
        ("corp.example/" + "x" * 63, False),
        ("x." * 110 + "example/gpu", False),
        ("requests.corp.example/gpu", False),
        ("attachable-volumes-csi-corp.example", False),
    ],
)
def test_only_resources_of_kubernetes_stay_and_others_count_as_they_did(
    aliases: Aliases, resource: str, kept: bool
) -> None:
    alias = aliases.resource(resource)

    assert (alias == resource) is kept
    assert is_extended_resource(alias) == is_extended_resource(resource)
    assert is_scalar_resource(alias) == is_scalar_resource(resource)


def test_a_resource_that_stands_for_a_class_of_devices_names_its_alias(aliases: Aliases) -> None:
    assert aliases.resource("deviceclass.resource.kubernetes.io/gpu") == (
        f"deviceclass.resource.kubernetes.io/{aliases.name('gpu')}"
    )


def test_an_image_is_the_same_with_its_tag_and_without_the_usual_one(aliases: Aliases) -> None:
    assert aliases.of_class("image", "corp.example/web") == aliases.of_class("nodeImage", "corp.example/web:latest")
    assert aliases.of_class("image", "corp.example/web:2") != aliases.of_class("nodeImage", "corp.example/web:1")
    assert aliases.of_class("image", "a@sha256:b").endswith(":t")


@pytest.mark.parametrize(
    ("class_", "value"),
    [
        ("class", "system-node-critical"),
        ("namespace", "kube-system"),
        ("driver", "ebs.csi.aws.com"),
        ("driver", "kubernetes.io/no-provisioner"),
        ("address", "0.0.0.0"),
        ("word", "Ready"),
        ("scheduler", "default-scheduler"),
        ("kind", "DaemonSet"),
        ("", "WaitForFirstConsumer"),
        ("", "1500m"),
        ("", "2026-01-02T03:04:05.123456Z"),
        ("", "1m30s"),
        ("", "4b1c7f7e-8f1e-4c53-9a52-5f1d6ec2d3aa"),
        ("zone", "node-1"),
        ("name", 7),
    ],
)
def test_what_decides_by_itself_stays(aliases: Aliases, class_: str, value: Any) -> None:
    assert aliases.of_class(class_, value) == value


def test_conditions_that_are_not_of_kubernetes_do_not_stay(aliases: Aliases) -> None:
    assert aliases.of_class("word", "AcmeDiskBroken") == aliases.name("AcmeDiskBroken")


def test_a_volume_keeps_the_form_that_is_read(aliases: Aliases) -> None:
    zone, number = aliases.name("eu-1a"), aliases.name("0a1b")

    assert aliases.of_class("volume", "aws://eu-1a/vol-0a1b") == f"aws://{zone}/vol-{number}"


@pytest.mark.parametrize(
    ("class_", "value"), [("labels", "a"), ("name", {"a": "b"}), ("resources", "cpu"), ("byPod", "web")]
)
def test_what_is_of_another_type_than_it_should_be_is_left_out(aliases: Aliases, class_: str, value: Any) -> None:
    assert aliases.of_class(class_, value) is None


def test_an_owner_keeps_only_what_kubernetes_has_named(aliases: Aliases) -> None:
    assert aliases.of_class("apiVersion", "apps/v1") == "apps/v1"
    assert aliases.of_class("apiVersion", "corp.example/v1beta1") == f"{aliases.name('corp.example')}/v1beta1"
    assert aliases.of_class("kind", "Shop") == aliases.name("Shop")
    assert aliases.of_kind("Owner", {"apiVersion": "v1", "kind": "Pod", "name": "db-0"})["name"] == aliases.pod("db-0")


def test_a_consumer_of_devices_keeps_its_kind_if_it_is_a_pod(aliases: Aliases) -> None:
    pod = {"resource": "pods", "name": "db-0"}
    other = {"apiGroup": "corp.example", "resource": "shops", "name": "eu"}

    assert aliases.of_kind("Consumer", {**pod}) == {**pod, "name": aliases.pod("db-0")}
    assert aliases.of_kind("Consumer", {**other}) == {
        "apiGroup": aliases.name("corp.example"),
        "resource": aliases.name("shops"),
        "name": aliases.name("eu"),
    }


def test_versions_of_devices_stay_but_for_the_words_in_them(aliases: Aliases) -> None:
    assert aliases.device("1.20.3-rc.1") == "1.20.3-rc.1"
    assert aliases.device("1.20.3-acme.2+b") == f"1.20.3-{aliases.device('acme')}.2+{aliases.device('b')}"
