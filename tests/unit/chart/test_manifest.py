"""The plain manifest: how it comes out of what helm writes, and what is in it.

That it is up to date is tested where there is a helm: tests/cluster/test_chart.py.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from plugins import IN_TREE
from scheduler.config.load import load_config
from scheduler.config.notes import notes
from tests.chart import load_documents, schedulers_own
from tests.chart.manifest import HEADER, MANIFEST, ORDER, plain

WRITTEN_BY_HELM = """\
---
# Source: loadmaster/templates/configmap.yaml
kind: ConfigMap
metadata:
  labels:
    app.kubernetes.io/managed-by: Helm
    app.kubernetes.io/name: loadmaster
    helm.sh/chart: loadmaster-0.2.0
---
# Source: loadmaster/templates/rbac.yaml
# Why.
kind: ClusterRole
---
# Source: loadmaster/templates/deployment.yaml
kind: Deployment
spec:
  template:
    metadata:
      annotations:
        checksum/config: "1234"
    spec: {}
"""


def of_kind(kind: str) -> Any:
    """The scheduler's own object of a kind."""
    (found,) = (each for each in schedulers_own(load_documents(MANIFEST.read_text())) if each["kind"] == kind)
    return found


def config_map(name: str) -> Any:
    documents = load_documents(MANIFEST.read_text())
    (found,) = (each for each in documents if (each["kind"], each["metadata"]["name"]) == ("ConfigMap", name))
    return found


def test_what_only_makes_sense_under_helm_is_left_out_and_comments_stay() -> None:
    assert plain(WRITTEN_BY_HELM) == (
        f"{HEADER}# Why.\nkind: ClusterRole\n---\n"
        "kind: ConfigMap\nmetadata:\n  labels:\n    app.kubernetes.io/name: loadmaster\n---\n"
        "kind: Deployment\nspec:\n  template:\n    metadata:\n    spec: {}\n"
    )


def test_a_kind_without_a_place_in_the_order_is_an_error() -> None:
    with pytest.raises(ValueError, match="Ingress"):
        plain("---\nkind: Ingress\n")


def test_the_manifest_has_each_kind_in_order() -> None:
    kinds = [each["kind"] for each in load_documents(MANIFEST.read_text())]

    assert tuple(dict.fromkeys(kinds)) == ORDER
    assert kinds == sorted(kinds, key=ORDER.index)


def test_nothing_in_the_manifest_is_about_helm() -> None:
    assert re.findall(r"(?i)helm\.sh|managed-by|# Source", MANIFEST.read_text()) == []


def test_deployment_and_service_choose_the_pods_of_the_manifest() -> None:
    deployment, service = of_kind("Deployment")["spec"], of_kind("Service")["spec"]
    labels = deployment["template"]["metadata"]["labels"]

    assert deployment["selector"]["matchLabels"].items() <= labels.items()
    assert service["selector"].items() <= labels.items()
    assert service["ports"][0]["targetPort"] in [
        port["name"] for port in deployment["template"]["spec"]["containers"][0]["ports"]
    ]


def test_the_bindings_join_the_roles_and_the_account_of_the_pods() -> None:
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    account = of_kind("ServiceAccount")["metadata"]
    own = schedulers_own(load_documents(MANIFEST.read_text()))
    bindings = [each for each in own if each["kind"].endswith("RoleBinding")]

    assert [(each["roleRef"]["kind"], each["roleRef"]["name"]) for each in bindings] == [
        ("ClusterRole", "system:auth-delegator"),
        ("ClusterRole", of_kind("ClusterRole")["metadata"]["name"]),
        ("Role", "extension-apiserver-authentication-reader"),
        ("Role", of_kind("Role")["metadata"]["name"]),
    ]
    for each in bindings:
        assert each["subjects"] == [
            {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
        ]
    assert pod["serviceAccountName"] == account["name"]


def test_the_shipped_configuration_is_valid_and_has_no_setting_without_effect(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(config_map("loadmaster")["data"]["config.yaml"])

    config = load_config(str(path), IN_TREE)

    assert [profile.scheduler_name for profile in config.profiles] == ["loadmaster"]
    assert notes(config) == []


def test_the_container_reads_the_configuration_and_the_plugins_of_the_config_maps() -> None:
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    config, plugins = container["volumeMounts"]
    mounted = {volume["name"]: config_map(volume["configMap"]["name"]) for volume in pod["volumes"]}
    (file,) = mounted[config["name"]]["data"]

    assert f"--config={config['mountPath']}/{file}" in container["args"]
    assert f"--plugin-dir={plugins['mountPath']}" in container["args"]
    assert "data" not in mounted[plugins["name"]]


def test_what_is_wrong_at_the_start_is_seen_in_kubectl_describe() -> None:
    (container,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]

    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_the_image_in_the_manifest_is_the_one_that_the_dockerfile_builds() -> None:
    dockerfile = (MANIFEST.parents[1] / "Dockerfile").read_text()
    (container,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]

    assert f"docker build -t {container['image']} ." in dockerfile
