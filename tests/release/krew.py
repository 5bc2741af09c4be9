"""`kubectl loadmaster` for krew: an archive for each system, and the manifest that names them.

krew unpacks an archive and links one program; it installs no Python and no libraries. So PyInstaller puts both next to
the program. It does so only for the system it runs on: a release makes each archive on its own machine.
"""

import hashlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path
from typing import Any, Final

import yaml

from tests.release.dist import HOME, ROOT, ReleaseError, build, give_one_date, version

PYINSTALLER: Final = "pyinstaller==6.22.3"
PROGRAM: Final = "kubectl-loadmaster"
SYSTEMS: Final = ("darwin-arm64", "linux-amd64", "linux-arm64")
"""Those that all libraries have wheels for. cryptography has none any more for Macs with Intel processors."""

_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def archive(out: Path, epoch: int) -> Path:
    """Write the archive for this machine's system, once its program has been tried. Raises ReleaseError."""
    machine = platform.machine()
    target = out / f"{PROGRAM}-{sys.platform}-{_MACHINES.get(machine, machine)}.tar.gz"
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        program = _frozen(work, next(path for path in build(work / "dist", epoch) if path.suffix == ".whl"))
        _try_out(program)
        shutil.copy(ROOT / "LICENSE", program.parent)
        out.mkdir(parents=True, exist_ok=True)
        pack(program.parent, target)
        give_one_date(target, epoch)
    return target


def pack(folder: Path, target: Path) -> None:
    """Write what is in a folder into an archive. Links become files: krew refuses an archive that has any."""
    with tarfile.open(target, "w:gz", compresslevel=1, dereference=True) as file:
        for path in folder.iterdir():
            file.add(path, path.name)


def manifest(out: Path) -> Path:
    """Write the plugin manifest for the archives in `out`. Raises ReleaseError if one is missing."""
    archives = {system: out / f"{PROGRAM}-{system}.tar.gz" for system in SYSTEMS}
    if missing := [str(path) for path in archives.values() if not path.exists()]:
        raise ReleaseError("\n".join(f"{path}: not there; `make krew` writes it on such a machine" for path in missing))
    path = out / "loadmaster.yaml"
    path.write_text(yaml.safe_dump(described(archives), sort_keys=False))
    return path


def described(archives: dict[str, Path]) -> dict[str, Any]:
    """The manifest as krew reads it, by an archive for each system, such as `linux-amd64`."""
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "loadmaster"},
        "spec": {
            "version": f"v{version()}",
            "homepage": HOME,
            "shortDescription": "Explain why pods are pending; simulate placements",
            "description": (
                "Says why a pod is pending, node by node, and what would help; simulates where pods would run;\n"
                "shows the page of a running Loadmaster, a Kubernetes scheduler in Python.\n"
            ),
            "caveats": (
                "`explain` asks the Loadmaster that runs in your cluster. Elsewhere, `explain --from-cluster`\n"
                "decides on the spot. `page`, `record` and `replay` need a running Loadmaster.\n"
            ),
            "platforms": [_platform(system, path) for system, path in archives.items()],
        },
    }


def _platform(system: str, path: Path) -> dict[str, Any]:
    os, _, arch = system.partition("-")
    return {
        "selector": {"matchLabels": {"os": os, "arch": arch}},
        "uri": f"{HOME}/releases/download/v{version()}/{path.name}",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "bin": PROGRAM,
    }


def _frozen(work: Path, wheel: Path) -> Path:
    """Return the program, made in an environment that has the wheel, and the lock's libraries."""
    venv.create(work / "venv", with_pip=True)
    pip = [work / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--only-binary=:all:", "--require-hashes", "--requirement", ROOT / "requirements.lock"])
    _run([*pip, "--no-deps", wheel])
    _run([*pip, PYINSTALLER])
    paths = ["--distpath", work / "frozen", "--workpath", work / "build"]
    _run([work / "venv/bin/pyinstaller", "--log-level=WARN", *paths, Path(__file__).with_suffix(".spec")])
    return work / "frozen" / PROGRAM / PROGRAM


def _try_out(program: Path) -> None:
    """Run it with a plugin, which takes a child process. Raises ReleaseError."""
    if _run([program, "--version"]).strip() != f"loadmaster {version()}":
        raise ReleaseError(f"{program} has another version than {version()}")
    listed = _run([program, "plugins", "list", "--plugin-dir", ROOT / "docs/examples"])
    if "Cheapest" not in listed:
        raise ReleaseError(f"{program} does not load plugins from files:\n{listed}")


def _run(command: list[Any]) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"{command[0]}:\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout
