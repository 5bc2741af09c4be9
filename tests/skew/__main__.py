"""The developer's command: `python -m tests.skew [VERSION …] [--all] [--write]`.

Each version has its own control plane. What a run came to stays in build/skew until the next run on that version, so
the table can be written after several runs.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.controlplane.build import KUBERNETES, in_version
from tests.controlplane.versions import VARIABLE, VERSIONS
from tests.skew.capabilities import CLUSTER, files
from tests.skew.page import PAGE, table, with_table
from tests.skew.results import Result, read

ROOT: Final = Path(__file__).parents[2]
OUT: Final = ROOT / "build" / "skew"
PARTS: Final = ("not alone", "alone")
NO_TESTS: Final = 5
"""pytest's code if none was chosen."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run. Returns 0 if all that applies passes on each version, 1 if not, 2 if a control plane cannot be built."""
    options = parsed(argv)
    OUT.mkdir(parents=True, exist_ok=True)
    codes = [run(version, options) for version in options.versions] if not options.no_run else []
    results = {patch_of(version): found for version in VERSIONS if (found := result_of(version))}
    text = table(results)
    print(f"\n{text}")
    if options.write:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
        print(f"Written into {PAGE.relative_to(ROOT)}")
    return max(codes, default=0)


def run(version: str, options: argparse.Namespace) -> int:
    """Build the version's control plane if need be, and run the tests on it."""
    environment = {name: value for name, value in os.environ.items() if name != "KUBEBUILDER_ASSETS"}
    environment |= {VARIABLE: version, "LOADMASTER_CLUSTER": "built"}
    started = time.monotonic()
    for part in PARTS:
        xml_of(version, part).unlink(missing_ok=True)
    built = subprocess.run([sys.executable, "-m", "tests.controlplane", "build"], env=environment, check=False)
    if built.returncode:
        return 2
    chosen = [CLUSTER] if options.all else files()
    codes = []
    for part in PARTS:
        spread = [f"--numprocesses={options.workers}", "--dist=loadfile"] if part == "not alone" else []
        print(f"\nKubernetes {patch_of(version)}: tests that are {part}", flush=True)
        command = [sys.executable, "-m", "pytest", *map(str, chosen), "-q", "-m", part, *spread]
        tests = subprocess.run([*command, f"--junit-xml={xml_of(version, part)}"], env=environment, check=False)
        codes.append(0 if tests.returncode == NO_TESTS else min(tests.returncode, 1))
    said = "FAILED" if any(codes) else "passed"
    print(f"Kubernetes {patch_of(version)}: {said} after {time.monotonic() - started:.0f} s", flush=True)
    return max(codes)


def xml_of(version: str, part: str) -> Path:
    return OUT / f"{version}-{part.replace(' ', '-')}.xml"


def result_of(version: str) -> dict[str, Result]:
    """Of the last run on this version; empty if there was none."""
    return read(xml_of(version, part) for part in PARTS)


def patch_of(version: str) -> str:
    """Such as 1.34.4."""
    return in_version(KUBERNETES, version).version.removeprefix("v")


def parser() -> argparse.ArgumentParser:
    """The options."""
    result = argparse.ArgumentParser(
        prog="python -m tests.skew", description="The cluster tests on API servers of several versions of Kubernetes."
    )
    result.add_argument("versions", nargs="*", metavar="VERSION", help=f"of {', '.join(VERSIONS)} (default: all)")
    result.add_argument("--all", action="store_true", help="all cluster tests: 9 minutes for each version")
    result.add_argument("--workers", type=int, default=3, help="tests at the same time (default: %(default)s)")
    result.add_argument("--write", action="store_true", help=f"write the table into docs/{PAGE.name}")
    result.add_argument("--no-run", action="store_true", help="only the table of the runs before")
    return result


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, checked."""
    options = parser().parse_args(argv)
    unknown = [version for version in options.versions if version not in VERSIONS]
    if unknown:
        parser().error(f"{', '.join(unknown)}: the versions are {', '.join(VERSIONS)}")
    options.versions = options.versions or list(VERSIONS)
    return options


if __name__ == "__main__":
    sys.exit(main())
