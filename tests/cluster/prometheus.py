"""A real Prometheus. Debian's is built without the discovery of Kubernetes' pods, so it is told whom to scrape."""

import json
import math
import re
import shutil
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from tests.controlplane import Cluster, Component

OPERATIONS: Final = Path(__file__).parents[2] / "docs" / "operations" / "port.md"
MISSING: Final = "there is no prometheus: sudo make kind-deps installs Debian's package"


class Prometheus:
    """Answers queries."""

    def __init__(self, process: Component) -> None:
        self._process = process

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The instant vector of a PromQL expression. A scalar is a vector with one sample."""
        data = self._get(f"query?query={urllib.parse.quote(expression)}")
        result: Any = data["result"]
        return [{"metric": {}, "value": result}] if data["resultType"] == "scalar" else list(result)

    def values(self, expression: str) -> list[float]:
        """The values of an instant vector that are numbers."""
        values = (float(each["value"][1]) for each in self.query(expression))
        return [value for value in values if not math.isnan(value)]

    def rules(self) -> list[dict[str, Any]]:
        """All rules, as Prometheus sees them: with their health and last error."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def label_values(self, label: str, selector: str) -> set[str]:
        """The values of a label, in series of the last hour."""
        return set(self._get(f"label/{label}/values?match[]={urllib.parse.quote(selector)}"))

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._process.port}/api/v1/{path}", timeout=5) as answer:
            return json.load(answer)["data"]


def is_there() -> bool:
    return shutil.which("prometheus") is not None


@contextmanager
def a_prometheus(
    cluster: Cluster, scrapes: Sequence[Mapping[str, Any]], rules: Sequence[Path] = ()
) -> Iterator[Prometheus]:
    """Prometheus, with these scrape configurations, each second, and rules."""
    directory = cluster.directory / "prometheus"
    directory.mkdir()
    config = directory / "prometheus.yaml"
    each_second = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    files = [str(each) for each in rules]
    config.write_text(yaml.safe_dump({"global": each_second, "rule_files": files, "scrape_configs": [*scrapes]}))

    def argv(port: int) -> list[str]:
        return [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]

    with cluster.spawn("prometheus", argv, is_ready) as process:
        yield Prometheus(process)
    shutil.rmtree(directory)


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def as_documented(
    directory: Path, targets: Sequence[str], token: str, namespace: str = "kube-system"
) -> list[dict[str, Any]]:
    """What docs/operations/port.md has for `scrape_configs`, with addresses and a token in the place of discovery.

    The targets have the labels that it would give them, so that the page's rules for labels are at work.
    """
    (block,) = re.findall(r"(?ms)^```yaml\n(- job_name: loadmaster\n.*?)^```$", OPERATIONS.read_text())
    file = directory / "token"
    file.write_text(token)
    jobs: list[dict[str, Any]] = yaml.safe_load(block)
    for job in jobs:
        (discovered,) = job.pop("kubernetes_sd_configs")
        assert namespace in discovered["namespaces"]["names"]
        job["authorization"]["credentials_file"] = str(file)
        job["static_configs"] = [{"targets": [each], "labels": _discovered(each, namespace)} for each in targets]
    return jobs


def _discovered(target: str, namespace: str) -> dict[str, str]:
    labels = {
        "namespace": namespace,
        "pod_name": f"loadmaster-{target.rpartition(':')[2]}",
        "pod_label_app_kubernetes_io_name": "loadmaster",
        "pod_container_port_name": "https",
    }
    return {f"__meta_kubernetes_{key}": value for key, value in labels.items()}
