"""The Helm chart, with the real helm and API server: what it renders, what it refuses, and the life of a release."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins import IN_TREE
from scheduler.config.load import config_from_dict
from scheduler.config.notes import notes
from scheduler.config.reloadable import RELOADABLE, needs_a_restart
from scheduler.config.types import Config
from tests.chart import CHART, Helm, HelmError, load_documents, schedulers_own
from tests.chart.helm import Values
from tests.chart.manifest import MANIFEST, rendered
from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import node_of
from tests.controlplane import Client, Cluster, Component, KubectlError, wait_until

Documents = list[dict[str, Any]]

DIGEST = "sha256:" + "0123456789abcdef" * 4
CHECKSUM = "checksum/config"
NAME, INSTANCE = "app.kubernetes.io/name", "app.kubernetes.io/instance"


@pytest.fixture
def restricted(cluster: Cluster, namespace: str) -> str:
    """A namespace that refuses pods outside Pod Security `restricted`, and warns of what would make such pods."""
    modes = [f"pod-security.kubernetes.io/{mode}=restricted" for mode in ("enforce", "warn")]
    cluster.kubectl("label", "namespace", namespace, *modes)
    return namespace


def apply_dry(cluster: Cluster, manifest: str) -> str:
    """Have the API server judge a manifest. Raises KubectlError for an error, an unknown field or a warning."""
    judge = ("--dry-run=server", "--validate=strict", "--warnings-as-errors")
    return cluster.kubectl("apply", "-f", "-", *judge, stdin=manifest)


def of_kind(documents: Documents, kind: str) -> Any:
    (found,) = (each for each in schedulers_own(documents) if each["kind"] == kind)
    return found


def is_shared(document: dict[str, Any]) -> bool:
    """Whether it is outside of the release's namespace, where it may meet another release's."""
    kind, namespace = str(document["kind"]), document["metadata"].get("namespace")
    return kind.startswith("Cluster") or namespace == "kube-system"


def template_of(documents: Documents) -> Any:
    """The pod template of the Deployment."""
    return of_kind(documents, "Deployment")["spec"]["template"]


def container_of(documents: Documents) -> Any:
    """The scheduler's."""
    return template_of(documents)["spec"]["containers"][0]


def configuration_of(documents: Documents) -> str:
    """The text of the scheduler's configuration."""
    (text,) = (each["data"]["config.yaml"] for each in documents if "config.yaml" in each.get("data", {}))
    return str(text)


def template(helm: Helm, values: Values) -> Any:
    """The pod template with these values: another one means other pods."""
    return template_of(load_documents(helm.render(values)))


