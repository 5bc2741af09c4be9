"""Build the binaries of a Kubernetes control plane, once, into the user's cache directory.

There is no Docker in it and no download of binaries: the Go toolchain builds what the go.mod files beside this
one name in their `tool` lines, from modules whose sums are in the go.sum files. The first build takes about 7 minutes
on two cores and several GB of disk, most of it in Go's own caches; every later one finds the binaries.

    ~/.cache/loadmaster/controlplane/kubernetes-v1.37.2/{etcd,kube-apiserver,kube-controller-manager}
    ~/.cache/loadmaster/controlplane/kube-scheduler-v1.37.2/kube-scheduler
    ~/.cache/loadmaster/controlplane/kubectl-v1.37.2/kubectl
    ~/.cache/loadmaster/controlplane/kubernetes-v1.34.4/... with LOADMASTER_KUBERNETES=1.34, see versions.py
    ~/.cache/loadmaster/controlplane/kwok-v0.8.0/kwok
    ~/.cache/loadmaster/controlplane/helm-v3.22.0/helm
    ~/.cache/loadmaster/controlplane/kubelet-v1.37.2/kubelet       for tests/kind only
    ~/.cache/loadmaster/controlplane/e2e-v1.37.2/{e2e.test,agnhost}        for tests/kind only, as are those below
    ~/.cache/loadmaster/controlplane/kind-v0.33.0/kind
    ~/.cache/loadmaster/controlplane/{kubeadm,containerd,cni-plugins,crictl,coredns,local-path-provisioner}-*/

`KUBEBUILDER_ASSETS`, a directory, wins for each binary that it has.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.controlplane import versions
from tests.controlplane.toolchain import BuildError, find_go

HERE: Final = Path(__file__).parent
LOG_TAIL: Final = 20
"""Lines of the log in an error."""
LESS_COLLECTION: Final = {"GOGC": "400", "GOMEMLIMIT": "2GiB"}
"""For compilers, which live for seconds: collecting garbage was a fifth of their CPU."""

DISK_FULL: Final = 50_000_000
"""Bytes left on a disk that a build could not go on with."""


def kubernetes_stamp(version: str) -> dict[str, str]:
    """As Kubernetes' own build does it.

    Without it the API server calls itself v0.0.0-master, and clients that look at the version go astray.
    """
    major, minor = version.removeprefix("v").split(".")[:2]
    stamp = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "unknown",  # a module has no commit
        "gitTreeState": "archive",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return {f"{package}.{name}": value for package in packages for name, value in stamp.items()}


def helm_stamp(version: str) -> dict[str, str]:
    """Helm's own version, and the Kubernetes for which it renders when it asks no API server: the control plane's.

    Without it helm renders and lints for Kubernetes v1.20.
    """
    major, minor = KUBERNETES.version.removeprefix("v").split(".")[:2]
    packages = ("helm.sh/helm/v3/pkg/chartutil", "helm.sh/helm/v3/pkg/lint/rules")
    kubernetes = {"k8sVersionMajor": major, "k8sVersionMinor": minor}
    return {
        "helm.sh/helm/v3/internal/version.version": version,
        **{f"{package}.{name}": value for package in packages for name, value in kubernetes.items()},
    }


def no_stamp(version: str) -> dict[str, str]:
    """Of programs whose version is in their source, or that nobody asks for it."""
    return {}


def containerd_stamp(version: str) -> dict[str, str]:
    """The kubelet reports it as the node's container runtime."""
    return {"github.com/containerd/containerd/v2/version.Version": version}


def crictl_stamp(version: str) -> dict[str, str]:
    return {"sigs.k8s.io/cri-tools/pkg/version.Version": version.removeprefix("v")}


@dataclass(frozen=True, slots=True)
class Module:
    """One go.mod and the binaries that come out of it."""

    name: str
    version_of: str
    """The required module whose version is the version of the binaries."""
    binaries: dict[str, str]
    """Name of the binary to package."""
    title: str = ""
    """What its directory in the cache is called; by default the last element of `version_of`."""
    stamp: Callable[[str], dict[str, str]] = kubernetes_stamp
    """From the version, the Go variables by which the binaries know it."""

    @property
    def target(self) -> str:
        """The name of its directory in the cache."""
        return f"{self.title or self.version_of.rpartition('/')[2]}-{self.version}"

    @property
    def directory(self) -> Path:
        """Where its go.mod is."""
        return HERE / self.name

    @property
    def version(self) -> str:
        """The version in its go.mod, such as `v1.37.2`."""
        return required_version((self.directory / "go.mod").read_text(), self.version_of)


