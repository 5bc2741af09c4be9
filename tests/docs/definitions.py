"""`python -m tests.docs.definitions` prints the definitions of what the page of how-tos uses of other schedulers."""

import json

from tests.cluster import kueue_definitions, pod_group_definition, test_foreign_groups

if __name__ == "__main__":
    for each in (pod_group_definition.DEFINITION, kueue_definitions.DEFINITIONS, *test_foreign_groups.DEFINITIONS[:2]):
        print(json.dumps(each))
