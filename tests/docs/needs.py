"""What each page presumes, and what its placeholders stand for."""

from typing import Final

from tests.chart.earlier import release_before
from tests.docs.pages import ROOT, blocks
from tests.docs.stage import Need


def first_yaml(page: str) -> str:
    return next(block.text for block in blocks(ROOT / page) if block.language == "yaml")


PLACEHOLDERS: Final = {
    "<this repository>": str(ROOT),
    "https://github.com/loadmaster/loadmaster.git": str(ROOT),
    "REGISTRY/": "registry.example/",
}
"""What a reader replaces by names of their own."""

SMALL: Final = {"cpu": "4", "memory": "400Mi"}
"""Of a node without room for Loadmaster's own pods."""

PENDING: Final = (
    {"name": "node-1", **SMALL},
    {"name": "node-2", **SMALL},
    {"name": "node-3", **SMALL, "taints": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]},
    {"name": "node-4", **SMALL},
    {"name": "z", "taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]},
)
"""The nodes of the README's pod that is pending."""

CLUSTER_FILE: Final = "kubectl get -A -o json nodes,pods,namespaces,deployments,replicasets > cluster.json\n"

SHOP: Final = """
kubectl create namespace shop
kubectl -n shop apply -f deployment.yaml
kubectl -n shop wait --for=condition=Available --timeout=60s deployment/web
"""

TOPOLOGIES: Final = """
python -c 'import json; import tests.controlplane.definitions as it; print(json.dumps(it.NODE_RESOURCE_TOPOLOGY))' \\
    > topologies.json
kubectl apply -f topologies.json
kubectl wait --for=condition=Established --timeout=30s -f topologies.json
"""

PROMETHEUS: Final = """
kubectl create namespace monitoring
kubectl -n monitoring create serviceaccount prometheus
"""

RELEASE_BEFORE: Final = f"""
helm install loadmaster {release_before().chart.relative_to(ROOT)} --namespace kube-system
echo 'replicas: 2' > values.yaml
"""

RACKS: Final = tuple(
    {
        "name": f"node-{n}",
        "cpu": "4",
        "labels": {"example.com/rack": "west" if n > 5 else "east"},
        "resources": {"nvidia.com/gpu": "2"},
    }
    for n in range(1, 11)
)
"""The nodes of the page of how-tos."""

DEFINITIONS_OF_GROUPS: Final = """
python -m tests.docs.definitions | kubectl apply -f -
kubectl wait --for=condition=Established --timeout=30s crd --all
"""

NEEDS: Final = {
    "README.md": Need(installed=False, repository=False, nodes=PENDING, before="kubectl apply -f pending.yaml"),
    "CONTRIBUTING.md": Need(cluster=False),
    "docs/chart.md": Need(installed=False),
    "docs/how-to.md": Need(
        installed=False, nodes=RACKS, values=first_yaml("docs/how-to.md"), before=DEFINITIONS_OF_GROUPS
    ),
    "docs/image.md": Need(cluster=False),
    "docs/operations/install.md": Need(installed=False),
    "docs/operations/port.md": Need(before=PROMETHEUS),
    "docs/upgrading.md": Need(installed=False, before=RELEASE_BEFORE),
    "docs/plugins.md": Need(cluster=False, before="cp docs/examples/gpu_guard.py ."),
    "docs/plugins/node-resource-topology.md": Need(before=TOPOLOGIES),
    "docs/plugins/recipes.md": Need(cluster=False, before="mkdir empty; cd empty; cp ../docs/examples/*partners.py ."),
    "docs/simulate.md": Need(before=SHOP + CLUSTER_FILE),
}