KUBERNETES: Final = Module(
    name="k8s",
    version_of="k8s.io/kubernetes",
    binaries={
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    },
)
KUBECTL: Final = Module(
    name="k8s",
    version_of="k8s.io/kubernetes",
    binaries={"kubectl": "k8s.io/kubernetes/cmd/kubectl"},
    title="kubectl",  # by itself, as a demo that does not stay needs none
)
KUBE_SCHEDULER: Final = Module(
    name="k8s",
    version_of="k8s.io/kubernetes",
    binaries={"kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler"},
    title="kube-scheduler",  # by itself, as it is only there to compare with
)
KUBELET: Final = Module(
    name="k8s",
    version_of="k8s.io/kubernetes",
    binaries={"kubelet": "k8s.io/kubernetes/cmd/kubelet"},
    title="kubelet",  # by itself, as only the tests on kind need it
)
KWOK: Final = Module(name="kwok", version_of="sigs.k8s.io/kwok", binaries={"kwok": "sigs.k8s.io/kwok/cmd/kwok"})
HELM: Final = Module(
    name="helm",
    version_of="helm.sh/helm/v3",
    binaries={"helm": "helm.sh/helm/v3/cmd/helm"},
    title="helm",
    stamp=helm_stamp,
)
E2E: Final = Module(
    name="e2e",
    version_of="k8s.io/kubernetes",
    binaries={
        "e2e.test": "loadmaster/tests/controlplane/e2e",
        "agnhost": "k8s.io/kubernetes/test/images/agnhost",
    },
    title="e2e",
)
"""Kubernetes' own specs of [sig-scheduling], and the program that its test images consist of."""
KUBEADM: Final = Module(
    name="k8s",
    version_of="k8s.io/kubernetes",
    binaries={"kubeadm": "k8s.io/kubernetes/cmd/kubeadm", "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy"},
    title="kubeadm",  # by itself, as only kind clusters need it
)
KIND: Final = Module(name="kind", version_of="sigs.k8s.io/kind", binaries={"kind": "sigs.k8s.io/kind"}, stamp=no_stamp)
CONTAINERD: Final = Module(
    name="node/containerd",
    version_of="github.com/containerd/containerd/v2",
    binaries={
        name: f"github.com/containerd/containerd/v2/cmd/{name}"
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    },
    title="containerd",
    stamp=containerd_stamp,
)
CNI_PLUGINS: Final = Module(
    name="node/cni",
    version_of="github.com/containernetworking/plugins",
    binaries={
        path.rpartition("/")[2]: f"github.com/containernetworking/plugins/plugins/{path}"
        for path in ("main/ptp", "main/loopback", "ipam/host-local", "meta/portmap")
    },
    title="cni-plugins",
    stamp=no_stamp,
)
CRICTL: Final = Module(
    name="node/crictl",
    version_of="sigs.k8s.io/cri-tools",
    binaries={"crictl": "sigs.k8s.io/cri-tools/cmd/crictl"},
    title="crictl",
    stamp=crictl_stamp,
)
COREDNS: Final = Module(
    name="node/coredns",
    version_of="github.com/coredns/coredns",
    binaries={"coredns": "github.com/coredns/coredns"},
    stamp=no_stamp,
)
LOCAL_PATH: Final = Module(
    name="node/local-path",
    version_of="github.com/rancher/local-path-provisioner",
    binaries={"local-path-provisioner": "github.com/rancher/local-path-provisioner"},
    stamp=no_stamp,
)
MODULES: Final = (KUBERNETES, KUBECTL, KUBE_SCHEDULER, KWOK, HELM, KUBELET, KUBEADM, KIND, E2E)
BINARIES: Final = tuple(name for module in MODULES[:5] for name in module.binaries)
"""Those of a control plane, and helm."""

COMPARED: Final = "kube-scheduler"
"""Of our own version on every API server: it is the one whose decisions Loadmaster's are compared with."""


def find_binaries(names: Iterable[str]) -> dict[str, Path]:
    """Return the path of each binary named, built first if need be. Raises BuildError."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    found = {}
    for name in names:
        given = Path(assets, name) if assets else None
        if given and given.is_file():
            found[name] = given.absolute()
        else:
            module = next(module for module in MODULES if name in module.binaries)
            version = versions.OWN if name == COMPARED else versions.chosen(os.environ)
            found[name] = build(in_version(module, version)) / name
    return found


def in_version(module: Module, kubernetes: str) -> Module:
    """The module with the same programs of another version of Kubernetes, such as "1.34"; itself if it has none."""
    is_own = kubernetes == versions.OWN or module.name != KUBERNETES.name
    return module if is_own else replace(module, name=f"{module.name}/{kubernetes}")


def cache_directory() -> Path:
    """Everything that outlives a run: toolchain, binaries, build logs."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "loadmaster" / "controlplane"


