"""The manifest, by the rules of krew's own validator, and the program that starts what krew unpacks."""

import hashlib
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from tests.image.locks import PROJECT
from tests.release import krew
from tests.release.dist import ReleaseError, version

START = PROJECT / "tests/release/krew_start.py"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    for system in krew.SYSTEMS:
        (tmp_path / f"kubectl-loadmaster-{system}.tar.gz").write_text(f"the archive for {system}")
    return tmp_path


def test_the_manifest_names_the_archive_of_each_system_with_its_hash(out: Path) -> None:
    found = yaml.safe_load(krew.manifest(out).read_text())

    where = f"https://github.com/loadmaster/loadmaster/releases/download/v{version()}"
    assert found["spec"]["platforms"] == [
        {
            "selector": {"matchLabels": {"os": os, "arch": arch}},
            "uri": f"{where}/kubectl-loadmaster-{os}-{arch}.tar.gz",
            "sha256": hashlib.sha256(f"the archive for {os}-{arch}".encode()).hexdigest(),
            "bin": "kubectl-loadmaster",
        }
        for os, arch in [("darwin", "arm64"), ("linux", "amd64"), ("linux", "arm64")]
    ]


def test_the_manifest_is_what_krew_accepts(out: Path) -> None:
    path = krew.manifest(out)

    found = yaml.safe_load(path.read_text())
    assert (found["apiVersion"], found["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert found["metadata"]["name"] == path.stem
    assert re.fullmatch(r"v\d+\.\d+\.\d+(-[\w.]+)?", found["spec"]["version"])
    assert 0 < len(found["spec"]["shortDescription"]) <= 50
    assert "\n" not in found["spec"]["shortDescription"]


def test_an_archive_that_is_missing_is_named(out: Path) -> None:
    missing = out / "kubectl-loadmaster-linux-arm64.tar.gz"
    missing.unlink()

    with pytest.raises(ReleaseError, match=f"^{re.escape(str(missing))}: not there; `make krew` writes it"):
        krew.manifest(out)


def test_an_archive_has_files_for_links_which_krew_refuses(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "_internal" / "numpy.libs").mkdir(parents=True)
    (folder / "_internal" / "numpy.libs" / "lib.so").write_text("a library")
    (folder / "_internal" / "lib.so").symlink_to("numpy.libs/lib.so")

    krew.pack(folder, tmp_path / "archive.tar.gz")

    with tarfile.open(tmp_path / "archive.tar.gz") as file:
        kinds = {member.name: member.type for member in file if not member.isdir()}
    assert kinds == {"_internal/numpy.libs/lib.so": tarfile.REGTYPE, "_internal/lib.so": tarfile.REGTYPE}


def test_the_program_takes_code_as_python_does_for_the_child_that_tries_plugins_out() -> None:
    code = "import sys; print(__name__, sys.argv)"

    done = subprocess.run(
        [sys.executable, START, "-I", "-B", "-c", code, "a", "-c"], capture_output=True, text=True, check=True
    )

    assert done.stdout == "__main__ ['-c', 'a', '-c']\n"
