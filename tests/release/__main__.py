"""`python -m tests.release WHAT`: make a part of a release in `dist/`."""

import argparse
import sys
from pathlib import Path

from tests.release import dist


def main() -> int:
    """Print the paths of what was made; return 1 if it could not be."""
    parser = argparse.ArgumentParser(prog="python -m tests.release", description="Make a part of a release.")
    parser.add_argument("--out", type=Path, default=dist.DIST, help="the directory for it (dist)")
    parts = parser.add_subparsers(dest="part", metavar="WHAT", required=True)
    parts.add_parser("dist", help="sdist and wheel")
    options = parser.parse_args()
    try:
        for path in dist.build(options.out, dist.date_of_commit()):
            print(path)
    except dist.ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
