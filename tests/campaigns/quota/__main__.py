"""Whether quota keeps over time what docs/quota.md says, in random clusters over hours of virtual time.

`python -m tests.campaigns.quota --help` says how it is used, `scenarios.py` what may happen, `judge.py` which rules
there are.
"""

import sys

from tests.campaigns.lives import main
from tests.campaigns.quota.campaign import CAMPAIGN

if __name__ == "__main__":
    sys.exit(main(CAMPAIGN))
