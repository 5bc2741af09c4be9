"""`python -m tests.docs.definitions` prints the definitions of what the page of how-tos uses of other schedulers."""

import json

from tests.controlplane.definitions import FOREIGN_GROUPS, KUEUE, POD_GROUP

if __name__ == "__main__":
    for each in (POD_GROUP, *KUEUE, *FOREIGN_GROUPS[:2]):
        print(json.dumps(each))