EVERYTHING: Values = {
    "commonLabels": {"team": "platform", "helm.sh/chart": "mine"},
    "podLabels": {"team": "scheduling", "app.kubernetes.io/version": "mine"},
    "podAnnotations": {"example.com/scrape": "yes"},
    "service": {"labels": {"team": "monitoring"}, "annotations": {"prometheus.io/scrape": "true"}},
    "serviceAccount": {"annotations": {"example.com/identity": "scheduler"}},
    "rbac": {"extraRules": [{"apiGroups": ["example.com"], "resources": ["budgets"], "verbs": ["list", "watch"]}]},
    "extraArgs": ["-v=2", "--bind-address=::"],
    "env": [
        {"name": "HTTPS_PROXY", "value": "http://proxy:3128"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ],
    "extraVolumes": [{"name": "plugins", "configMap": {"name": "plugins", "optional": True}}],
    "extraVolumeMounts": [{"name": "plugins", "mountPath": "/opt/plugins", "readOnly": True}],
    "terminationGracePeriodSeconds": 40,
    "port": 8080,
    "initContainers": [{"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}],
    "extraContainers": [{"name": "sidecar", "image": "sidecar:1"}],
}
PLACED: Values = {
    "tolerations": [{"operator": "Exists"}],
    "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "Exists"}]}]
            }
        }
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {NAME: "loadmaster"}},
        }
    ],
}
AS_OTHER_CHARTS: Values = {
    "image": {"registry": "mirror.example.com:5000/a", "repository": "b/loadmaster"},
    "revisionHistoryLimit": 2,
    "progressDeadlineSeconds": 1200,
    "deploymentAnnotations": {"example.com/reload": "yes"},
    "podDisruptionBudget": {"minAvailable": "50%", "unhealthyPodEvictionPolicy": "AlwaysAllow"},
    "livenessProbe": {"initialDelaySeconds": 3, "periodSeconds": 20, "terminationGracePeriodSeconds": 5},
    "readinessProbe": {"timeoutSeconds": 1, "successThreshold": 2},
    "hostNetwork": True,
    "port": 20259,
    "dnsConfig": {"nameservers": ["10.0.0.10"]},
    "securityContext": {"runAsNonRoot": True, "readOnlyRootFilesystem": False},
    "serviceAccount": {"labels": {"example.com/identity": "use"}},
    "envFrom": [{"secretRef": {"name": "proxy", "optional": True}}, {"prefix": "A_", "configMapRef": {"name": "a"}}],
    "extraObjects": [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "{{ .Release.Name }}-ours", "namespace": "{{ .Release.Namespace }}"},
            "data": {"port": "{{ .Values.port }}"},
        }
    ],
}
"""Values that the charts of cert-manager, Karpenter, Kueue and Kyverno have."""
ACCEPTED: dict[str, Values] = {
    "the defaults": {},
    "what other charts have": AS_OTHER_CHARTS,
    "no budget": {"podDisruptionBudget": {"enabled": False}},
    "a digest and a registry that needs credentials": {
        "image": {"repository": "registry.example.com:5000/a/loadmaster", "digest": DIGEST, "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry-key"}],
    },
    "everything extra": EVERYTHING,
    "a place of its own": PLACED,
    "plugins of one's own": {
        "plugins": {"files": {"gpu_guard.py": "from scheduler import framework as fw\n", "_a.py": ""}}
    },
    "one replica that elects nobody": {"replicas": 1, "config": {"leaderElection": {"leaderElect": False}}},
    "a Lease of another name in another place": {
        "config": {"leaderElection": {"resourceName": "theirs", "resourceNamespace": "default"}}
    },
    "every kind of setting": {
        "config": {
            "parallelism": 8,
            "percentageOfNodesToScore": 50,
            "clientConnection": {"qps": 100.5, "burst": 200},
            "leaderElection": {"leaseDuration": "1m30s", "renewDeadline": "1m", "retryPeriod": "2s"},
            "extenders": [{"urlPrefix": "https://x", "filterVerb": "filter", "httpTimeout": "5s", "enableHTTPS": True}],
            "profiles": [
                {
                    "schedulerName": "packed",
                    "plugins": {"multiPoint": {"enabled": [{"name": "LoadAware", "weight": 2}]}},
                    "pluginConfig": [
                        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
                        {"name": "LoadAware", "args": {"refreshInterval": "1m", "defaultRequests": {"cpu": "1"}}},
                        {"name": "OfOurOwn", "args": {"anything": [1, 2]}},
                    ],
                }
            ],
            "loadmaster": {"seed": 7, "pluginLimits": [{"name": "*", "action": "SwitchOff", "pause": "5m"}]},
        }
    },
    "a large cluster": {"clusterSize": "xlarge"},
    "resources of one's own": {"resources": {"requests": {"cpu": 2}}},
    "several profiles": {"config": {"profiles": [{"schedulerName": "one"}, {"schedulerName": "two"}]}},
    "an account that exists": {"rbac": {"create": False}, "serviceAccount": {"create": False, "name": "default"}},
    "other names": {"nameOverride": "placer", "fullnameOverride": "team-a-placer"},
    "a certificate and a network policy": {
        "tls": {"secretName": "loadmaster-tls"},
        "networkPolicy": {
            "enabled": True,
            "from": [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}, "podSelector": {}}],
            "apiServer": {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [6443]},
            "extraEgress": [{"ports": [{"port": 8443, "protocol": "TCP"}]}],
        },
    },
    "a network policy that lets nobody in": {"networkPolicy": {"enabled": True}},
    "paused, and replaced while it runs": {"replicas": 0, "strategy": {"type": "RollingUpdate"}},
    "users assigned by the cluster": {"podSecurityContext": {"runAsUser": None, "runAsGroup": None}},
    "as little as can be": {
        "clusterSize": "",
        "strategy": None,
        "priorityClassName": "",
        "terminationGracePeriodSeconds": None,
        "nodeSelector": None,
        "tolerations": [],
        "podSecurityContext": None,
    },
}


def test_flags_and_role_name_the_same_lease(helm: Helm) -> None:
    def lease(values: Values) -> tuple[list[str], str, list[str]]:
        documents = load_documents(helm.render(values, release="lm"))
        role = of_kind(documents, "Role")
        flags = [each for each in container_of(documents)["args"] if "lead" in each]
        return flags, role["metadata"]["namespace"], role["rules"][1]["resourceNames"]

    theirs = {"config": {"leaderElection": {"resourceName": "theirs", "resourceNamespace": "there"}}}

    flag = "--leader-elect-resource-"
    flags, namespace, names = lease({})
    assert (flags, names) == ([f"{flag}namespace={namespace}", f"{flag}name=lm"], ["lm"])
    assert lease(theirs) == ([f"{flag}namespace=there", f"{flag}name=theirs"], "there", ["theirs"])


