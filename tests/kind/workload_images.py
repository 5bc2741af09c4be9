"""Images of test workloads on the nodes: agnhost, pulled or made of its one program, and another name of pause."""

import tarfile
from typing import Final

from tests.controlplane.build import find_binaries
from tests.kind.cluster import NODES, PAUSE, KindCluster, directory
from tests.kind.engine import EngineError

AGNHOST: Final = "registry.k8s.io/e2e-test-images/agnhost:2.66.1"
"""Kubernetes' own image of test programs, such as `pause` and `netexec`: the one that the specs of 1.37.2 name."""
PAUSE_OF_SPECS: Final = "registry.k8s.io/pause:3.10.2"


def load(cluster: KindCluster) -> None:
    """Have the nodes know the images that tests and specs name. Raises BuildError or EngineError."""
    if not cluster.engine.has(AGNHOST):
        try:
            cluster.engine.pull(AGNHOST)
        except EngineError:
            make_agnhost(cluster)
    cluster.load(AGNHOST)
    for node in NODES:
        name_image(cluster, node, PAUSE, PAUSE_OF_SPECS)


def make_agnhost(cluster: KindCluster) -> None:
    """Make the image, which is a file and an entrypoint."""
    archive = directory() / "agnhost.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(find_binaries(["agnhost"])["agnhost"], "agnhost")
    cluster.engine("import", "--change", 'ENTRYPOINT ["/agnhost"]', str(archive), AGNHOST)
    archive.unlink()


def name_image(cluster: KindCluster, node: str, image: str, name: str) -> None:
    """Give an image of a node a second name."""
    cluster.engine("exec", node, "ctr", "--namespace=k8s.io", "images", "tag", "--force", image, name)
