"""What Kubeflow's trainer waits for before it does anything: a Secret for its certificates, and their files.

It makes certificates of its own and keeps them in the Secret; a kubelet would put them where it reads them. Its
webhooks, which only check, are not asked here.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import trustme

from tests.controlplane import Cluster

NAMESPACE: Final = "kubeflow-system"
FOLDER: Final = Path("/tmp/k8s-webhook-server/serving-certs")
"""A constant of the trainer."""


def _objects() -> Iterator[dict[str, Any]]:
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kubeflow-trainer-webhook-cert"}}
    webhook = {
        "name": "nothing.example.com",
        "rules": [
            {"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["none"], "operations": ["CREATE"]}
        ],
        "clientConfig": {"url": "https://127.0.0.1/"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    yield {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "validator.trainer.kubeflow.org"},
        "webhooks": [webhook],
    }


@contextmanager
def certified(cluster: Cluster) -> Iterator[None]:
    """Have the trainer find what it waits for."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    made = "---\n".join(json.dumps(each) + "\n" for each in _objects())
    cluster.kubectl("apply", f"--namespace={NAMESPACE}", "-f", "-", stdin=made)
    certificate = trustme.CA().issue_cert("127.0.0.1")
    FOLDER.mkdir(parents=True, exist_ok=True)
    certificate.private_key_pem.write_to_path(str(FOLDER / "tls.key"))
    certificate.cert_chain_pems[0].write_to_path(str(FOLDER / "tls.crt"))
    try:
        yield
    finally:
        for name in ("tls.key", "tls.crt"):
            (FOLDER / name).unlink(missing_ok=True)
        cluster.kubectl("delete", f"--namespace={NAMESPACE}", "-f", "-", stdin=made)
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
