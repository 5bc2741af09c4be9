"""What we tell scanners and reporters of vulnerabilities: by the rules of OpenVEX 0.2.0 and of Security Insights 2."""

import json
import re
from datetime import date, datetime
from typing import Any

import pytest
import yaml

from tests.image.locks import PROJECT
from tests.release.dist import version

HOME = "https://github.com/loadmaster/loadmaster"
VEX: dict[str, Any] = json.loads((PROJECT / "docs/security/loadmaster.openvex.json").read_text())
INSIGHTS: dict[str, Any] = yaml.safe_load((PROJECT / ".github/SECURITY-INSIGHTS.yml").read_text())
POLICY = (PROJECT / ".github/SECURITY.md").read_text()

NOT_AFFECTED = {
    "component_not_present",
    "vulnerable_code_not_present",
    "vulnerable_code_not_in_execute_path",
    "vulnerable_code_cannot_be_controlled_by_adversary",
    "inline_mitigations_already_exist",
}


def test_the_vex_document_says_who_says_it_and_when() -> None:
    assert VEX.keys() - {"last_updated"} == {
        *("@context", "@id", "author", "role", "timestamp", "version", "statements"),
    }
    assert VEX["@context"] == "https://openvex.dev/ns/v0.2.0"
    assert datetime.fromisoformat(VEX["timestamp"]).utcoffset() is not None
    assert VEX["version"] >= 1


@pytest.mark.parametrize("statement", VEX["statements"], ids=lambda each: str(each["vulnerability"]["name"]))
def test_each_statement_has_what_its_status_asks_for(statement: dict[str, Any]) -> None:
    assert re.fullmatch(r"CVE-\d{4}-\d{4,}|GHSA(-\w{4}){3}", statement["vulnerability"]["name"])
    match statement["status"]:
        case "not_affected":
            assert statement["justification"] in NOT_AFFECTED
            assert statement["status_notes"]
        case "affected":
            assert statement["action_statement"]
        case other:
            assert other in ("fixed", "under_investigation")


def test_each_statement_is_of_the_image_or_the_wheel_and_of_something_in_it() -> None:
    products = [product for statement in VEX["statements"] for product in statement["products"]]

    assert {product["@id"] for product in products} <= {
        "pkg:oci/loadmaster?repository_url=ghcr.io/loadmaster/loadmaster",
        "pkg:pypi/loadmaster",
    }
    parts = [part["@id"] for product in products for part in product["subcomponents"]]
    assert [part for part in parts if not part.startswith(("pkg:deb/debian/", "pkg:pypi/", "pkg:generic/"))] == []


def test_no_vulnerability_has_two_statements() -> None:
    names = [statement["vulnerability"]["name"] for statement in VEX["statements"]]

    assert len(names) == len(set(names))


def test_the_insights_have_what_their_schema_asks_for() -> None:
    header, project, repository = INSIGHTS["header"], INSIGHTS["project"], INSIGHTS["repository"]

    assert header["schema-version"] == "2.0.0"
    assert date.fromisoformat(header["last-updated"]) <= date.fromisoformat(header["last-reviewed"])
    assert {"name", "administrators", "repositories", "vulnerability-reporting"} <= project.keys()
    assert {"reports-accepted", "bug-bounty-available"} <= project["vulnerability-reporting"].keys()
    assert {
        *("url", "status", "accepts-change-request", "accepts-automated-change-request"),
        *("core-team", "license", "security"),
    } <= repository.keys()
    assert repository["security"]["assessments"]["self"]["comment"]
    assert {"automated-pipeline", "distribution-points"} <= repository["release"].keys()
    for tool in repository["security"]["tools"]:
        assert tool["type"] in ("fuzzing", "container", "secret", "SCA", "SAST", "other")
        assert tool["integration"].keys() == {"adhoc", "ci", "release"}


def test_each_file_that_is_named_by_its_public_address_is_here() -> None:
    texts = [POLICY, (PROJECT / ".github/SECURITY-INSIGHTS.yml").read_text(), (PROJECT / "pyproject.toml").read_text()]

    named = {path for text in texts for path in re.findall(rf"{HOME}/(?:blob|tree)/main/([\w./-]+\w)", text)}

    assert {".github/SECURITY.md", "CHANGELOG.md", ".github/RELEASING.md"} <= named
    assert [path for path in named if not (PROJECT / path).exists()] == []


def test_the_policy_supports_the_version_that_is_being_made() -> None:
    assert f"\n| {version().rpartition('.')[0]} | all |\n" in POLICY
