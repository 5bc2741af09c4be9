from collections.abc import Callable
from pathlib import Path

import pytest

from tests.image.contents import problems

PYTHON = "opt/loadmaster/lib/python3.12"
PACKAGES = f"{PYTHON}/site-packages"
UNCHECKED = b"pyc!\x01\0\0\0"

LOCK = """\
numpy==2.4.6 ; python_full_version < '3.12' \\
    --hash=sha256:00
numpy==2.5.5 ; python_full_version >= '3.12' \\
    --hash=sha256:01
    # via loadmaster (pyproject.toml)
setuptools==84.0 \\
    --hash=sha256:02
"""
DESCRIPTION = """\
[build-system]
requires = ["setuptools>=77"]
[project]
name = "loadmaster"
version = "0.1.0"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "project" / "requirements.lock", LOCK)
    write(tmp_path / "project" / "pyproject.toml", DESCRIPTION)
    return tmp_path / "project"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    root = tmp_path / "image"
    write(root / "usr/bin/dash")
    (root / "usr/bin/sh").symlink_to("/usr/bin/dash")
    (root / "bin").symlink_to("usr/bin")
    write(root / "etc/ssl/certs/ca-certificates.crt")
    write(root / "opt/loadmaster/bin/loadmaster")
    install(root, "numpy", "2.5.5")
    install(root, "loadmaster", "0.1.0")
    module(root / PACKAGES / "scheduler", "app")
    module(root / "usr/local/lib/python3.12", "json")
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    return root


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o644)


def install(root: Path, name: str, version: str) -> None:
    write(root / PACKAGES / f"{name}-{version}.dist-info/METADATA", f"Name: {name}\nVersion: {version}\n")


def module(directory: Path, name: str) -> None:
    write(directory / f"{name}.py")
    (directory / "__pycache__").mkdir(exist_ok=True)
    (directory / "__pycache__" / f"{name}.cpython-312.pyc").write_bytes(UNCHECKED)


def rename(root: Path, old: str, new: str) -> None:
    (root / old).rename(root / new)


def test_an_image_with_all_that_it_needs_has_no_problems(image: Path, project: Path) -> None:
    assert problems(image, project) == []


SPOILED: list[tuple[str, Callable[[Path], object], str]] = [
    ("no shell", lambda root: (root / "usr/bin/dash").unlink(), "/bin/sh is missing"),
    (
        "no certificates",
        lambda root: (root / "etc/ssl/certs/ca-certificates.crt").unlink(),
        "/etc/ssl/certs/ca-certificates.crt is missing",
    ),
    (
        "a file that everybody writes",
        lambda root: (root / PACKAGES / "scheduler/app.py").chmod(0o666),
        f"/{PACKAGES}/scheduler/app.py can be written by",
    ),
    (
        "a directory that everybody writes",
        lambda root: (root / PACKAGES).chmod(0o777),
        f"/{PACKAGES} can be written by",
    ),
    ("setuid", lambda root: (root / "usr/bin/dash").chmod(0o4755), "/usr/bin/dash runs as its owner"),
    (
        "a compiler",
        lambda root: write(root / "usr/bin/x86_64-linux-gnu-gcc-14"),
        "/usr/bin/x86_64-linux-gnu-gcc-14 has",
    ),
    ("pip's script", lambda root: write(root / "usr/local/bin/pip3.12"), "/usr/local/bin/pip3.12 has no use"),
    ("a module of pip's", lambda root: (root / PACKAGES / "pip").mkdir(), f"/{PACKAGES}/pip has no use"),
    ("tests", lambda root: (root / PACKAGES / "tests").mkdir(), f"/{PACKAGES}/tests are tests"),
    ("a stub", lambda root: write(root / PACKAGES / "numpy.pyi"), f"/{PACKAGES}/numpy.pyi is for developers"),
    ("a library that nobody locked", lambda root: install(root, "wheel", "1"), "wheel 1 is not in requirements.lock"),
    (
        "a library in two versions",
        lambda root: install(root, "numpy", "2.4.6"),
        "numpy 2.4.6 is not in requirements.lock",
    ),
    (
        "a library that is not there",
        lambda root: (root / PACKAGES / "numpy-2.5.5.dist-info/METADATA").write_text("Name: nampy\nVersion: 1\n"),
        "numpy 2.5.5 is not installed",
    ),
    (
        "a library outside of the venv",
        lambda root: write(root / "usr/local/lib/python3.12/site-packages/pip-23.dist-info/METADATA"),
        "/usr/local/lib/python3.12/site-packages/pip-23.dist-info is installed in the wrong place",
    ),
    (
        "a module without bytecode",
        lambda root: write(root / "usr/local/lib/python3.12/csv.py"),
        "/usr/local/lib/python3.12/csv.py is not compiled",
    ),
    (
        "bytecode that is compared with the source's date",
        lambda root: (root / PACKAGES / "scheduler/__pycache__/app.cpython-312.pyc").write_bytes(b"pyc!\0\0\0\0"),
        f"/{PACKAGES}/scheduler/app.py is compared with its bytecode",
    ),
    ("no Python", lambda root: rename(root, PYTHON, "opt/loadmaster/lib/elsewhere"), "/opt/loadmaster must have one"),
]


@pytest.mark.parametrize(("spoil", "problem"), [pytest.param(*case, id=name) for name, *case in SPOILED])
def test_what_is_wrong_with_an_image_is_told(
    image: Path, project: Path, spoil: Callable[[Path], object], problem: str
) -> None:
    spoil(image)

    assert any(found.startswith(problem) for found in problems(image, project)), problems(image, project)


def test_links_in_a_circle_lead_to_no_shell(image: Path, project: Path) -> None:
    (image / "usr/bin/dash").unlink()
    (image / "usr/bin/dash").symlink_to("sh")

    assert [found for found in problems(image, project) if found.startswith("/bin/sh is missing")]
