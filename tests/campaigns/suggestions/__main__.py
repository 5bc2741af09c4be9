"""Whether what `explain` suggests is true, complete and the same in every order of the objects.

    python -m tests.campaigns.suggestions --clusters 1000 --seed 1

prints each failure with its cluster, and a line with the figures. `campaign.py` says what counts as false and as
missed, `catalogue.py` which single changes are tried, `sizes.py` which of two is smaller. Exit code 1: a suggestion was
false, more than one in a hundred single changes was missed, or an answer depended on the order.
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
    for what, found in (("false", figures.false), ("missed", figures.missed)):
        for text, count in found.most_common():
            print(f"{what} {count:5} {text}")
    print(figures)
    is_missed = figures.missed.total() > 0.01 * figures.singles
    return int(bool(figures.false or is_missed or figures.reordered))


if __name__ == "__main__":
    sys.exit(main())
