import re
from pathlib import Path

import pytest
import yaml

from scheduler.kube.versions import NEWEST, OLDEST, minor_of
from tests.controlplane.build import KUBE_SCHEDULER, KUBEADM, KUBECTL, KUBELET, KUBERNETES, KWOK, MODULES, in_version
from tests.controlplane.toolchain import REQUIRED, BuildError
from tests.controlplane.versions import OWN, VERSIONS, chosen

ROOT = Path(__file__).parents[3]
FURTHER = [version for version in VERSIONS if version != OWN]


def test_the_default_is_our_own_version() -> None:
    assert chosen({}) == chosen({"LOADMASTER_KUBERNETES": ""}) == OWN
    assert in_version(KUBERNETES, OWN) is KUBERNETES
    assert KUBERNETES.version.startswith(f"v{OWN}.")


def test_a_version_that_is_not_built_is_refused_with_the_list() -> None:
    with pytest.raises(BuildError, match=re.escape("LOADMASTER_KUBERNETES=1.33 is none of: 1.34, 1.35, 1.36, 1.37")):
        chosen({"LOADMASTER_KUBERNETES": "1.33"})


@pytest.mark.parametrize("version", FURTHER)
def test_each_further_version_builds_the_same_programs_of_its_newest_patch(version: str) -> None:
    modules = [in_version(module, version) for module in (KUBERNETES, KUBECTL, KUBE_SCHEDULER, KUBELET, KUBEADM)]

    tools = {package for module in modules for package in module.binaries.values()}
    text = (modules[0].directory / "go.mod").read_text()
    assert {module.version.rpartition(".")[0] for module in modules} == {f"v{version}"}
    assert len({module.target for module in modules} | {KUBERNETES.target}) == len(modules) + 1
    assert set(re.findall(r"^\t(\S+/\S+)$", text, re.MULTILINE)) == tools


@pytest.mark.parametrize("version", VERSIONS)
def test_the_go_that_is_required_builds_each_version(version: str) -> None:
    text = (in_version(KUBERNETES, version).directory / "go.mod").read_text()

    go = re.search(r"^go (\d+)\.(\d+)", text, re.MULTILINE)
    assert go is not None
    assert (int(go[1]), int(go[2])) <= REQUIRED


@pytest.mark.parametrize("version", VERSIONS)
def test_every_module_of_kubernetes_is_of_the_same_release(version: str) -> None:
    kubernetes = in_version(KUBERNETES, version)
    text = (kubernetes.directory / "go.mod").read_text()

    replaced = dict(re.findall(r"^\t(k8s\.io/\S+) => k8s\.io/\S+ v0\.(\S+)$", text, re.MULTILINE))

    assert set(replaced.values()) == {kubernetes.version.removeprefix("v1.")}
    assert {"k8s.io/api", "k8s.io/apiserver", "k8s.io/client-go"} <= replaced.keys()


def test_kwok_is_built_from_the_packages_that_kubernetes_is_built_from() -> None:
    """Else each is compiled twice: a quarter of the CPU of the first `make demo`."""
    of_kubernetes, of_kwok = (required((module.directory / "go.mod").read_text()) for module in (KUBERNETES, KWOK))

    differing = {name for name in of_kwok.keys() & of_kubernetes.keys() if of_kwok[name] != of_kubernetes[name]}
    assert {name for name in differing if of_kubernetes[name] != "v0.0.0"} == set()


def required(go_mod: str) -> dict[str, str]:
    """Module → version, of the `require` lines."""
    return dict(re.findall(r"^\t(\S+) (v\S+)(?: // indirect)?$", go_mod.partition("\nexclude")[0], re.MULTILINE))


def test_what_is_not_of_kubernetes_has_one_version() -> None:
    others = [module for module in MODULES if module.name != KUBERNETES.name]

    assert [in_version(module, "1.34") for module in others] == others


def test_every_go_mod_belongs_to_a_version() -> None:
    found = {path.parent.name for path in KUBERNETES.directory.glob("*/go.mod")}

    assert found == set(FURTHER)


def test_the_chart_accepts_these_versions_and_no_older_one() -> None:
    chart = yaml.safe_load((ROOT / "charts" / "loadmaster" / "Chart.yaml").read_text())

    assert chart["kubeVersion"] == f">={VERSIONS[0]}.0-0"


def test_the_doctor_calls_these_versions_tested() -> None:
    assert (minor_of(VERSIONS[0]), minor_of(VERSIONS[-1])) == (OLDEST, NEWEST)
