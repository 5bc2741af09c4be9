"""Write what is made from the chart, and what the chart is made from: `make manifest`.

deploy/loadmaster.yaml is the chart with its default values in kube-system, for people without Helm: what only makes
sense under Helm is left out, and its order is for readers.
"""

import re
import sys
import tempfile
from pathlib import Path
from typing import Final

import yaml

from tests.chart import config_schema, permissions, tables
from tests.chart.helm import CHART, Helm, HelmError
from tests.controlplane.toolchain import BuildError

MANIFEST: Final = Path(__file__).parents[2] / "deploy" / "loadmaster.yaml"
KIND: Final = MANIFEST.parent / "kind.yaml"
KIND_NODES: Final = (("control-plane", "a"), ("worker", "b"), ("worker", "c"))
KIND_HEAD: Final = """\
# Three nodes in three zones, for kind (https://kind.sigs.k8s.io). `make manifest` writes this file.
#
#   docker build -t loadmaster:{version} .
#   kind create cluster --config deploy/kind.yaml
#   kind load docker-image loadmaster:{version} --name loadmaster
#   helm install loadmaster charts/loadmaster --namespace kube-system --wait
#   helm test loadmaster --namespace kube-system
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
name: loadmaster
nodes:
"""
KIND_END: Final = """\
# The control plane's node takes pods as the others do.
kubeadmConfigPatches:
  - |
    kind: InitConfiguration
    nodeRegistration:
      taints: []
"""
ORDER: Final = (
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ConfigMap",
    "Service",
    "PodDisruptionBudget",
    "Deployment",
)
HEADER: Final = """\
# Loadmaster in kube-system without Helm: `make manifest` renders this file from charts/loadmaster.
# Set `image` in the Deployment to where yours is.
"""
LEFT_OUT: Final = re.compile(
    r"""
    ^\#\ Source:.*\n
    | ^\ +(?:helm\.sh/chart|app\.kubernetes\.io/managed-by):.*\n
    | ^\ +annotations:\n\ +checksum/config:.*\n   # nobody keeps it up to date when the file is edited
    """,
    re.MULTILINE | re.VERBOSE,
)


def rendered(helm: Helm) -> str:
    """The text of deploy/loadmaster.yaml. Raises HelmError."""
    return plain(helm.render(None, "--skip-tests"))


def plain(text: str) -> str:
    """What `helm template` wrote, in `ORDER`, without what only makes sense under Helm.

    Raises ValueError for a kind that is not in `ORDER`.
    """
    documents = [LEFT_OUT.sub("", each) for each in re.split(r"^---\n", text, flags=re.MULTILINE) if each.strip()]
    return HEADER + "---\n".join(sorted(documents, key=place))


def place(document: str) -> int:
    """Where in `ORDER` a document comes. Raises ValueError if nowhere."""
    kinds = re.findall(r"^kind: (\w+)$", document, re.MULTILINE)
    if len(kinds) != 1 or kinds[0] not in ORDER:
        raise ValueError(f"no place in {ORDER} for a document of kind {kinds}")
    return ORDER.index(kinds[0])


def write_parts() -> None:
    """Write what is made from the code and from the chart's files."""
    permissions.FILE.write_text(permissions.file_text())
    config_schema.FILE.write_text(config_schema.schema_text(config_schema.FILE.read_text()))
    permissions.PAGE.write_text(permissions.page_text(permissions.PAGE.read_text()))
    for page, text in tables.parts().items():
        page.write_text(tables.with_part(page.read_text(), text))
    KIND.write_text(kind_text())


def kind_text() -> str:
    """Return the configuration of a kind cluster: a node in each of three zones, all of which take pods."""
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    nodes = "".join(
        f"  - role: {role}\n    labels:\n      topology.kubernetes.io/zone: zone-{zone}\n" for role, zone in KIND_NODES
    )
    return KIND_HEAD.format(version=version) + nodes + KIND_END


def main() -> int:
    """Write all of it. Returns 0, or 2 for an error, told on stderr."""
    write_parts()
    with tempfile.TemporaryDirectory(prefix="loadmaster-helm-") as home:
        try:
            MANIFEST.write_text(rendered(Helm(Path(home))))
        except (BuildError, HelmError) as error:
            print(error, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
