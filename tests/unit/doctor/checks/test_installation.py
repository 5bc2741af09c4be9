"""Whether there is an installation of that name."""

from scheduler.doctor.checks import installation
from scheduler.doctor.evidence.cluster import NotThere
from tests.unit.doctor.fake_cluster import PROBLEM, facts, healthy, levels


async def test_another_installation_is_offered_where_there_is_none_of_that_name() -> None:
    other = {"metadata": {"name": "gpu", "namespace": "ml", "labels": {"app.kubernetes.io/instance": "gpu"}}}
    cluster = healthy(lists={"/api/v1/services": [other]})

    findings = await installation.found(facts(service=NotThere("not found")), cluster)

    assert levels(findings) == [PROBLEM]
    assert findings[0].advice == "--service-namespace ml --service gpu"
