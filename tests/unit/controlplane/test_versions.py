import re
from pathlib import Path

import pytest
import yaml

from scheduler.kube.versions import NEWEST, OLDEST, minor_of
from tests.controlplane.build import KUBERNETES, in_version
from tests.controlplane.versions import VERSIONS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_module_of_kubernetes_is_of_the_same_release(version: str) -> None:
    kubernetes = in_version(KUBERNETES, version)
    text = (kubernetes.directory / "go.mod").read_text()

    replaced = dict(re.findall(r"^\t(k8s\.io/\S+) => k8s\.io/\S+ v0\.(\S+)$", text, re.MULTILINE))

    assert set(replaced.values()) == {kubernetes.version.removeprefix("v1.")}
    assert {"k8s.io/api", "k8s.io/apiserver", "k8s.io/client-go"} <= replaced.keys()


def test_the_chart_accepts_these_versions_and_no_older_one() -> None:
    chart = yaml.safe_load((ROOT / "charts" / "loadmaster" / "Chart.yaml").read_text())

    assert chart["kubeVersion"] == f">={VERSIONS[0]}.0-0"


def test_the_doctor_calls_these_versions_tested() -> None:
    assert (minor_of(VERSIONS[0]), minor_of(VERSIONS[-1])) == (OLDEST, NEWEST)
