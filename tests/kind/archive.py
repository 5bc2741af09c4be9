"""Write container images without a container engine: each is some layers and a program's name.

The file is what `docker save` writes, which `ctr images import`, `docker load` and `podman load` read. Layers that
images share are in it once, and the same input gives the same bytes.
"""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ARCHITECTURE: Final = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Image:
    """An image: what `write` makes of files of this machine."""

    names: tuple[str, ...]
    """Each with its tag."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Programs, by their path in the image: one layer."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Symbolic links, by their path: in the same layer."""
    base: Path | None = None
    """A tar file with the layer below."""
    entrypoint: tuple[str, ...] = ()


def write(archive: Path, images: Iterable[Image], work: Path) -> None:
    """Write all images into one archive; `work` is a directory for what is written on the way."""
    index: list[dict[str, Any]] = []
    layers: dict[str, Path] = {}
    configurations: dict[str, bytes] = {}
    for number, image in enumerate(images):
        own = [image.base] if image.base else []
        if image.files or image.links:
            own.append(write_layer(work / f"layer-{number}.tar", image))
        digests = [digest(path) for path in own]
        layers |= dict(zip(digests, own, strict=True))
        content = json.dumps(configuration(image, digests)).encode()
        name = f"{hashlib.sha256(content).hexdigest()}.json"
        configurations[name] = content
        index.append(
            {"Config": name, "RepoTags": list(image.names), "Layers": [f"{each}/layer.tar" for each in digests]}
        )
    with tarfile.open(archive, "w") as target:
        for name, content in [*configurations.items(), ("manifest.json", json.dumps(index).encode())]:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            target.addfile(entry, io.BytesIO(content))
        for name, path in layers.items():
            target.add(path, f"{name}/layer.tar", filter=anonymous)


def configuration(image: Image, digests: Iterable[str]) -> dict[str, Any]:
    """The image's configuration as the OCI specifies it."""
    return {
        "architecture": ARCHITECTURE[platform.machine()],
        "os": "linux",
        "config": {"Entrypoint": list(image.entrypoint), "Env": [f"PATH={PATH}"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{each}" for each in digests]},
    }


def write_layer(path: Path, image: Image) -> Path:
    """Write the layer with the image's own files, which all may be run."""
    with tarfile.open(path, "w") as layer:
        for directory in sorted({parent for name in (*image.files, *image.links) for parent in directories(name)}):
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            layer.addfile(entry)
        for name, source in image.files.items():
            layer.add(source, name.lstrip("/"), filter=anonymous)
        for name, target in image.links.items():
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            layer.addfile(entry)
    return path


def directories(name: str) -> list[str]:
    """Those that a file is in, the root not among them.

    >>> directories("/usr/local/bin/etcd")
    ['usr', 'usr/local', 'usr/local/bin']
    """
    parts = name.strip("/").split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Root's, of no date, and runnable."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755
    return entry


def digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
