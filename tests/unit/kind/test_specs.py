"""What a report of Kubernetes' own specs is read as."""

from pathlib import Path

import yaml

from tests.kind.specs import LEFT_OUT, read_report

REPORT = """\
<testsuites><testsuite name="Kubernetes e2e suite">
<testcase name="[BeforeSuite]" status="passed" time="1"></testcase>
<testcase name="[It] [sig-network] Pods should talk" status="skipped" time="0"><skipped message="skipped"/></testcase>
<testcase name="[It] [sig-scheduling] A works [Serial]" status="passed" time="2.5"></testcase>
<testcase name="[It] [sig-scheduling] B is left out" status="skipped" time="0"><skipped message="skipped"/></testcase>
<testcase name="[It] [sig-scheduling] C declines" status="skipped" time="0.1">
  <skipped message="skipped - needs two zones"/></testcase>
<testcase name="[It] [sig-scheduling] D fails" status="failed" time="3">
  <failure message="not on node a" type="failed">…</failure><system-err>…</system-err></testcase>
<testcase name="[It] [sig-scheduling] E hangs" status="timedout" time="9"><error message="" type="timedout"/></testcase>
</testsuite></testsuites>
"""


def test_only_specs_that_passed_count_as_passed(tmp_path: Path) -> None:
    report = tmp_path / "junit_01.xml"
    report.write_text(REPORT)

    results = read_report(report)

    assert results.passed == ("[sig-scheduling] A works [Serial]",)
    assert results.seconds == {"[sig-scheduling] A works [Serial]": 2.5}
    assert results.skipped == ("[sig-scheduling] C declines: skipped - needs two zones",)
    assert results.failed == ("[sig-scheduling] D fails: not on node a", "[sig-scheduling] E hangs: ")


def test_each_spec_that_is_left_out_has_its_reason() -> None:
    reasons = yaml.safe_load(LEFT_OUT.read_text())

    assert all(len(reason.split()) > 5 for reason in reasons.values())
