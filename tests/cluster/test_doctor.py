"""`loadmaster doctor` of a healthy installation, of broken ones, and for users who may read a part of it.

The scheduler runs here, behind its Service; Deployment, pods and budget are those of the chart, made by hand.
"""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import trustme
import yaml

from scheduler.__main__ import main
from tests.cluster.loadmaster import ACCOUNT, IMPATIENT, MANIFEST, NAMESPACE
from tests.cluster.proxied import asker, proxied
from tests.controlplane import ApiError, Client, Component, ControlPlane, a_node, a_pod, wait_until

EXAMPLE: Final = Path(__file__).parents[2] / "docs" / "examples" / "doctor-reader.yaml"
ROLE: Final = f"{NAMESPACE}:{ACCOUNT}"
LEASE: Final = "coordination.k8s.io/v1/Lease"


@pytest.fixture(scope="module")
def admin(own: ControlPlane) -> Iterator[Client]:
    with own.client() as client:
        client.create_many([a_node("node-1"), a_node("node-2")])
        yield client


@pytest.fixture(scope="module")
def config(own: ControlPlane) -> Path:
    """What the scheduler runs by; its ConfigMap has the same."""
    path = own.directory / "doctor-config.yaml"
    path.write_text(the_manifests("ConfigMap")["data"]["config.yaml"])
    return path


@pytest.fixture(scope="module")
def certificate(own: ControlPlane) -> tuple[Path, Path]:
    """Certificate and key of the scheduler's port."""
    files = own.directory / "port.crt", own.directory / "port.key"
    write_certificate(files, days=365)
    return files


def write_certificate(files: tuple[Path, Path], days: int) -> None:
    made = trustme.CA().issue_cert("localhost", not_after=datetime.now(UTC) + timedelta(days=days))
    made.private_key_pem.write_to_path(files[1])
    made.cert_chain_pems[0].write_to_path(files[0])


@pytest.fixture(scope="module")
def loadmaster(
    own: ControlPlane, admin: Client, address: str, config: Path, certificate: tuple[Path, Path]
) -> Iterator[Component]:
    """One replica, which leads; another is a pod that is said to be ready."""
    flags = [
        f"--config={config}",
        f"--tls-cert-file={certificate[0]}",
        f"--tls-private-key-file={certificate[1]}",
        "--leader-elect=true",
        "--leader-elect-lease-duration=6s",
        "--leader-elect-renew-deadline=4s",
        "--leader-elect-retry-period=500ms",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez",
    ]
    with proxied(own, admin, address, *flags, program=(str(IMPATIENT),)) as process:
        leads = wait_until(lambda: holder(admin), 30, "it leads")
        labels = the_manifests("Service")["spec"]["selector"]
        admin.patch("Service", ACCOUNT, {"spec": {"selector": labels}}, NAMESPACE)
        admin.bind("loadmaster-here", "node-1", NAMESPACE)
        for name, node in ((leads.partition("_")[0], "node-1"), ("loadmaster-second", "node-2")):
            admin.create(a_pod(name, NAMESPACE, scheduler="nobody", nodeName=node, labels=labels))
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            admin.patch("Pod", name, {"status": ready}, NAMESPACE, "status")
        for kind in ("ConfigMap", "Deployment", "PodDisruptionBudget"):
            own.kubectl("apply", "-f", "-", stdin=json.dumps(the_manifests(kind)))
        yield process


def the_manifests(kind: str) -> Any:
    """The scheduler's own object of a kind in the shipped manifest."""
    documents = yaml.safe_load_all(MANIFEST.read_text())
    return next(each for each in documents if each["kind"] == kind and each["metadata"]["name"] in (ACCOUNT, ROLE))


def holder(api: Client) -> str:
    try:
        return str(api.get(LEASE, ACCOUNT, NAMESPACE)["spec"].get("holderIdentity", ""))
    except ApiError:
        return ""


Lines = list[dict[str, str]]


