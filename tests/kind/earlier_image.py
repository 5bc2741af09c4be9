"""The image of an earlier release, built from its commit and kept in the cache directory as an archive."""

import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chart.earlier import Release
from tests.controlplane.build import cache_directory
from tests.image.locks import PROJECT
from tests.kind.engine import Engine
from tests.kind.image import BUILD_SECONDS, REPOSITORY, build_as


class NoHistoryError(Exception):
    """The commit is not here, as in a shallow clone or an unpacked sdist. The text is what git said."""


def ensure(engine: Engine, release: Release) -> Path:
    """The archive, made first if need be. Raises NoHistoryError, EngineError and ImageError."""
    archive = cache_directory().with_name("kind") / f"loadmaster-{release.version}-{release.commit[:12]}.tar"
    if not archive.exists():
        name = f"{REPOSITORY}:{release.version}"
        with source(release.commit) as tree:
            build_as(engine, name, tree)
        partial = archive.with_suffix(".part")
        partial.unlink(missing_ok=True)
        engine("save", "--output", str(partial), name, timeout=BUILD_SECONDS)
        partial.rename(archive)
    return archive


@contextmanager
def source(commit: str) -> Iterator[Path]:
    """A directory with the repository's files as they were at a commit. Raises NoHistoryError."""
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory, "source")
        archive = Path(directory, "source.tar")
        command = ["git", "-C", str(PROJECT), "archive", f"--output={archive}", commit]
        try:
            subprocess.run(command, capture_output=True, text=True, check=True)
        except FileNotFoundError:
            raise NoHistoryError("there is no git") from None
        except subprocess.CalledProcessError as error:
            raise NoHistoryError(str(error.stderr).strip()) from None
        with tarfile.open(archive) as files:
            files.extractall(tree, filter="data")
        yield tree
