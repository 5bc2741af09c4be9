"""`loadmaster run` on this machine, to be reached through the API server's service proxy as in a cluster."""

import json
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.loadmaster import ACCOUNT, NAMESPACE, is_ready
from tests.controlplane import Client, Cluster, Component, a_pod

ASKER = "asker"
"""Who explains; who records is called otherwise, as rights are added up."""


def own_address() -> str:
    """The IPv4 address by which this machine reaches others; empty if it has none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        address: str = probe.getsockname()[0]
        return "" if address.startswith("127.") else address


@contextmanager
def proxied(
    cluster: Cluster, api: Client, address: str, *options: str, program: Sequence[str] = ("-m", "scheduler")
) -> Iterator[Component]:
    """The scheduler behind the Service `loadmaster`, with the account and the RBAC that are shipped.

    `program`: what Python is to run.
    """
    account = cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)
    kubeconfigs = [f"--{what}kubeconfig={account}" for what in ("", "authentication-", "authorization-")]

    def argv(port: int) -> list[str]:
        open_to_all = "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics"
        serving = ["--bind-address=0.0.0.0", f"--secure-port={port}", open_to_all]
        return [sys.executable, *program, "run", *kubeconfigs, *serving, "--leader-elect=false", *options]

    with cluster.spawn("loadmaster", argv, is_ready) as process:
        _publish(api, address, process.port)
        yield process


def asker(cluster: Cluster, what: str = "explain", name: str = ASKER) -> Path:
    """The kubeconfig of a user who has the Role `loadmaster-explain`, or for `what` else, and nothing else."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(account))
    role, subject = f"--role={ACCOUNT}-{what}", f"--serviceaccount=default:{name}"
    cluster.kubectl("create", "rolebinding", name, f"--namespace={NAMESPACE}", role, subject)
    return cluster.service_account_kubeconfig("default", name)


def _publish(api: Client, address: str, port: int) -> None:
    """Say to the API server that the process is a pod behind the Service: it leads to the addresses of pods only."""
    pod = api.create(a_pod("loadmaster-here", NAMESPACE, scheduler="nobody"))
    looked_at = {"type": "PodScheduled", "status": "False", "reason": "RunsOnThisMachine"}
    status = {"podIP": address, "podIPs": [{"ip": address}], "conditions": [looked_at]}
    api.patch("Pod", "loadmaster-here", {"status": status}, NAMESPACE, "status")
    meta = {"name": "loadmaster", "namespace": NAMESPACE}
    ports = [{"name": "metrics", "port": port}]
    api.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports}})
    target = {"kind": "Pod", "namespace": NAMESPACE, "name": "loadmaster-here", "uid": pod["metadata"]["uid"]}
    # The API server's proxy looks into Endpoints up to 1.36, from 1.37 on into EndpointSlices.
    subset = {"addresses": [{"ip": address, "targetRef": target}], "ports": ports}
    not_mirrored = meta | {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}
    api.create({"apiVersion": "v1", "kind": "Endpoints", "metadata": not_mirrored, "subsets": [subset]})
    of_the_service = meta | {"labels": {"kubernetes.io/service-name": "loadmaster"}}
    endpoint = {"addresses": [address], "conditions": {"ready": True}, "targetRef": target}
    kind = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4"}
    api.create(kind | {"metadata": of_the_service, "endpoints": [endpoint], "ports": ports})
