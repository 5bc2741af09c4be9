import tarfile

import pytest
import yaml

from tests.chart.earlier import DIRECTORY, Release, kept
from tests.chart.tables import releases


@pytest.mark.parametrize("release", kept(), ids=lambda release: release.version)
def test_the_kept_chart_is_that_of_the_release(release: Release) -> None:
    with tarfile.open(release.chart) as chart:
        file = chart.extractfile("loadmaster/Chart.yaml")
        assert file
        told = yaml.safe_load(file)

    assert told["version"] == told["appVersion"] == release.version
    assert len(release.commit) == 40


def test_each_chart_has_a_commit_and_each_release_but_the_last_may_be_upgraded() -> None:
    versions = [release.version for release in kept()]

    assert {path.name for path in DIRECTORY.glob("*.tgz")} == {release.chart.name for release in kept()}
    assert versions == [release["version"] for release in releases()][-len(versions) - 1 : -1]
