"""What serves metrics of nodes to the scheduler under test: a metrics.k8s.io behind an APIService."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import trustme

from tests.controlplane import Cluster, KubectlError, wait_until

GROUP = "/apis/metrics.k8s.io/v1beta1"


class MetricsServer:
    """Answers over https."""

    def __init__(self, certificate: Path) -> None:
        """`certificate`: where to keep one."""
        self.cores: dict[str, float] = {}
        """Node → what it uses."""
        self.answers = 0
        """About nodes."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                status, body = outer.answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base's name for it
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        trustme.CA().issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(certificate))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> tuple[int, bytes]:
        """Return status and body."""
        url = urlparse(path)
        if url.path == GROUP:
            resource = {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics"}
            resources = [{**resource, "verbs": ["get", "list"]}]
            found = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP[6:], "resources": resources}
            return 200, json.dumps(found).encode()
        if url.path != f"{GROUP}/nodes":
            return 404, b"{}"
        self.answers += 1
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        items = [
            {
                "metadata": {"name": name},
                "timestamp": now,
                "window": "20s",
                "usage": {"cpu": f"{round(cores * 1e9)}n", "memory": "1Gi"},
            }
            for name, cores in self.cores.items()
        ]
        return 200, json.dumps(
            {"kind": "NodeMetricsList", "apiVersion": GROUP[6:], "metadata": {}, "items": items}
        ).encode()

    def wait_until_read(self) -> None:
        """Return when what is served now has been read, and is in use or has been refused."""
        seen = self.answers
        wait_until(lambda: self.answers >= seen + 3, 30, "the metrics are read again and again")


@contextmanager
def behind_an_api_service(cluster: Cluster, server: MetricsServer) -> Iterator[None]:
    """Make the API server answer for metrics.k8s.io with what `server` says."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "fake-metrics", "namespace": "kube-system"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": server.port}]},
    }
    api_service = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.metrics.k8s.io"},
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "service": {"name": "fake-metrics", "namespace": "kube-system", "port": server.port},
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        },
    }
    for each in (service, api_service):
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(each))
    try:
        cluster.kubectl("wait", "--for=condition=Available", "apiservice/v1beta1.metrics.k8s.io", "--timeout=60s")
        wait_until(lambda: _is_discovered(cluster), 30, "kubectl finds nodes.metrics.k8s.io")
        yield
    finally:
        cluster.kubectl("delete", "apiservice", "v1beta1.metrics.k8s.io")
        cluster.kubectl("delete", "service", "fake-metrics", "-n", "kube-system")


def _is_discovered(cluster: Cluster) -> bool:
    """The group may be available a moment before the list of all resources has it."""
    try:
        found = cluster.kubectl("api-resources", "--api-group=metrics.k8s.io", "--output=name")
    except KubectlError:  # the list says of the group that it is stale
        return False
    return "nodes.metrics.k8s.io" in found
