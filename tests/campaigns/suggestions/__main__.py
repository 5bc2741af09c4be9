"""Whether what `explain` suggests is true, and the same in every order of the objects.

    python -m tests.campaigns.suggestions --clusters 1000 --seed 1

prints each failure with its cluster, and a line with the figures; `campaign.py` says what counts as false. Exit code 1:
a suggestion was false, or an answer depended on the order.
"""

import argparse
import sys

from tests.campaigns.suggestions.campaign import search


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.suggestions", description=__doc__)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quiet", action="store_true", help="only the figures")
    options = parser.parse_args()
    figures = search(options.seed, options.clusters, (lambda _: None) if options.quiet else print)
    for text, count in figures.false.most_common():
        print(f"false {count:5} {text}")
    print(figures)
    return int(bool(figures.false or figures.reordered))


if __name__ == "__main__":
    sys.exit(main())
