"""The images that the node runs: Loadmaster's from the Dockerfile, and `pause`, which every pod has.

They are built by buildah, which needs no daemon, and kept as archives in the cache. Where the registry of the base
image cannot be reached, a stand-in takes its name: Debian's minimal system and a Python.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.controlplane.build import cache_directory
from tests.image.base import PATH, make_stand_in
from tests.image.debian import ImageError, run
from tests.image.pause import compile_pause

ROOT: Final = Path(__file__).parents[2]
BASE: Final = "docker.io/library/python:3.12-slim"
"""What the Dockerfile calls `python:3.12-slim`."""
LOADMASTER: Final = "docker.io/library/loadmaster:0.2.0"
"""What the manifest and the chart name `loadmaster:0.2.0`."""
PAUSE: Final = "localhost/pause:1"

CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")


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
        container = buildah("from", "scratch").strip()
        buildah("add", "--quiet", container, str(make_stand_in(cache)), "/")
        buildah("config", f"--env=PATH={PATH}", "--cmd=python3", container)
        buildah("commit", "--quiet", "--rm", container, BASE)


def build_pause(buildah: Buildah, cache: Path, archive: Path) -> None:
    """Put Kubernetes' own pause program into an image of one file."""
    program = compile_pause(cache)
    container = buildah("from", "scratch").strip()
    buildah("copy", "--quiet", container, str(program), "/pause")
    buildah("config", '--entrypoint=["/pause"]', "--user=65535:65535", container)
    buildah("commit", "--quiet", "--rm", container, PAUSE)
    buildah.save(PAUSE, archive)
