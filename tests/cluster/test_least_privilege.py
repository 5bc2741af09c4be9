"""What the account that is shipped may not do, and what the program never shows or loads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.fresh import rbac as rbac
from tests.cluster.loadmaster import ACCOUNT, NAMESPACE, http_get, node_of, start
from tests.controlplane import Client, Cluster, a_pod, wait_until

ACCOUNT_NAME = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"


def may(api: Client, verb: str, resource: str, namespace: str = "") -> bool:
    """Whether the account may do something in a namespace, or in all. `resource`: `plural/subresource.group`."""
    path, _, group = resource.partition(".")
    plural, _, subresource = path.partition("/")
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource, "namespace": namespace}
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {"user": ACCOUNT_NAME, "groups": groups, "resourceAttributes": attributes},
    }
    return bool(api.create(review)["status"]["allowed"])


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("get", "secrets"),
        ("list", "secrets"),
        ("list", "configmaps"),
        ("create", "pods"),
        ("update", "pods"),
        ("patch", "pods"),
        ("deletecollection", "pods"),
        ("create", "pods/eviction"),
        ("create", "pods/exec"),
        ("get", "pods/log"),
        ("update", "nodes"),
        ("patch", "nodes"),
        ("delete", "nodes"),
        ("patch", "nodes/status"),
        ("get", "nodes/proxy"),
        ("create", "deployments.apps"),
        ("patch", "statefulsets.apps"),
        ("delete", "persistentvolumes"),
        ("create", "persistentvolumeclaims"),
        ("delete", "namespaces"),
        ("create", "serviceaccounts/token"),
        ("create", "clusterrolebindings.rbac.authorization.k8s.io"),
        ("escalate", "clusterroles.rbac.authorization.k8s.io"),
        ("impersonate", "users"),
        ("create", "mutatingwebhookconfigurations.admissionregistration.k8s.io"),
        ("approve", "certificatesigningrequests.certificates.k8s.io"),
    ],
)
def test_the_account_may_not(api: Client, verb: str, resource: str) -> None:
    assert not may(api, verb, resource)
    assert not may(api, verb, resource, NAMESPACE), "not even where it lives"


def test_but_it_may_bind_pods_and_watch_claims(api: Client) -> None:
    assert may(api, "create", "pods/binding"), "the question is asked in the right way"
    assert may(api, "watch", "resourceclaims.resource.k8s.io")


@pytest.fixture
def hostile_home(tmp_path: Path) -> Path:
    """A directory full of files that programs like to load unasked; each module would leave a mark."""
    mark = "import pathlib; pathlib.Path(__file__).with_suffix('.loaded').touch()\n"
    for module in ("plugins", "scheduler", "kopf", "yaml", "sitecustomize", "usercustomize", "uvloop", "msgspec"):
        (tmp_path / f"{module}.py").write_text(mark)
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login evil password evil\n")
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("not: [yaml")
    (tmp_path / "config.yaml").write_text("not: [yaml")
    return tmp_path


WATCHED = """
import os, sys
home = sys.argv.pop(1)
os.chdir(home)
sys.path = [path for path in sys.path if path]  # as for the command: no import from where it is started
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(home):
        print("OPENED", arguments[0], file=sys.stderr, flush=True)
sys.addaudithook(hook)
from scheduler.__main__ import main
sys.exit(main())
"""


def test_nothing_is_loaded_from_where_it_happens_to_be_started(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes, hostile_home: Path
) -> None:
    (node,) = make_nodes(1)
    env = {"HOME": str(hostile_home)}
    with start(cluster, program=("-c", WATCHED, str(hostile_home)), env=env) as loadmaster:
        api.create(a_pod("web"), namespace)
        wait_until(lambda: node_of(api.get("Pod", "web", namespace)) == node, 10, "the pod is bound")

    assert "OPENED" not in loadmaster.log.read_text()
    assert list(hostile_home.glob("*.loaded")) == []


def test_the_command_does_not_import_from_the_directory_it_is_started_in(hostile_home: Path) -> None:
    command = Path(sys.executable).with_name("loadmaster")
    environment = {**os.environ, "HOME": str(hostile_home)}
    ended = subprocess.run(
        [command, "run", "--config=absent.yaml"],
        cwd=hostile_home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )

    assert ended.returncode == 2
    assert "absent.yaml" in ended.stderr
    assert list(hostile_home.glob("*.loaded")) == []


def test_no_log_and_no_metric_has_the_token(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    (node,) = make_nodes(1)
    token = Path(cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)).read_text().split("token: ")[1].split()[0]
    with start(cluster, "-v=10") as loadmaster:
        api.create(a_pod("web"), namespace)
        wait_until(lambda: node_of(api.get("Pod", "web", namespace)) == node, 10, "the pod is bound")
        _, metrics = http_get(loadmaster.port, "/metrics")

    log = loadmaster.log.read_text()
    assert "Successfully bound pod to node" in log, "it logs as much as it can"
    for secret in (token, token.split(".")[2]):
        assert secret not in log
        assert secret not in metrics
