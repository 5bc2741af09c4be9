"""`python -m tests.browser install` gets the browser; `… shots` takes the pictures of docs/page.md."""

import sys

from tests.browser import chromium, shots

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["install"]:
            sys.exit(chromium.install())
        case ["shots"]:
            shots.take()
        case _:
            sys.exit(__doc__)
