"""The images that the node runs: Loadmaster's from the Dockerfile, and `pause`, which every pod has.

They are built by buildah, which needs no daemon, and kept as archives in the cache. Where the registry of the base
image cannot be reached, a stand-in takes its name: Debian's minimal system and a Python.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.controlplane.build import KUBERNETES, cache_directory
from tests.controlplane.toolchain import find_go

ROOT: Final = Path(__file__).parents[2]
BASE: Final = "docker.io/library/python:3.12-slim"
"""What the Dockerfile calls `python:3.12-slim`."""
LOADMASTER: Final = "docker.io/library/loadmaster:0.2.0"
"""What the manifest and the chart name `loadmaster:0.2.0`."""
PAUSE: Final = "localhost/pause:1"

DEBIAN: Final = "bookworm"
BASE_PACKAGES: Final = ("ca-certificates", "netbase", "tzdata")
PYTHON_LIBRARIES: Final = (
    *("libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libncursesw6", "libreadline8", "libsqlite3-0", "libssl3"),
    *("libuuid1", "zlib1g"),
)
"""What a Python that was built on this machine links with."""

CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")


class ImageError(Exception):
    """An image cannot be built here. The text has the end of what was said."""


@dataclass(frozen=True, slots=True)
class Images:
    """Archives that `ctr images import` takes."""

    directory: Path

    @property
    def loadmaster(self) -> Path:
        return self.directory / "loadmaster.tar"

    @property
    def pause(self) -> Path:
        return self.directory / "pause.tar"


def build_images() -> Images:
    """Build what is not there yet; Loadmaster's own image always. Raises ImageError, or BuildError without Go."""
    cache = cache_directory().with_name("realnode")
    cache.mkdir(parents=True, exist_ok=True)
    images, buildah = Images(cache), Buildah(cache)
    if not images.pause.exists():
        build_pause(buildah, cache, images.pause)
    if not buildah.has(BASE):
        make_base(buildah, cache)
    build_loadmaster(buildah, cache)
    buildah.save(LOADMASTER, images.loadmaster)
    return images


class Buildah:
    """buildah with a storage of its own, so that the user's images are not touched."""

    def __init__(self, cache: Path) -> None:
        self._command = ["buildah", f"--root={cache}/storage", f"--runroot={cache}/storage.run"]

    def __call__(self, *arguments: str) -> str:
        """Run a command of buildah; return what it prints. Raises ImageError."""
        # runc, as crun refuses machines with both versions of cgroups.
        return run([*self._command, *arguments], {"BUILDAH_ISOLATION": "oci", "BUILDAH_RUNTIME": "runc"})

    def has(self, image: str) -> bool:
        return any(line == image for line in self("images", "--format={{.Name}}:{{.Tag}}").splitlines())

    def save(self, image: str, archive: Path) -> None:
        """Write an image into an archive with the image's name in it."""
        archive.unlink(missing_ok=True)  # it would not be overwritten
        self("push", "--quiet", image, f"docker-archive:{archive}:{image}")


def build_loadmaster(buildah: Buildah, cache: Path) -> None:
    """Build the Dockerfile. pip uses this machine's certificates, as a proxy here may need them."""
    pip = cache / "pip.conf"
    pip.write_text(f"[global]\ncert = {CERTIFICATES}\n")
    # Volumes of the build are in no layer.
    volumes = [f"--volume={pip}:/etc/pip.conf:ro", f"--volume={CERTIFICATES}:{CERTIFICATES}:ro"]
    build = ["build", "--layers", "--pull-never", "--network=host", *volumes]
    buildah(*build, f"--tag={LOADMASTER}", str(ROOT))


def make_base(buildah: Buildah, cache: Path) -> None:
    """Pull the base image, or make the stand-in."""
    try:
        buildah("pull", "--quiet", BASE)
    except ImageError:
        print(f"No registry has {BASE} for us: a stand-in is made of Debian's packages.", file=sys.stderr)
        make_stand_in(buildah, cache)


def make_stand_in(buildah: Buildah, cache: Path) -> None:
    """Debian's minimal system, with a Python 3.12 of this machine if there is one, else with Debian's."""
    work = cache / "base"
    shutil.rmtree(work, ignore_errors=True)
    python = work / "python" / "usr" / "local"
    python.mkdir(parents=True)
    if built := built_python():
        packages = [*BASE_PACKAGES, *PYTHON_LIBRARIES]
        copy_python(built, python)
    else:
        packages = [*BASE_PACKAGES, "python3", "python3-venv"]
        (python / "bin").mkdir()
        (python / "bin" / "python").symlink_to("/usr/bin/python3")
    mirror = run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]).split()[0]
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")]
    system = work / "system.tar"
    include = f"--include={','.join(packages)}"
    run(["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", include, *left_out, DEBIAN, str(system), mirror])
    container = buildah("from", "scratch").strip()
    buildah("add", "--quiet", container, str(system), "/")
    buildah("copy", "--quiet", container, str(work / "python"), "/")
    path = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
    buildah("config", f"--env=PATH={path}", "--cmd=python3", container)
    buildah("run", "--network=host", container, "--", "ldconfig")
    buildah("commit", "--quiet", "--rm", container, BASE)
    shutil.rmtree(work)


def built_python() -> Path | None:
    """The prefix of a Python 3.12 outside of the system's own directories, such as one of pyenv's."""
    candidates = [Path(sys.base_prefix), *sorted((Path.home() / ".pyenv" / "versions").glob("3.12.*"))]
    fitting = [path for path in candidates if (path / "bin" / "python3.12").exists() and path != Path("/usr")]
    return fitting[-1] if fitting else None


def copy_python(prefix: Path, target: Path) -> None:
    """Copy an installation without what python:3.12-slim does not have either."""
    unwanted = shutil.ignore_patterns("__pycache__", "*.a", "config-3.12*", "test", "site-packages")
    for part in ("bin", "lib"):
        shutil.copytree(prefix / part, target / part, symlinks=True, ignore=unwanted)
    site = "lib/python3.12/site-packages"
    (target / site).mkdir()
    for package in (prefix / site).glob("pip*"):
        shutil.copytree(package, target / site / package.name)


def build_pause(buildah: Buildah, cache: Path, archive: Path) -> None:
    """Compile Kubernetes' own pause program, from its module, into an image of one file."""
    go = str(find_go(cache_directory()))
    module = run([go, "list", "-m", "-f", "{{.Dir}}", KUBERNETES.version_of], {"GOWORK": "off"}, KUBERNETES.directory)
    program = cache / "pause"
    source = Path(module.strip(), "build", "pause", "linux", "pause.c")
    run(["gcc", "-Os", "-static", "-DVERSION=local", "-o", str(program), str(source)])
    container = buildah("from", "scratch").strip()
    buildah("copy", "--quiet", container, str(program), "/pause")
    buildah("config", '--entrypoint=["/pause"]', "--user=65535:65535", container)
    buildah("commit", "--quiet", "--rm", container, PAUSE)
    buildah.save(PAUSE, archive)


def run(command: list[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a command and return what it prints. Raises ImageError with the end of what it said."""
    environment = os.environ | dict(env or {})
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, check=False)
    if result.returncode != 0:
        said = "\n".join((result.stdout + result.stderr).splitlines()[-20:])
        raise ImageError(f"{' '.join(command[:6])} … failed with code {result.returncode}:\n{said}")
    return result.stdout
