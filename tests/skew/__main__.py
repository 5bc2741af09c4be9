"""The developer's command: `python -m tests.skew [VERSION …] [--all] [--files NAME …] [--write]`.

Each version has its own control plane. What a run came to stays in build/skew until the next run on that version, so
the table can be written after several runs; a run of some files replaces what these came to.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.controlplane.build import KUBERNETES, in_version
from tests.controlplane.versions import VARIABLE, VERSIONS
from tests.skew.table import CLUSTER, PAGE, Result, files, named, read, table, with_table

ROOT: Final = Path(__file__).parents[2]
OUT: Final = ROOT / "build" / "skew"
PARTS: Final = ("not alone", "alone")
NOT_OURS: Final = ("KUBEBUILDER_ASSETS",)
"""Variables of the caller's that would choose another control plane."""

NO_TESTS: Final = 5
"""pytest's code if none was chosen."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run. Returns 0 if all that applies passes on each version, 1 if not, 2 if a control plane cannot be built."""
    options = parsed(argv)
    codes = [run(version, options) for version in options.versions]
    results = {patch_of(version): found for version in VERSIONS if (found := result_of(version))}
    text = table(results)
    print(f"\n{text}")
    if options.write:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
        print(f"Written into {PAGE.relative_to(ROOT)}")
    return max(codes, default=0)


def run(version: str, options: argparse.Namespace) -> int:
    """Build the control plane if need be, and run the tests on it."""
    environment = {name: value for name, value in os.environ.items() if name not in NOT_OURS} | {VARIABLE: version}
    started = time.monotonic()
    if not options.files:
        shutil.rmtree(OUT / version, ignore_errors=True)
    built = subprocess.run([sys.executable, "-m", "tests.controlplane", "build"], env=environment, check=False)
    if built.returncode:
        return 2
    chosen = named(options.files) if options.files else [CLUSTER] if options.all else files()
    codes = []
    for part in PARTS:
        several = part == "not alone" and options.workers > 1
        spread = [f"--numprocesses={options.workers}", "--dist=loadfile"] if several else []
        print(f"\nKubernetes {patch_of(version)}: tests that are {part}", flush=True)
        command = [sys.executable, "-m", "pytest", *map(str, chosen), "-q", "-m", part, *spread]
        xml = OUT / version / f"{'-'.join([*options.files, *part.split()])}.xml"
        tests = subprocess.run([*command, f"--junit-xml={xml}"], env=environment, check=False)
        codes.append(0 if tests.returncode == NO_TESTS else min(tests.returncode, 1))
    said = "FAILED" if any(codes) else "passed"
    print(f"Kubernetes {patch_of(version)}: {said} after {time.monotonic() - started:.0f} s", flush=True)
    return max(codes)


def patch_of(version: str) -> str:
    """Such as 1.34.4."""
    return in_version(KUBERNETES, version).version.removeprefix("v")


def result_of(version: str) -> dict[str, Result]:
    """Of the last runs on it; empty if there was none."""
    return read(sorted((OUT / version).glob("*.xml"), key=lambda xml: xml.stat().st_mtime))


def parser() -> argparse.ArgumentParser:
    """The options."""
    result = argparse.ArgumentParser(
        prog="python -m tests.skew", description="The cluster tests on API servers of several versions of Kubernetes."
    )
    given = f"of {', '.join(VERSIONS)} (default: all; none: the table of the runs before)"
    result.add_argument("versions", nargs="*", metavar="VERSION", help=given)
    result.add_argument("--all", action="store_true", help="all cluster tests: about 13 minutes for each version")
    some = "these only, such as `--files dra preemption`, and the rest of the table from the runs before"
    result.add_argument("--files", nargs="+", metavar="NAME", default=[], help=some)
    result.add_argument("--workers", type=int, default=3, help="tests at the same time (default: %(default)s)")
    result.add_argument("--write", action="store_true", help=f"write the table into docs/{PAGE.name}")
    return result


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, checked."""
    options = parser().parse_args(argv)
    if options.versions == ["none"]:
        options.versions = []
        return options
    unknown = [name for name in options.versions if name not in VERSIONS]
    if unknown:
        parser().error(f"{', '.join(unknown)}: the versions are {', '.join(VERSIONS)}")
    missing = [file.name for file in named(options.files) if not file.is_file()]
    if missing:
        parser().error(f"there is no {', '.join(missing)} in tests/cluster")
    options.versions = options.versions or list(VERSIONS)
    return options


if __name__ == "__main__":
    sys.exit(main())
