from pathlib import Path

import pytest

from tests.controlplane.build import (
    HELM,
    KUBERNETES,
    MODULES,
    Module,
    cache_directory,
    default_binary_name,
    find_binaries,
    ldflags,
    progress,
    required_version,
)
from tests.controlplane.toolchain import BuildError, new_enough, parse_go_version


@pytest.mark.parametrize(
    ("output", "version", "enough"),
    [
        pytest.param("go version go1.26.8 linux/amd64", (1, 26, 8), True, id="a patch release"),
        pytest.param("go version go1.26 linux/amd64", (1, 26), True, id="no patch"),
        pytest.param("go version go1.27rc1 linux/arm64", (1, 27), True, id="a release candidate"),
        pytest.param("go version go1.25.9 linux/amd64", (1, 25, 9), False, id="too old"),
        pytest.param("go version go2.0.1 linux/amd64", (2, 0, 1), True, id="a major release"),
        pytest.param("go version devel go1.28-0f1e2d linux/amd64", (1, 28), True, id="a development version"),
        pytest.param("gccgo (GCC) 14.2.0", None, False, id="another compiler"),
        pytest.param("", None, False, id="nothing"),
    ],
)
def test_a_go_version_is_understood(output: str, version: tuple[int, ...] | None, enough: bool) -> None:
    assert parse_go_version(output) == version
    assert new_enough(version) is enough


def test_versions_come_from_go_mod() -> None:
    go_mod = "module x\n\nrequire (\n\tk8s.io/kubernetes v1.36.3 // indirect\n\tk8s.io/kubernetes-more v9.9.9\n)\n"

    assert required_version(go_mod, "k8s.io/kubernetes") == "v1.36.3"
    with pytest.raises(BuildError, match=r"does not require k8s\.io/other"):
        required_version(go_mod, "k8s.io/other")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_every_binary_is_a_tool_of_its_go_mod(module: Module) -> None:
    go_mod = (module.directory / "go.mod").read_text()

    assert module.version.startswith("v")
    assert [package for package in module.binaries.values() if package not in go_mod] == []


def test_etcd_comes_out_of_go_build_under_another_name() -> None:
    assert default_binary_name(KUBERNETES.binaries["etcd"]) == "server"
    assert default_binary_name(KUBERNETES.binaries["kubectl"]) == "kubectl"


def test_binaries_are_stamped_with_their_version() -> None:
    flags = ldflags(KUBERNETES)

    assert flags.startswith("-s -w ")
    assert f"-X k8s.io/component-base/version.gitVersion={KUBERNETES.version}" in flags
    assert f"-X k8s.io/component-base/version.gitMinor={KUBERNETES.version.split('.')[1]}" in flags


def test_helm_renders_for_the_kubernetes_of_the_control_plane() -> None:
    minor = KUBERNETES.version.split(".")[1]

    flags = ldflags(HELM)

    assert f"-X helm.sh/helm/v3/internal/version.version={HELM.version}" in flags
    assert f"-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor={minor}" in flags
    assert f"-X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor={minor}" in flags


def test_progress_counts_modules_and_packages() -> None:
    log = "go: downloading k8s.io/api v0.36.3\nk8s.io/api/core/v1\ninternal/cpu\n# k8s.io/x\n./x.go:1:2: oops\n"

    assert progress("") == "0 packages compiled"
    assert progress(log) == "1 modules downloaded, 2 packages compiled, last internal/cpu"


def test_binaries_of_kubebuilder_assets_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etcd").touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    assert find_binaries(["etcd"]) == {"etcd": tmp_path / "etcd"}


def test_a_binary_missing_in_kubebuilder_assets_comes_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = cache_directory() / f"kubernetes-{KUBERNETES.version}"
    built.mkdir(parents=True)

    assert find_binaries(["kube-scheduler"]) == {"kube-scheduler": built / "kube-scheduler"}
