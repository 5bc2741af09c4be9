"""`build/demo`, while the demo stays: what leads to the cluster, and what the scheduler goes by, for you to change."""

import shutil
import sys
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "build" / "demo"

CONFIG: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: loadmaster
"""


def lay_out(folder: Path, kubeconfig: Path, kubectl: Path) -> list[str]:
    """Begin the folder anew, and return the options with which the scheduler goes by what is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    plugins, config = folder / "plugins", folder / "config.yaml"
    plugins.mkdir(parents=True)
    config.write_text(CONFIG)
    ours = Path(sys.executable).parent / "loadmaster"
    for name, target in (("kubeconfig", kubeconfig), ("kubectl", kubectl), ("loadmaster", ours)):
        (folder / name).symlink_to(target)
    return [f"--config={config}", f"--plugin-dir={plugins}"]
