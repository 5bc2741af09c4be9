"""Which binaries are taken; nothing is built."""

from pathlib import Path

import pytest

from tests.controlplane import build
from tests.controlplane.build import KUBERNETES, in_version
from tests.controlplane.versions import OWN


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(build, "build", lambda module: Path(module.target))


def test_an_api_server_of_another_version_has_the_kube_scheduler_that_we_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADMASTER_KUBERNETES", "1.34")

    found = build.find_binaries(["etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kube-scheduler"])

    older, own = (in_version(KUBERNETES, version).target for version in ("1.34", OWN))
    assert {name: path.parent.name for name, path in found.items()} == {
        "etcd": older,
        "kube-apiserver": older,
        "kube-controller-manager": older,
        "kubectl": older,
        "kube-scheduler": own,
    }
