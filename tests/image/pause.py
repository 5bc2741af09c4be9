"""Kubernetes' own pause program, which every pod has, compiled from its module."""

from pathlib import Path

from tests.controlplane.build import KUBERNETES, cache_directory
from tests.controlplane.toolchain import find_go
from tests.image.debian import run


def compile_pause(directory: Path) -> Path:
    """Compile it into `directory`, with no library to load. Raises ImageError, or BuildError without Go."""
    go = str(find_go(cache_directory()))
    module = run([go, "list", "-m", "-f", "{{.Dir}}", KUBERNETES.version_of], {"GOWORK": "off"}, KUBERNETES.directory)
    program = directory / "pause"
    source = Path(module.strip(), "build", "pause", "linux", "pause.c")
    run(["gcc", "-Os", "-static", "-DVERSION=local", "-o", str(program), str(source)])
    return program
