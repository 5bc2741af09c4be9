"""`python -m tests.image DIRECTORY`: judge an unpacked image."""

import argparse
import sys
from pathlib import Path

from tests.image.contents import problems


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    parser = argparse.ArgumentParser(prog="python -m tests.image", description="Judge an unpacked or mounted image.")
    parser.add_argument("root", metavar="DIRECTORY", type=Path, help="its root, with the image's owners and modes")
    found = problems(parser.parse_args().root)
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
