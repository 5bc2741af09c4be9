"""Write what is made from the chart, and what the chart is made from: `make manifest`.

deploy/loadmaster.yaml is the chart with its default values in kube-system, for people without Helm: what only makes
sense under Helm is left out, and its order is for readers.
"""

import re
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.chart.helm import Helm, HelmError
from tests.chart.permissions import FILE, PAGE, file_text, page_text
from tests.controlplane.toolchain import BuildError

MANIFEST: Final = Path(__file__).parents[2] / "deploy" / "loadmaster.yaml"
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


def main() -> int:
    """Write the manifest. Returns 0, or 2 for an error, told on stderr."""
    FILE.write_text(file_text())
    PAGE.write_text(page_text(PAGE.read_text()))
    with tempfile.TemporaryDirectory(prefix="loadmaster-helm-") as home:
        try:
            MANIFEST.write_text(rendered(Helm(Path(home))))
        except (BuildError, HelmError) as error:
            print(error, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
