"""`kubectl loadmaster`: the command as a plugin of kubectl, which finds it by its name."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.kind.cluster import KindCluster

SECONDS: Final = 60.0


def command(cluster: KindCluster, *arguments: str) -> list[str]:
    return [str(cluster.kubectl_binary), "loadmaster", *arguments]


def environment(cluster: KindCluster) -> dict[str, str]:
    """That of a user whose kubectl finds the plugin."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return os.environ | {"PATH": path, "KUBECONFIG": str(cluster.kubeconfig())}


def kubectl_loadmaster(cluster: KindCluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        command(cluster, *arguments),
        capture_output=True,
        text=True,
        env=environment(cluster),
        timeout=SECONDS,
        check=False,
    )
