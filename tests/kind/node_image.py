"""The image of the nodes: kindest/node where it can be pulled, otherwise the same made here.

It is made of a Debian system, of the files of kind's own base image, which kind's Go module has, and of programs from
Go modules. What takes long is kept in the cache directory; the finished image is kept by the engine.
"""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Final

from tests.controlplane.build import CNI_PLUGINS, CONTAINERD, COREDNS, CRICTL, KIND, LOCAL_PATH, build, cache_directory
from tests.controlplane.toolchain import find_go
from tests.image.debian import ImageError, kept_system, run
from tests.kind import archive, components
from tests.kind.engine import UNREACHABLE, Engine, EngineError
from tests.kind.kubernetes import Kubernetes

PULLED: Final = "docker.io/kindest/node"
MADE: Final = "localhost/loadmaster-kind-node"
PACKAGES: Final = (
    *("systemd", "runc", "conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod"),
    *("libseccomp2", "pigz", "e2fsprogs", "bash", "ca-certificates", "curl", "jq", "procps", "socat"),
)
"""Those of kind's base image, and runc; without network storage."""
HERE: Final = Path(__file__).parent
RECIPE: Final = (
    HERE / "node" / "Dockerfile",
    components.KINDNET_SCRIPT,
    Path(components.__file__),
    Path(archive.__file__),
    Path(__file__),
)
BUILD_SECONDS: Final = 900


def ensure(engine: Engine, kubernetes: Kubernetes) -> str:
    """Return the name of the image, pulled or made first if need be. Raises EngineError, ImageError and BuildError."""
    if pulled := pull(engine, kubernetes):
        return pulled
    if not kubernetes.modules:
        raise ImageError(f"{PULLED}:{kubernetes.version} cannot be pulled, and that patch release is not made here.")
    image = f"{MADE}:{kubernetes.version}-{fingerprint(kubernetes)}"
    if not engine.has(image):
        print(f"No registry has {PULLED}:{kubernetes.version} for us: it is made here.", file=sys.stderr)
        make(engine, kubernetes, image)
    return image


def pull(engine: Engine, kubernetes: Kubernetes) -> str | None:
    """The image that kind publishes for this version, or an older patch of it; None if there is none for us."""
    candidates = [f"{PULLED}:{tag}" for tag in kubernetes.candidates()]
    for image in candidates:
        if engine.has(image):
            return image
    for image in candidates if kubernetes.modules else candidates[:1]:
        try:
            engine.pull(image)
        except EngineError as error:
            if any(said in str(error) for said in UNREACHABLE):
                return None
        else:
            return image
    return None


def make(engine: Engine, kubernetes: Kubernetes, image: str) -> None:
    """Build the image by node/Dockerfile."""
    cache = cache_directory().with_name("kind")
    work = cache / "node"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    os.link(kept_system(cache, "system", PACKAGES, "minbase"), work / "system.tar")
    shutil.copy(HERE / "node" / "Dockerfile", work)
    lay_out(work / "files", kubernetes)
    archive.write(work / "images.tar", components.images(kubernetes, cache), work)
    for layer in work.glob("layer-*.tar"):
        layer.unlink()
    engine("build", f"--tag={image}", str(work), timeout=BUILD_SECONDS)
    shutil.rmtree(work)


def lay_out(root: Path, kubernetes: Kubernetes) -> None:
    """Put all that is not a Debian package below `root`, as it is on the node."""
    source = kind_source()
    shutil.copytree(source / "images" / "base" / "files", root, copy_function=shutil.copyfile)
    programs = {
        "usr/bin": [kubernetes.binary(name) for name in ("kubeadm", "kubelet", "kubectl")],
        "usr/local/bin": [*build(CONTAINERD).iterdir(), *build(CRICTL).iterdir(), root / "usr/local/bin/entrypoint"],
        "opt/cni/bin": [*build(CNI_PLUGINS).iterdir()],
        "kind/bin": [*(root / "kind/bin").iterdir()],
    }
    for directory, files in programs.items():
        (root / directory).mkdir(parents=True, exist_ok=True)
        for file in files:
            target = root / directory / file.name
            if target != file:
                shutil.copyfile(file, target)
            target.chmod(0o755)
    (root / "kind" / "version").write_text(kubernetes.version)
    (root / "kind" / "manifests").mkdir()
    for name, text in components.manifests(source).items():
        (root / "kind" / "manifests" / name).write_text(text)


def kind_source() -> Path:
    """The directory of kind's Go module."""
    go = str(find_go(cache_directory()))
    told = run([go, "mod", "download", "-json", KIND.version_of], {"GOWORK": "off"}, KIND.directory)
    return Path(json.loads(told)["Dir"])


def fingerprint(kubernetes: Kubernetes) -> str:
    """Of all that the image depends on: it is made anew when one of that changes."""
    modules = (*kubernetes.modules, KIND, CONTAINERD, CRICTL, CNI_PLUGINS, COREDNS, LOCAL_PATH)
    digest = hashlib.sha256()
    for path in (*(module.directory / "go.sum" for module in modules), *RECIPE):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]
