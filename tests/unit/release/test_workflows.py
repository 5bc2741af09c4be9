"""The workflows of GitHub Actions: what they call exists, what they use is pinned, and nothing publishes by itself."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.build import cache_directory
from tests.controlplane.toolchain import BuildError, find_go
from tests.controlplane.versions import VERSIONS
from tests.image.locks import PROJECT
from tests.release import wheels

FILES = sorted((PROJECT / ".github/workflows").glob("*.yml"))
WORKFLOWS: dict[str, dict[Any, Any]] = {path.stem: yaml.safe_load(path.read_text()) for path in FILES}
JOBS = {(workflow, name): job for workflow, each in WORKFLOWS.items() for name, job in each["jobs"].items()}
STEPS = [step for job in JOBS.values() for step in job["steps"]]
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"


def test_each_target_of_make_that_a_workflow_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))

    named = {name for step in STEPS for name in re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))}

    tests, release = {"check", "test", "kind-test", "skew-test", "docs-test"}, {"dist", "sbom", "krew"}
    assert tests | release | {"docs-version"} <= named
    assert named - targets == set()


def test_each_action_is_pinned_by_its_commit_with_its_version_beside_it() -> None:
    lines = [line for path in FILES for line in path.read_text().splitlines() if "uses:" in line]

    pinned = [re.search(r"uses: ([\w./-]+)@([0-9a-f]{40}) # v(\d+\.\d+\.\d+)$", line) for line in lines]

    assert [line for line, match in zip(lines, pinned, strict=True) if not match] == []
    commits = {(match[1], match[2], match[3]) for match in pinned if match}
    assert len(commits) == len({name for name, _, _ in commits})


def test_each_python_that_the_package_names_is_checked() -> None:
    assert JOBS["ci", "check"]["strategy"]["matrix"]["python"] == wheels.pythons()


@pytest.mark.parametrize("job", [("kind", "kind-test"), ("weekly", "skew-test")])
def test_each_kubernetes_that_we_build_is_tested(job: tuple[str, str]) -> None:
    assert JOBS[job]["strategy"]["matrix"]["kubernetes"] == list(VERSIONS)


def test_each_job_has_a_limit_and_only_the_permissions_that_it_names() -> None:
    assert {name: each["permissions"] for name, each in WORKFLOWS.items()} == {
        name: {} if name == "release" else {"contents": "read"} for name in WORKFLOWS
    }
    assert [name for name, job in JOBS.items() if "timeout-minutes" not in job] == []


def test_what_publishes_is_asked_for_by_hand_and_approved() -> None:
    may_write = {name for (_, name), job in JOBS.items() if "write" in job.get("permissions", {}).values()}

    assert may_write == {"draft", "publish-docs", "publish-image", "publish-pypi"}
    for name in may_write - {"draft"}:
        job = JOBS["release", name]
        assert (job["if"], job["environment"], job["needs"]) == ("inputs.publish", "release", ["draft"])
    assert (
        WORKFLOWS["release"][True]["workflow_dispatch"]["inputs"]["publish"]["default"] is False
    )  # `on` is YAML's true


def test_the_release_is_a_draft() -> None:
    (make,) = (step["run"] for step in JOBS["release", "draft"]["steps"] if "gh release create" in step.get("run", ""))

    assert re.search(r"gh release create .* --draft ", make)


def test_the_released_chart_names_the_released_image() -> None:
    (package,) = (each["run"] for each in JOBS["release", "packages"]["steps"] if "helm package" in each.get("run", ""))
    (local,) = re.findall(r"s#\^(  repository: \w+)\\\$#", package)

    assert local in (PROJECT / "charts/loadmaster/values.yaml").read_text().splitlines()


@pytest.mark.programs
def test_actionlint_finds_nothing() -> None:
    try:
        go = find_go(cache_directory())
    except BuildError as error:
        pytest.skip(str(error))

    done = subprocess.run(
        [go, "run", ACTIONLINT, *FILES], cwd=Path("/"), capture_output=True, text=True, timeout=300, check=False
    )

    assert (done.returncode, done.stdout) == (0, ""), done.stderr
