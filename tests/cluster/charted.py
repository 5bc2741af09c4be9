"""`loadmaster run` with the account, the configuration and the plugins that the chart makes of some values."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.chart import Helm, load_documents
from tests.chart.helm import Values
from tests.cluster.loadmaster import is_ready, serving
from tests.controlplane import Cluster, Component

GRANTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def configuration(documents: list[dict[str, Any]]) -> Any:
    """The scheduler's configuration in what the chart renders."""
    (text,) = (each["data"]["config.yaml"] for each in documents if "config.yaml" in each.get("data", {}))
    return yaml.safe_load(text)


def plugin_files(documents: list[dict[str, Any]]) -> dict[str, str]:
    """The plugins in what the chart renders: name of the file → its text."""
    (found,) = (each for each in documents if each["metadata"]["name"] == "loadmaster-plugins")
    files: dict[str, str] = found.get("data", {})
    return files


@contextmanager
def scheduler_with(
    cluster: Cluster, helm: Helm, namespace: str, values: Values, directory: Path
) -> Iterator[Component]:
    """A scheduler of a release `loadmaster` in a namespace; `directory` is for its files."""
    documents = load_documents(helm.render(values, "--skip-tests", namespace=namespace))
    grants = "---\n".join(json.dumps(each) + "\n" for each in documents if each["kind"] in GRANTS)
    config, plugins = directory / "config.json", directory / "plugins"
    config.write_text(json.dumps(configuration(documents)))
    plugins.mkdir()
    for name, text in plugin_files(documents).items():
        (plugins / name).write_text(text)
    cluster.kubectl("apply", "-f", "-", stdin=grants)
    try:
        with cluster.spawn("loadmaster", run(cluster, namespace, "loadmaster", config, plugins), is_ready) as process:
            yield process
    finally:
        cluster.kubectl("delete", "-f", "-", stdin=grants)


def run(cluster: Cluster, namespace: str, release: str, config: Path, plugins: Path | None = None) -> Any:
    """Return port → command line, with what the chart gives the container, of a scheduler of a release."""
    kubeconfig = cluster.service_account_kubeconfig(namespace, release)
    lease = [f"--leader-elect-resource-namespace={namespace}", f"--leader-elect-resource-name={release}"]
    files = [f"--config={config}", *([f"--plugin-dir={plugins}"] if plugins else [])]

    def argv(port: int) -> list[str]:
        return [sys.executable, "-m", "scheduler", "run", f"--kubeconfig={kubeconfig}", *files, *lease, *serving(port)]

    return argv
