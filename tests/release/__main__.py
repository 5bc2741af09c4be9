"""`python -m tests.release WHAT`: make a part of a release in `dist/`."""

import argparse
import sys
from pathlib import Path

from tests.release import dist, krew, sbom, wheels


def main() -> int:
    """Print the paths of what was made; return 1 if it could not be."""
    parser = argparse.ArgumentParser(prog="python -m tests.release", description="Make a part of a release.")
    parser.add_argument("--out", type=Path, default=dist.DIST, help="the directory for it (dist)")
    parts = parser.add_subparsers(dest="part", metavar="WHAT", required=True)
    parts.add_parser("dist", help="sdist and wheel")
    image = parts.add_parser("sbom", help="what is in the wheel's environment, or in an image, as CycloneDX")
    image.add_argument("--image", type=Path, metavar="DIRECTORY", help="the root of an unpacked or mounted image")
    parts.add_parser("krew", help="kubectl-loadmaster for the system of this machine, with all it needs")
    parts.add_parser("krew-manifest", help="krew's manifest for the archives of all systems")
    parts.add_parser("wheels", help="ask PyPI for a wheel of each library for each Python and architecture")
    try:
        for path in _make(parser.parse_args()):
            print(path)
    except dist.ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _make(options: argparse.Namespace) -> list[Path]:
    epoch = dist.date_of_commit()
    match options.part:
        case "krew":
            return [krew.archive(options.out, epoch)]
        case "krew-manifest":
            return [krew.manifest(options.out)]
        case "wheels":
            if wrong := list(wheels.missing(sbom.LOCK)):
                raise dist.ReleaseError("\n".join(wrong))
            return []
        case "dist":
            return dist.build(options.out, epoch)
        case "sbom" if options.image:
            return [sbom.of_image(options.out, options.image, epoch)]
        case _:
            return [sbom.of_wheel(options.out, epoch)]


if __name__ == "__main__":
    sys.exit(main())