def doctor(kubeconfig: Path, *options: str) -> tuple[int, Lines]:
    """Run the command in this process; return its exit code and its findings."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["doctor", f"--kubeconfig={kubeconfig}", "-o=json", *options])
    assert err.getvalue() == ""
    findings: Lines = json.loads(out.getvalue())["findings"]
    return code, findings


def bad(findings: Lines) -> Lines:
    return [each for each in findings if each["level"] != "ok"]


def problems(findings: Lines) -> list[str]:
    return [each["message"] for each in findings if each["level"] == "problem"]


def test_a_healthy_installation_is_all_right(own: ControlPlane, loadmaster: Component) -> None:
    code, findings = doctor(own.kubeconfig())

    assert bad(findings) == []
    assert code == 0
    topics = {each["topic"] for each in findings}
    assert topics >= {
        "versions",
        "replicas",
        "port",
        "rights",
        "served",
        "leader",
        "clock",
        "tables",
        "plugins",
        "pods",
    }


def test_it_is_one_screen(own: ControlPlane, loadmaster: Component) -> None:
    command = [sys.executable, "-m", "scheduler", "doctor", f"--kubeconfig={own.kubeconfig()}"]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert len(lines) <= 45
    assert lines[-1] == "0 problems, 0 warnings"


def test_a_user_with_the_two_roles_of_the_documentation_sees_as_much(own: ControlPlane, loadmaster: Component) -> None:
    user = asker(own, "doctor", "reader")
    documents = list(yaml.safe_load_all(EXAMPLE.read_text()))
    documents[1]["subjects"] = [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}]
    own.kubectl("apply", "-f", "-", stdin="---\n".join(map(yaml.safe_dump, documents)))

    code, findings = doctor(user)

    assert {each["topic"] for each in bad(findings)} == {"rights"}
    assert [each["message"].partition(":")[0] for each in bad(findings)] == [
        "you cannot use `loadmaster explain`",
        "your snapshots are not complete",
    ]
    assert code == 0


def test_a_user_without_any_role_is_told_what_is_missing(own: ControlPlane, loadmaster: Component) -> None:
    own.kubectl("create", "serviceaccount", "nobody", "--namespace=default")
    kubeconfig = own.service_account_kubeconfig("default", "nobody")

    code, findings = doctor(kubeconfig)

    unknown = [each for each in findings if each["level"] == "unknown"]
    assert code == 0
    assert any("role=loadmaster-doctor" in each["advice"] for each in unknown)
    assert any("doctor-reader.yaml" in each["advice"] for each in unknown)


def test_the_schedulers_own_account_may_ask_what_it_lacks_itself(
    own: ControlPlane, loadmaster: Component, config: Path
) -> None:
    kubeconfig = own.service_account_kubeconfig(NAMESPACE, ACCOUNT)

    _, findings = doctor(kubeconfig, f"--config={config}")

    rights = [each["message"] for each in findings if each["topic"] == "rights" and each["level"] == "ok"]
    assert any("may do all that its configuration needs" in each for each in rights)


def test_a_rule_that_was_taken_away_is_named_with_the_rule_to_add(own: ControlPlane, loadmaster: Component) -> None:
    rules = json.loads(own.kubectl("get", "clusterrole", ROLE, "-o", "json"))["rules"]
    index = next(i for i, rule in enumerate(rules) if "pods/binding" in rule["resources"])
    patch = json.dumps([{"op": "remove", "path": f"/rules/{index}"}])
    own.kubectl("patch", "clusterrole", ROLE, "--type=json", f"--patch={patch}")

    code, findings = doctor(own.kubeconfig())

    own.kubectl("apply", "-f", "-", stdin=json.dumps(the_manifests("ClusterRole")))
    (line,) = bad(findings)
    assert code == 1
    assert line["message"] == "the account kube-system/loadmaster may not create pods/binding (core)"
    (rule,) = yaml.safe_load(line["advice"].splitlines()[-1])
    assert rule == {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]}


def test_a_refused_configuration_is_named_with_its_problem(
    own: ControlPlane, loadmaster: Component, config: Path
) -> None:
    good = config.read_text()
    wrong = good.replace("schedulerName: loadmaster", "schedulerNam: loadmaster")
    config.write_text(wrong)
    config_map = the_manifests("ConfigMap")
    own.kubectl("apply", "-f", "-", stdin=json.dumps({**config_map, "data": {"config.yaml": wrong}}))
    try:
        wait_until(lambda: "was refused" in "".join(problems(doctor(own.kubeconfig())[1])), 60, "it is refused")
        code, findings = doctor(own.kubeconfig())
    finally:
        config.write_text(good)
        own.kubectl("apply", "-f", "-", stdin=json.dumps(config_map))
        wait_until(lambda: doctor(own.kubeconfig())[0] == 0, 60, "the good one is in use")

    assert code == 1
    assert "schedulerNam" in problems(findings)[0]