def build(module: Module) -> Path:
    """Return the directory with the binaries of `module`, built first if need be.

    A directory that exists is complete: it is renamed into place as the last step. A second process waits for the
    first. Raises BuildError.
    """
    cache = cache_directory()
    target = cache / module.target
    if target.is_dir():
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with lock(target.with_name(target.name + ".lock")):
            if not target.is_dir():  # the process that we waited for may have built it
                partial = target.with_name(target.name + ".partial")
                shutil.rmtree(partial, ignore_errors=True)  # of a build that was killed
                try:
                    run_build(module, find_go(cache), partial, log=target.with_name(target.name + ".log"))
                    partial.rename(target)
                finally:
                    shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise BuildError(f"Building {target.name} failed: {error}") from error
    return target


def run_build(module: Module, go: Path, output: Path, log: Path) -> None:
    """Run `go build` into `output`, showing progress. Raises BuildError with the tail of `log`."""
    command = [
        str(go),
        "build",
        "-v",  # a line for each package compiled: the progress
        "-mod=readonly",
        "-trimpath",
        "-gcflags=all=-dwarf=false",  # what the linker would strip
        f"-ldflags={ldflags(module)}",
        f"-o={output}{os.sep}",
        *module.binaries.values(),
    ]
    # GOTOOLCHAIN: no other toolchain is to be downloaded. GOWORK: no workspace of the user's joins in.
    env = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", **LESS_COLLECTION}
    with log.open("wb") as stream:
        process = subprocess.Popen(command, cwd=module.directory, env=env, stdout=stream, stderr=stream)
    try:
        show_progress(process, f"Building {output.stem}", log)
    finally:
        if process.poll() is None:  # Ctrl-C
            process.terminate()
            process.wait()
    if process.returncode != 0:
        raise BuildError(f"go build of {module.directory} failed with code {process.returncode}:\n{reason(log)}")
    for binary, package in module.binaries.items():
        built = output / default_binary_name(package)
        if built.name != binary:
            built.rename(output / binary)


def reason(log: Path) -> str:
    """Why a build failed, as far as can be seen: the end of its log, and whether the disk is full."""
    lines = log.read_text(errors="replace").splitlines()[-LOG_TAIL:]
    if shutil.disk_usage(log.parent).free < DISK_FULL:  # then the log could not be written to its end either
        lines.append(f"The disk of {log.parent} is full; the build needs several GB, most of it in Go's caches.")
    return "\n".join((*lines, f"All of it: {log}"))


def show_progress(process: subprocess.Popen[bytes], title: str, log: Path) -> None:
    """Print how far the build is, until it ends: a live line on a terminal, else a line every 15 seconds."""
    live = sys.stderr.isatty()
    interval = 0.5 if live else 15.0
    started = time.monotonic()
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(interval)
        line = f"{title}: {time.monotonic() - started:.0f} s, {progress(log.read_text(errors='replace'))}"
        done = process.returncode is not None
        if live:
            columns = shutil.get_terminal_size().columns
            print(f"\r{line[: columns - 1]:<{columns - 1}}", end="\n" if done else "", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)
        if done:
            return


def progress(log: str) -> str:
    """What a log of `go build -v` says about how far it is.

    >>> progress("go: downloading k8s.io/api v0.36.3\\nk8s.io/api/core/v1\\n")
    '1 modules downloaded, 1 packages compiled, last k8s.io/api/core/v1'
    """
    lines = log.splitlines()
    downloads = sum(line.startswith("go: downloading ") for line in lines)
    packages = [line for line in lines if re.fullmatch(r"[\w.~/-]+", line)]
    parts = [f"{downloads} modules downloaded"] if downloads else []
    parts.append(f"{len(packages)} packages compiled")
    if packages:
        parts.append(f"last {packages[-1]}")
    return ", ".join(parts)


def ldflags(module: Module) -> str:
    """Flags that strip the binaries and tell them their version."""
    return " ".join(("-s", "-w", *(f"-X {name}={value}" for name, value in module.stamp(module.version).items())))


def required_version(go_mod: str, module: str) -> str:
    """The version of `module` in the text of a go.mod. Raises BuildError if it is not there."""
    match = re.search(rf"^(?:require)?\s+{re.escape(module)} (v\S+)", go_mod, re.MULTILINE)
    if not match:
        raise BuildError(f"go.mod does not require {module}")
    return match[1]


def default_binary_name(package: str) -> str:
    """The name that `go build` gives a package's binary: its last element that is not a major version.

    >>> default_binary_name("go.etcd.io/etcd/server/v3")
    'server'
    """
    return next(part for part in reversed(package.split("/")) if not re.fullmatch(r"v\d+", part))


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold `path` locked; wait for another process that holds it. The kernel unlocks it when its holder ends."""
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Another process is building {path.stem}: waiting for it", file=sys.stderr, flush=True)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