def test_replicas_are_spread_and_not_all_drained_at_once(helm: Helm) -> None:
    documents = load_documents(helm.render({}))
    budget, pod = of_kind(documents, "PodDisruptionBudget"), template_of(documents)
    (spread,) = pod["spec"]["topologySpreadConstraints"]

    assert of_kind(documents, "Deployment")["spec"]["replicas"] == 2
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    for selector in (spread["labelSelector"], budget["spec"]["selector"]):
        assert selector["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert "PodDisruptionBudget" not in helm.render({"replicas": 1})


def test_helm_lint_finds_nothing(helm: Helm) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in helm.run("lint", "--strict", str(CHART))


def test_what_is_packaged_renders_as_the_directory_does(helm: Helm, tmp_path: Path) -> None:
    packaged = helm.run("package", str(CHART), f"--destination={tmp_path}").partition(": ")[2].strip()

    assert helm.render({"page": {"enabled": True}}, chart=Path(packaged)) == helm.render({"page": {"enabled": True}})


def test_the_plain_manifest_is_what_the_chart_renders(helm: Helm) -> None:
    assert MANIFEST.read_text() == rendered(helm), "`make manifest` renders it"


def test_kustomize_builds_the_plain_manifest_and_an_overlay_of_it(cluster: Cluster, tmp_path: Path) -> None:
    shutil.copytree(MANIFEST.parent, tmp_path / "deploy")
    overlay = {"resources": ["../deploy"], "images": [{"name": "loadmaster", "newName": "x/y", "newTag": "1"}]}
    (tmp_path / "overlay").mkdir()
    (tmp_path / "overlay" / "kustomization.yaml").write_text(yaml.safe_dump(overlay))

    base = load_documents(cluster.kubectl("kustomize", str(MANIFEST.parent)))
    other = load_documents(cluster.kubectl("kustomize", str(tmp_path / "overlay")))

    def by_name(documents: Documents) -> Documents:
        return sorted(documents, key=lambda each: (each["kind"], each["metadata"]["name"]))

    assert by_name(base) == by_name(load_documents(MANIFEST.read_text()))
    assert container_of(other)["image"] == "x/y:1"


@pytest.mark.parametrize(
    ("values", "resources"),
    [
        pytest.param({}, {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}}, id="medium"),
        pytest.param(
            {"clusterSize": "small"},
            {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
            id="small",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": 2}}},
            {"requests": {"cpu": 2, "memory": "512Mi"}, "limits": {"memory": "2Gi"}},
            id="one of one's own",
        ),
        pytest.param(
            {"clusterSize": "", "resources": {"requests": {"cpu": 2}}}, {"requests": {"cpu": 2}}, id="one's own only"
        ),
        pytest.param({"clusterSize": ""}, None, id="none"),
    ],
)
def test_the_size_of_the_cluster_sets_the_resources(helm: Helm, values: Values, resources: Any) -> None:
    assert container_of(load_documents(helm.render(values))).get("resources") == resources


def test_the_api_server_takes_the_plain_manifest_without_a_warning(cluster: Cluster) -> None:
    apply_dry(cluster, MANIFEST.read_text())


@pytest.mark.parametrize("values", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_rendered_has_no_key_twice_and_no_warning(
    helm: Helm, cluster: Cluster, namespace: str, values: Values
) -> None:
    manifest = helm.render(values, namespace=namespace)  # raises if helm warns

    documents = load_documents(manifest)  # raises for a key that comes twice
    said = apply_dry(cluster, manifest)

    assert len(said.splitlines()) == len(documents)


@pytest.mark.parametrize("values", ACCEPTED.values(), ids=ACCEPTED)
def test_selectors_choose_the_scheduler_and_not_its_test_pods(helm: Helm, values: Values) -> None:
    documents = load_documents(helm.render(values))
    selectors = (
        of_kind(documents, "Deployment")["spec"]["selector"]["matchLabels"],
        of_kind(documents, "Service")["spec"]["selector"],
    )
    tests = [each["metadata"]["labels"] for each in documents if each["kind"] == "Pod"]

    for selector in selectors:
        assert selector.items() <= template_of(documents)["metadata"]["labels"].items()
        assert not any(selector.items() <= labels.items() for labels in tests)


def test_the_defaults_are_within_pod_security_restricted(helm: Helm, cluster: Cluster, restricted: str) -> None:
    manifest = helm.render(namespace=restricted)

    said = apply_dry(cluster, manifest)

    assert "deployment.apps/loadmaster created" in said
    assert "pod/loadmaster-test-0 created" in said


def test_what_is_outside_pod_security_restricted_would_have_been_told(
    helm: Helm, cluster: Cluster, restricted: str
) -> None:
    with pytest.raises(KubectlError, match="runAsNonRoot != true"):
        apply_dry(cluster, helm.render({"podSecurityContext": None}, "--skip-tests", namespace=restricted))


def test_the_default_configuration_has_no_setting_without_effect(helm: Helm) -> None:
    text = configuration_of(load_documents(helm.render()))

    assert notes(config_from_dict(yaml.safe_load(text), IN_TREE)) == []


@pytest.mark.parametrize(
    ("image", "name"),
    [
        pytest.param({}, "x/y:0.2.0", id="by default the appVersion"),
        pytest.param({"tag": "1.10"}, "x/y:1.10", id="a tag"),
        pytest.param({"digest": DIGEST}, f"x/y@{DIGEST}", id="a digest"),
        pytest.param({"tag": "1", "digest": DIGEST}, f"x/y:1@{DIGEST}", id="both"),
    ],
)
def test_the_digest_of_an_image_wins(helm: Helm, image: Values, name: str) -> None:
    documents = load_documents(helm.render({"image": {"repository": "x/y", **image}}))

    assert container_of(documents)["image"] == name
    assert of_kind(documents, "Pod")["spec"]["containers"][0]["image"] == name


def test_extra_values_are_rendered_alongside_the_charts_own(helm: Helm) -> None:
    documents = load_documents(helm.render(EVERYTHING))
    template, container = template_of(documents), container_of(documents)
    metadata, pod = template["metadata"], template["spec"]

    assert metadata["labels"] == {
        NAME: "loadmaster",
        INSTANCE: "loadmaster",
        "app.kubernetes.io/version": "mine",
        "helm.sh/chart": "mine",
        "team": "scheduling",
    }
    assert metadata["annotations"].keys() == {CHECKSUM, "example.com/scrape"}
    assert container["args"][-3:] == ["--logging-format=json", "-v=2", "--bind-address=::"]
    assert container["ports"] == [{"name": "https", "containerPort": 8080}]
    assert [variable["name"] for variable in container["env"]] == ["HTTPS_PROXY", "NODE"]
    assert [mount["name"] for mount in container["volumeMounts"]] == ["config", "plugin-files", "plugins"]
    assert [volume["name"] for volume in pod["volumes"]] == ["config", "plugin-files", "plugins"]
    assert pod["terminationGracePeriodSeconds"] == 40
    assert [each["name"] for each in pod["initContainers"]] == ["proxy"]
    assert [each["name"] for each in pod["containers"]] == ["loadmaster", "sidecar"]
    assert of_kind(documents, "Service")["metadata"]["labels"]["team"] == "monitoring"
    assert of_kind(documents, "Service")["spec"]["ports"][0]["port"] == 8080
    assert of_kind(documents, "ClusterRole")["metadata"]["labels"]["team"] == "platform"
    assert of_kind(documents, "ClusterRole")["rules"][-1]["resources"] == ["budgets"]
    assert of_kind(documents, "ServiceAccount")["metadata"]["annotations"] == {"example.com/identity": "scheduler"}


def test_values_of_other_charts_are_where_kubernetes_reads_them(helm: Helm) -> None:
    documents = load_documents(helm.render(AS_OTHER_CHARTS))
    deployment, pod, container = of_kind(documents, "Deployment"), template_of(documents), container_of(documents)
    budget, account = of_kind(documents, "PodDisruptionBudget"), of_kind(documents, "ServiceAccount")
    (own,) = (each for each in documents if each["metadata"]["name"] == "loadmaster-ours")

    assert container["image"] == "mirror.example.com:5000/a/b/loadmaster:0.2.0"
    assert deployment["metadata"]["annotations"] == {"example.com/reload": "yes"}
    assert {"revisionHistoryLimit": 2, "progressDeadlineSeconds": 1200}.items() <= deployment["spec"].items()
    assert (pod["spec"]["hostNetwork"], pod["spec"]["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert pod["spec"]["dnsConfig"] == {"nameservers": ["10.0.0.10"]}
    assert budget["spec"].keys() == {"minAvailable", "unhealthyPodEvictionPolicy", "selector"}
    assert account["metadata"]["labels"]["example.com/identity"] == "use"
    assert container["envFrom"] == AS_OTHER_CHARTS["envFrom"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["livenessProbe"].pop("httpGet")["path"] == "/livez"
    assert container["livenessProbe"] == {
        "failureThreshold": 6,
        "initialDelaySeconds": 3,
        "periodSeconds": 20,
        "terminationGracePeriodSeconds": 5,
        "timeoutSeconds": 5,
    }
    assert own["data"] == {"port": "20259"}


LEFT_OUT: dict[str, dict[str, str]] = {
    "DeploymentSpec": {"paused": "replicas: 0", "minReadySeconds": "/readyz is true when it can lead"},
    "PodDisruptionBudgetSpec": {},
    "Probe": {
        **dict.fromkeys(("exec", "grpc", "tcpSocket"), "it is HTTP"),
    },
    "Container": {
        **dict.fromkeys(("command", "workingDir", "stdin", "stdinOnce", "tty"), "of the image"),
        **dict.fromkeys(("lifecycle", "startupProbe"), "its start and end need none"),
        **dict.fromkeys(("resizePolicy", "restartPolicy", "restartPolicyRules"), "the kubelet's default is right"),
        **dict.fromkeys(("terminationMessagePath", "volumeDevices"), "it has no use for them"),
    },
    "PodSpec": {
        **dict.fromkeys(("activeDeadlineSeconds", "restartPolicy", "ephemeralContainers"), "a Deployment has none"),
        **dict.fromkeys(("automountServiceAccountToken", "serviceAccount", "enableServiceLinks"), "its account"),
        **dict.fromkeys(("hostIPC", "hostPID", "shareProcessNamespace", "hostUsers", "os"), "it is one process"),
        **dict.fromkeys(
            ("hostname", "hostnameOverride", "setHostnameAsFQDN", "subdomain", "hostAliases"), "no name leads to a pod"
        ),
        **dict.fromkeys(
            ("nodeName", "schedulerName", "schedulingGates", "schedulingGroup", "workloadRef"), "who places it"
        ),
        **dict.fromkeys(("preemptionPolicy", "priority", "overhead", "runtimeClassName"), "of its class"),
        **dict.fromkeys(("readinessGates", "resourceClaims", "resources"), "it has no use for them"),
        "evictionResponders": "it may be evicted at any moment",
    },
}
"""Fields that no value sets, and why. Other API servers lack some of them: only 1.35 has workloadRef."""


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_a_field_of_kubernetes_is_set_by_a_value_or_left_out_on_purpose(
    helm: Helm, cluster: Cluster, kind: str
) -> None:
    fields = fields_of(cluster, kind)
    set_ = set().union(*(fields_set(load_documents(helm.render(values)))[kind] for values in ACCEPTED.values()))

    assert fields - set_ <= set(LEFT_OUT[kind])


def fields_of(cluster: Cluster, kind: str) -> set[str]:
    """All fields of a kind, as the API server publishes them."""
    group = "policy" if kind.startswith("PodDisruption") else "apps"
    schemas = json.loads(cluster.kubectl("get", "--raw", f"/openapi/v3/apis/{group}/v1"))["components"]["schemas"]
    (found,) = (schema for name, schema in schemas.items() if name.endswith(f".{kind}"))
    return set(found["properties"])


def fields_set(documents: Documents) -> dict[str, set[str]]:
    """The fields that a rendering has, by kind."""
    pod, container = template_of(documents)["spec"], container_of(documents)
    probes = (container["livenessProbe"], container["readinessProbe"])
    budgets = [each["spec"] for each in documents if each["kind"] == "PodDisruptionBudget"]
    return {
        "DeploymentSpec": set(of_kind(documents, "Deployment")["spec"]),
        "PodDisruptionBudgetSpec": set().union(*budgets),
        "Probe": set().union(*probes),
        "Container": set(container),
        "PodSpec": set(pod),
    }


def test_plugins_are_files_that_a_flag_names(helm: Helm) -> None:
    files = {"gpu_guard.py": "# a plugin\nNAME = '{{ no template }}'\n", "_shared.py": "\n"}
    documents = load_documents(helm.render({"plugins": {"files": files}}))
    container = container_of(documents)
    mount = next(each for each in container["volumeMounts"] if each["name"] == "plugin-files")
    volume = next(each for each in template_of(documents)["spec"]["volumes"] if each["name"] == "plugin-files")
    config_map = next(each for each in documents if each["metadata"]["name"] == volume["configMap"]["name"])

    assert f"--plugin-dir={mount['mountPath']}" in container["args"]
    assert mount["readOnly"] is True
    assert (config_map["kind"], config_map["data"]) == ("ConfigMap", files)


@pytest.mark.parametrize("files", [{"a.py": "x = 2"}, {"a.py": "x = 1", "b.py": ""}, {}], ids=["other", "more", "none"])
def test_changed_plugins_replace_no_pod(helm: Helm, files: dict[str, str]) -> None:
    assert template(helm, {"plugins": {"files": files}}) == template(helm, {"plugins": {"files": {"a.py": "x = 1"}}})


def test_what_changes_is_mounted_so_that_the_kubelet_updates_it(helm: Helm) -> None:
    mounts = container_of(load_documents(helm.render()))["volumeMounts"]

    assert [mount["mountPath"] for mount in mounts] == ["/etc/loadmaster", "/etc/loadmaster-plugins"]
    assert not any(mount.keys() & {"subPath", "subPathExpr"} for mount in mounts)


@pytest.mark.parametrize("is_on", [False, True])
def test_the_page_is_a_flag_and_a_right(helm: Helm, is_on: bool) -> None:
    documents = load_documents(helm.render({"page": {"enabled": is_on}}))
    paths = [url for each in documents for rule in each.get("rules", ()) for url in rule.get("nonResourceURLs", ())]

    assert ("--page" in container_of(documents)["args"]) is is_on
    of_page = ["/debug/page/*"] if is_on else []
    assert sorted(paths) == ["/configz", "/debug/explain", *of_page, "/debug/record", "/metrics"]


def test_with_an_account_that_exists_nothing_is_granted_or_created(helm: Helm) -> None:
    documents = load_documents(helm.render(ACCEPTED["an account that exists"]))

    kinds = {each["kind"] for each in documents}
    assert kinds == {"ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "Pod"}
    assert template_of(documents)["spec"]["serviceAccountName"] == "default"


def test_each_profile_has_a_pod_in_the_charts_tests(helm: Helm) -> None:
    documents = load_documents(helm.render(ACCEPTED["several profiles"]))

    pods = [each for each in documents if each["kind"] == "Pod"]
    assert [pod["spec"]["schedulerName"] for pod in pods] == ["one", "two"]
    assert {pod["metadata"]["annotations"]["helm.sh/hook"] for pod in pods} == {"test"}


@pytest.mark.parametrize("name", ["true", "null", "e1"])
def test_a_name_that_yaml_takes_for_something_else_stays_a_name(helm: Helm, cluster: Cluster, name: str) -> None:
    documents = load_documents(helm.render(release=name, namespace="1234"))

    for each in documents:
        assert name in each["metadata"]["name"]
        if not is_shared(each):
            assert each["metadata"]["namespace"] == "1234"
    assert template_of(documents)["metadata"]["labels"][INSTANCE] == name


def test_a_number_in_the_configuration_is_not_rounded(helm: Helm) -> None:
    config = {"podMaxBackoffSeconds": 1_000_000, "loadmaster": {"seed": 2**53 - 1, "bindTimeoutSeconds": 0.5}}

    text = configuration_of(load_documents(helm.render({"config": config})))

    assert config.items() <= yaml.safe_load(text).items()


def test_cluster_scoped_names_of_two_releases_differ(helm: Helm) -> None:
    def names(namespace: str, release: str) -> set[tuple[str, str]]:
        documents = load_documents(helm.render(release=release, namespace=namespace))
        shared = [each for each in documents if is_shared(each)]
        return {(each["kind"], each["metadata"]["name"]) for each in shared}

    assert {kind for kind, _ in names("a-b", "c")} == {"ClusterRole", "ClusterRoleBinding", "RoleBinding"}
    assert names("a-b", "c") & names("a", "b-c") == set()


CHANGED: dict[str, Values] = {
    "nothing": {},
    "profiles": {"profiles": [{"schedulerName": "another"}]},
    "percentageOfNodesToScore": {"percentageOfNodesToScore": 50},
    "podInitialBackoffSeconds": {"podInitialBackoffSeconds": 2},
    "podMaxBackoffSeconds": {"podMaxBackoffSeconds": 20},
    "loadmaster.seed": {"loadmaster": {"seed": 7}},
    "loadmaster.podMaxInUnschedulablePodsSeconds": {"loadmaster": {"podMaxInUnschedulablePodsSeconds": 60}},
    "loadmaster.pluginDirectories": {"loadmaster": {"pluginDirectories": ["/opt/plugins"]}},
    "loadmaster.pluginModules": {"loadmaster": {"pluginModules": ["json"]}},
    "extenders": {"extenders": [{"urlPrefix": "http://extender.example.com", "filterVerb": "filter"}]},
    "loadmaster.podsAtExtenders": {"loadmaster": {"podsAtExtenders": 4}},
    "loadmaster.topologyLevels": {"loadmaster": {"topologyLevels": ["example.com/rack"]}},
    "loadmaster.groupReservationSeconds": {"loadmaster": {"groupReservationSeconds": 60}},
    "loadmaster.groupBackfill": {"loadmaster": {"groupBackfill": "Enforced"}},
    "loadmaster.damagedGroupSeconds": {"loadmaster": {"damagedGroupSeconds": 60}},
    "loadmaster.pluginLimits": {"loadmaster": {"pluginLimits": [{"name": "*", "callBudget": "1s"}]}},
    "loadmaster.bindTimeoutSeconds": {"loadmaster": {"bindTimeoutSeconds": 5}},
    "leaderElection": {"leaderElection": {"leaseDuration": "20s"}},
    "clientConnection": {"clientConnection": {"qps": 10}},
    "several": {"podMaxBackoffSeconds": 20, "loadmaster": {"seed": 7, "resyncSeconds": 600}},
}
"""Changes of the configuration, by what changes."""


@pytest.mark.parametrize("config", CHANGED.values(), ids=CHANGED)
def test_pods_are_replaced_for_what_a_scheduler_at_work_cannot_take_over(helm: Helm, config: Values) -> None:
    def parsed(values: Values) -> Config:
        text = configuration_of(load_documents(helm.render(values)))
        return config_from_dict(yaml.safe_load(text), IN_TREE)

    needed = needs_a_restart(parsed({}), parsed({"config": config}))

    assert (template(helm, {"config": config}) != template(helm, {})) == bool(needed)


def test_all_that_a_scheduler_at_work_takes_over_was_tried() -> None:
    assert CHANGED.keys() >= RELOADABLE


def test_a_label_of_the_release_replaces_pods_but_not_their_configuration(helm: Helm) -> None:
    annotations = template(helm, {})["metadata"]["annotations"]

    assert template(helm, {"commonLabels": {"team": "a"}})["metadata"]["annotations"] == annotations


def test_it_can_be_part_of_another_chart(helm: Helm, tmp_path: Path) -> None:
    shutil.copytree(CHART, tmp_path / "charts" / "loadmaster")
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: platform\nversion: 1.0.0\n")

    values = {"global": {"registry": "x"}, "loadmaster": {"fullnameOverride": "placer"}}
    documents = load_documents(helm.render(values, release="platform", chart=tmp_path))

    assert of_kind(documents, "Deployment")["metadata"]["name"] == "placer"


def repeated(flag: str) -> Values:
    return {"extraArgs": [flag]}


REFUSED: dict[str, tuple[Values, str]] = {
    "a misspelt value": ({"replica": 1}, "'replica' not allowed"),
    "a misspelt value in a group": ({"image": {"tagg": "foo"}}, "at '/image': additional properties 'tagg'"),
    "a misspelt toleration": ({"tolerations": [{"keyy": "x"}]}, "at '/tolerations/0': additional properties 'keyy'"),
    "a tag that is a number": ({"image": {"tag": 1.1}}, "at '/image/tag': got number, want string"),
    "a tag in the repository": ({"image": {"repository": "x/y:1"}}, "at '/image/repository': 'x/y:1' does not match"),
    "a digest that is none": ({"image": {"digest": "sha256:1"}}, "at '/image/digest': 'sha256:1' does not match"),
    "a pull policy that is none": ({"image": {"pullPolicy": "Sometimes"}}, "'IfNotPresent'"),
    "a port out of range": ({"port": 65536}, "at '/port': maximum"),
    "an annotation that is no string": ({"podAnnotations": {"a": True}}, "at '/podAnnotations/a': got boolean"),
    "replicas below 0": ({"replicas": -1}, "at '/replicas': minimum"),
    "another kind of configuration": ({"config": {"kind": "Policy"}}, "at '/config/kind': value must be"),
    "another version of it": ({"config": {"apiVersion": "v1"}}, "at '/config/apiVersion': value must be"),
    "no profile": ({"config": {"profiles": []}}, "at '/config/profiles': minItems"),
    "a profile without a name": ({"config": {"profiles": [{}]}}, "missing property 'schedulerName'"),
    "a misspelt setting": ({"config": {"parallelsim": 8}}, "at '/config': additional properties 'parallelsim'"),
    "a misspelt argument of a plugin": (
        {"config": {"profiles": [{"schedulerName": "a", "pluginConfig": [{"name": "LoadAware", "args": {"x": 1}}]}]}},
        "at '/config/profiles/0/pluginConfig/0/args': additional properties 'x' not allowed",
    ),
    "a duration that is none": (
        {"config": {"leaderElection": {"leaseDuration": 15}}},
        "at '/config/leaderElection/leaseDuration': got number, want null or string",
    ),
    "a size that is none": ({"clusterSize": "huge"}, "at '/clusterSize': value must be one of 'small'"),
    "a container of the scheduler's name": (
        {"extraContainers": [{"name": "loadmaster", "image": "x"}]},
        'extraContainers: there are two containers "loadmaster"',
    ),
    "a container twice": (
        {"initContainers": [{"name": "x", "image": "x"}], "extraContainers": [{"name": "x", "image": "x"}]},
        'extraContainers: there are two containers "x"',
    ),
    "replicas that do not elect": (
        {"config": {"leaderElection": {"leaderElect": False}}},
        "replicas: 2 schedulers would each do the same work with config.leaderElection.leaderElect=false",
    ),
    "a flag of leader election": (
        repeated("--leader-elect=false"),
        "extraArgs: --leader-elect=false is about leader election, which the chart sets up with its Role",
    ),
    "the Lease's name as a flag": (repeated("--leader-elect-resource-name=x"), "use the value config.leaderElection"),
    "the label of the selector": ({"podLabels": {NAME: "x"}}, f"podLabels: {NAME} is a label of the selector"),
    "the same on all objects": ({"commonLabels": {INSTANCE: "x"}}, f"commonLabels: {INSTANCE} is a label of the"),
    "the same on the Service": ({"service": {"labels": {NAME: "x"}}}, f"service.labels: {NAME} is a label of the"),
    "the checksum": ({"podAnnotations": {CHECKSUM: "x"}}, "podAnnotations: checksum/config is set by the chart"),
    "no account": ({"serviceAccount": {"create": False}}, "serviceAccount.name: needed with serviceAccount.create"),
    "annotations of no account": (
        {"serviceAccount": {"create": False, "name": "x", "annotations": {"a": "b"}}},
        "serviceAccount.annotations: no account is created with serviceAccount.create=false",
    ),
    "a policy for pods on the node's network": (
        {"hostNetwork": True, "networkPolicy": {"enabled": True}},
        "networkPolicy: does not apply to pods on the node's network",
    ),
    "no name server": ({"dnsPolicy": "None"}, "dnsConfig.nameservers: needed with dnsPolicy=None"),
    "a budget of nothing": (
        {"podDisruptionBudget": {"maxUnavailable": None}},
        "podDisruptionBudget: set maxUnavailable or minAvailable, or enabled=false",
    ),
    "a probe that is none": (
        {"livenessProbe": {"httpGet": {}}},
        "at '/livenessProbe': additional properties 'httpGet'",
    ),
    "a runbook that is no URL": (
        {"monitoring": {"rules": {"runbook": "docs/runbook.md"}}},
        "at '/monitoring/rules/runbook': 'docs/runbook.md' does not match",
    ),
    "an alert that is none": (
        {"monitoring": {"rules": {"disabled": ["LoadmasterUp"]}}},
        'monitoring.rules.disabled: there is no alert "LoadmasterUp"; docs/runbook.md has all of them',
    ),
    "an object that is none": ({"extraObjects": [{"kind": "ConfigMap"}]}, "missing properties 'apiVersion'"),
    "rules of no role": (
        {"rbac": {"create": False, "extraRules": [{"resources": ["pods"], "verbs": ["get"]}]}},
        "rbac.extraRules: no rule is added with rbac.create=false",
    ),
    "surge without an old pod": (
        {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
        "strategy.rollingUpdate: has no meaning with strategy.type=Recreate",
    ),
    "--config again": (repeated("--config=x"), "extraArgs: --config=x repeats --config, which the chart sets: use the"),
    "--secure-port again": (
        repeated("--secure-port"),
        "repeats --secure-port, which the chart sets: use the value port",
    ),
    "an abbreviation of it that is no longer a flag": (repeated("--secure"), "--secure repeats --secure-port"),
    "a certificate twice": (
        {"tls": {"secretName": "cert"}, "extraArgs": ["--tls-cert-file=/x"]},
        "--tls-cert-file=/x repeats --tls-cert-file, which the chart sets: use the value tls.secretName",
    ),
    "peers of no policy": (
        {"networkPolicy": {"from": [{"podSelector": {}}]}},
        "networkPolicy: nothing is let in or out",
    ),
    "a policy without the API server": (
        {"networkPolicy": {"enabled": True, "apiServer": {"ports": []}}},
        "at '/networkPolicy/apiServer/ports': minItems",
    ),
    "a peer that is none": (
        {"networkPolicy": {"enabled": True, "from": [{"pods": {}}]}},
        "at '/networkPolicy/from/0': additional properties 'pods'",
    ),
    "--logging-format again": (repeated("--logging-format=text"), "repeats --logging-format"),
    "an abbreviation of it": (repeated("--log=text"), "extraArgs: --log=text repeats --logging-format"),
    "a mount of no volume": (
        {"extraVolumeMounts": [{"name": "x", "mountPath": "/x"}]},
        'extraVolumeMounts: there is no volume "x" in extraVolumes',
    ),
    "a mount over the configuration": (
        {"extraVolumeMounts": [{"name": "config", "mountPath": "/etc/loadmaster/"}]},
        "extraVolumeMounts: /etc/loadmaster is where the chart's own configuration is",
    ),
    "the chart's own volume": (
        {"extraVolumes": [{"name": "config", "emptyDir": {}}]},
        "extraVolumes: the volume `config` is the chart's own",
    ),
    "the volume of the certificate": (
        {"extraVolumes": [{"name": "tls", "emptyDir": {}}]},
        "extraVolumes: the volume `tls` is the chart's own",
    ),
    "the volume of the plugins": (
        {"extraVolumes": [{"name": "plugin-files", "emptyDir": {}}]},
        "extraVolumes: the volume `plugin-files` is the chart's own",
    ),
    "a mount over the plugins": (
        {
            "extraVolumes": [{"name": "x", "emptyDir": {}}],
            "extraVolumeMounts": [{"name": "x", "mountPath": "/etc/loadmaster-plugins"}],
        },
        "extraVolumeMounts: /etc/loadmaster-plugins is where the chart's plugins.files are",
    ),
    "a plugin whose file is no Python": (
        {"plugins": {"files": {"gpu-guard.py": ""}}},
        'plugins.files: "gpu-guard.py" is no name of a Python module, such as gpu_guard.py',
    ),
    "a plugin that is no text": (
        {"plugins": {"files": {"gpu_guard.py": {"filter": 1}}}},
        "at '/plugins/files/gpu_guard.py': got object, want string",
    ),
    "a volume twice": (
        {"extraVolumes": [{"name": "x", "emptyDir": {}}, {"name": "x", "emptyDir": {}}]},
        'extraVolumes: there are two volumes "x"',
    ),
}


@pytest.mark.parametrize(("values", "said"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_value_is_refused_by_name(helm: Helm, values: Values, said: str) -> None:
    with pytest.raises(HelmError) as raised:
        helm.render(values)

    assert said in str(raised.value)


def test_a_release_whose_name_no_service_can_have_is_told_what_to_do(helm: Helm) -> None:
    with pytest.raises(HelmError, match=r"fullnameOverride: the release's name \"1st\" cannot be a Service's"):
        helm.render(release="1st")

    assert of_kind(load_documents(helm.render({"fullnameOverride": "first"}, release="1st")), "Service")


def test_all_contradictions_are_told_at_once(helm: Helm) -> None:
    alone = {"leaderElection": {"leaderElect": False}}
    values: Values = {
        "replicas": 3,
        "config": alone,
        "serviceAccount": {"create": False},
        "extraArgs": ["--secure-port=1"],
    }

    with pytest.raises(HelmError) as raised:
        helm.render(values)

    lines = str(raised.value).partition("these values contradict each other:\n")[2].partition("\n\n")[0]
    assert [line.partition(":")[0] for line in lines.splitlines()] == ["replicas", "serviceAccount.name", "extraArgs"]


def test_a_release_is_installed_upgraded_rolled_back_and_leaves_nothing(
    helm: Helm, cluster: Cluster, api: Client, namespace: str
) -> None:
    where = f"--namespace={namespace}"

    def config() -> Any:
        return yaml.safe_load(api.get("ConfigMap", "lm", namespace)["data"]["config.yaml"])

    def annotation() -> str:
        deployment = api.get("apps/v1/Deployment", "lm", namespace)
        text: str = deployment["spec"]["template"]["metadata"]["annotations"][CHECKSUM]
        return text

    def left() -> list[str]:
        kinds = "all,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings"
        kinds += ",poddisruptionbudgets"
        found = cluster.kubectl("get", kinds, where, f"--selector={INSTANCE}=lm", "--output=name").split()
        return found + cluster.kubectl("get", "secrets", where, "--output=name").split()  # helm's own

    notes = helm.run("install", "lm", str(CHART), where, values={})
    installed = annotation()
    helm.run("upgrade", "lm", str(CHART), where, values={"config": {"enableProfiling": False}})
    upgraded, changed = annotation(), config()
    helm.run("rollback", "lm", where)
    rolled_back, restored = annotation(), config()
    can_bind = cluster.kubectl(
        "auth", "can-i", "create", "pods", "--subresource=binding", f"--as=system:serviceaccount:{namespace}:lm"
    )
    helm.run("uninstall", "lm", where, "--wait")

    assert f"helm test lm --namespace {namespace}" in notes
    assert '"schedulerName":"loadmaster"' in notes
    assert (changed["enableProfiling"], "enableProfiling" in restored) == (False, False)
    assert rolled_back == installed != upgraded
    assert can_bind.strip() == "yes"
    wait_until(lambda: not left(), 30, "nothing is left")  # the pod goes when the garbage collector has seen it


def test_helm_test_passes_once_loadmaster_has_placed_its_pod(
    helm: Helm, loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    (node,) = make_nodes()
    where = f"--namespace={namespace}"
    helm.run("install", "lm", str(CHART), where, values={"replicas": 0})  # the fixture is the scheduler here

    def placed() -> str:
        pods = api.list("Pod", namespace)
        return node_of(pods[0]) if pods and pods[0]["status"]["phase"] == "Running" else ""

    with ThreadPoolExecutor(max_workers=1) as pool:
        test = pool.submit(helm.run, "test", "lm", where, "--timeout=30s")
        found = wait_until(placed, 20, "the test pod is placed")
        # kwok lets pods run for ever; the program in this one would have ended by now.
        api.patch("Pod", "lm-test-0", {"status": {"phase": "Succeeded"}}, namespace, subresource="status")
        said = test.result()
    helm.run("uninstall", "lm", where)

    assert found == node
    assert "Phase:          Succeeded" in said


def test_what_the_notes_say_to_try_is_a_pod_of_each_profile(helm: Helm, cluster: Cluster, namespace: str) -> None:
    values = {"config": {"profiles": [{"schedulerName": "one"}, {"schedulerName": "two"}]}, "replicas": 0}

    notes = helm.run("install", "lm", str(CHART), f"--namespace={namespace}", "--dry-run=server", values=values)
    lines = [line.strip() for line in notes.splitlines() if line.strip().startswith("kubectl run")]

    overrides = [line.partition("--overrides='")[2].rstrip("'") for line in lines]
    assert [json.loads(each)["spec"]["schedulerName"] for each in overrides] == ["one", "two"]
    assert "It has no replica" in notes
