"""What each page presumes, and what its placeholders stand for."""

from typing import Final

from tests.docs.pages import ROOT
from tests.docs.stage import Need

PLACEHOLDERS: Final = {
    "<this repository>": str(ROOT),
    "https://github.com/loadmaster/loadmaster.git": str(ROOT),
    "REGISTRY/": "registry.example/",
}
"""What a reader replaces by names of their own."""

WORKLOAD: Final = """
kubectl apply -f deployment.yaml -f pod.yaml
kubectl wait --for=condition=Available --timeout=60s deployment/web
"""

NEEDS: Final = {
    "README.md": Need(installed=False, repository=False),
    "CONTRIBUTING.md": Need(cluster=False),
    "docs/chart.md": Need(installed=False),
    "docs/plugins.md": Need(cluster=False),
}
