"""Build the sdist, and the wheel from the sdist: the same files give the same bytes, on any machine and at any time.

They are made in a copy that has only the files that git tracks, so neither a `build/` that setuptools left behind nor
a file that was never committed gets into them, and with modes that do not depend on who made the clone.
"""

import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DIST: Final = ROOT / "dist"
PACKAGES: Final = ("scheduler", "plugins")
FILES: Final = ("pyproject.toml", "README.md", "LICENSE", *PACKAGES)
"""What the build reads."""

HOME: Final = "https://github.com/loadmaster/loadmaster"
_RELATIVE: Final = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#)([^)\s]+)\)")


class ReleaseError(Exception):
    """Something of a release cannot be made here. The text says why."""


def build(out: Path, epoch: int) -> list[Path]:
    """Write sdist and wheel into `out` and return their paths. `epoch`: the date of everything in them.

    Raises ReleaseError with what the build said last.
    """
    with tempfile.TemporaryDirectory() as directory:
        source, made = Path(directory, "source"), Path(directory, "made")
        _copy_tracked(source)
        _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", made, source], epoch)
        (sdist,) = made.glob("*.tar.gz")
        give_one_date(sdist, epoch)
        out.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(path, out)) for path in sorted(made.iterdir())]


def version() -> str:
    """The version that is released."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def date_of_commit() -> int:
    """SOURCE_DATE_EPOCH if it is set, else when the last commit was made."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct"))


def _copy_tracked(target: Path) -> None:
    for name in _git("ls-files", "-z", "--", *FILES).rstrip("\0").split("\0"):
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, path)
        path.chmod(0o644)
    readme = target / "README.md"
    readme.write_text(_with_addresses(readme.read_text()))


def _with_addresses(readme: str) -> str:
    """The README as package indexes show it, which have none of the files that it links to."""
    return _RELATIVE.sub(
        lambda link: f"{link[1]}{link[2]}({HOME}/{'raw' if link[1] else 'blob'}/v{version()}/{link[3]})", readme
    )


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def _run(command: list[object], epoch: int) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    done = subprocess.run(
        [str(part) for part in command],
        env=environment,
        umask=0o022,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ReleaseError("\n".join(done.stdout.splitlines()[-20:]))


def give_one_date(archive: Path, epoch: int) -> None:
    """Write a .tar.gz again with one date and owner for all. setuptools heeds SOURCE_DATE_EPOCH only in wheels."""
    packed = io.BytesIO()
    with (
        tarfile.open(archive) as old,
        gzip.GzipFile("", "wb", fileobj=packed, mtime=epoch) as file,
        tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.pax_headers = epoch, {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    archive.write_bytes(packed.getvalue())
