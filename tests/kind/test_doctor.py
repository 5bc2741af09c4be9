"""`kubectl loadmaster doctor` on what the chart has installed, and whether its advice helps."""

import json

from tests.kind.cluster import KindCluster
from tests.kind.plugin import kubectl_loadmaster

Lines = list[dict[str, str]]


def doctor(cluster: KindCluster) -> tuple[int, Lines]:
    """Its exit code, and what is not as it should be. The example of `make kind` has a pod that waits for ever."""
    reported = kubectl_loadmaster(cluster, "doctor", "--output=json")
    assert reported.stderr == "" or reported.returncode == 1  # then kubectl repeats the exit code there
    findings: Lines = json.loads(reported.stdout)["findings"]
    return reported.returncode, [each for each in findings if each["level"] != "ok" and each["topic"] != "pods"]


def test_all_is_well_with_what_the_chart_installs(cluster: KindCluster) -> None:
    assert doctor(cluster) == (0, [])
