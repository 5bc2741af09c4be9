"""A real Prometheus. Debian's is built without the discovery of Kubernetes' pods, so it is told whom to scrape."""

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from tests.controlplane import Component
from tests.realnode.node import RealNode


class Prometheus:
    """Answers queries."""

    def __init__(self, process: Component) -> None:
        self._process = process

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The instant vector of a PromQL expression."""
        url = f"http://127.0.0.1:{self._process.port}/api/v1/query?query={urllib.parse.quote(expression)}"
        with urllib.request.urlopen(url, timeout=5) as answer:
            result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return result


@contextmanager
def a_prometheus(node: RealNode, target: str, token: str) -> Iterator[Prometheus]:
    """Prometheus, scraping `target`, an address with a port, each second, with a bearer token."""
    directory = node.directory / "prometheus"
    directory.mkdir()
    config = directory / "prometheus.yaml"
    credentials = directory / "token"
    credentials.write_text(token)
    config.write_text(yaml.safe_dump(configuration(target, str(credentials))))

    def argv(port: int) -> list[str]:
        return [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]

    with node.spawn("prometheus", argv, is_ready) as process:
        yield Prometheus(process)


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def configuration(target: str, token_file: str) -> dict[str, Any]:
    """One job, `loadmaster`, with one target, as docs/operations.md shows it."""
    job = {
        "job_name": "loadmaster",
        "scheme": "https",
        "tls_config": {"insecure_skip_verify": True},
        "authorization": {"credentials_file": token_file},
        "static_configs": [{"targets": [target]}],
    }
    return {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": [job]}
