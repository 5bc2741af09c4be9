"""Random lives of groups of pods, held against the rules of docs/groups.md.

`python -m tests.campaigns.groups --help` says how it is used, `scenarios.py` what may happen, `findings.py` which rules
there are.
"""

import sys

from tests.campaigns.groups.campaign import CAMPAIGN
from tests.campaigns.lives import main

if __name__ == "__main__":
    sys.exit(main(CAMPAIGN))
