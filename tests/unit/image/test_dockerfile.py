import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from scheduler.config.options import RunOptions
from tests.image.contents import PROGRAM, USER
from tests.image.locks import PROJECT

DOCKERFILE = (PROJECT / "Dockerfile").read_text()
DESCRIPTION: dict[str, Any] = tomllib.loads((PROJECT / "pyproject.toml").read_text())
MANIFEST = list(yaml.safe_load_all((PROJECT / "deploy/loadmaster.yaml").read_text()))
(DEPLOYMENT,) = (each for each in MANIFEST if each["kind"] == "Deployment")
POD = DEPLOYMENT["spec"]["template"]["spec"]
VALUES = yaml.safe_load((PROJECT / "charts/loadmaster/values.yaml").read_text())


def instruction(pattern: str) -> str:
    (found,) = re.findall(rf"^{pattern}$", DOCKERFILE, re.MULTILINE)
    return str(found)


def test_the_port_is_everywhere_the_same() -> None:
    (container,) = POD["containers"]
    ports = {
        VALUES["port"],
        RunOptions({}).serving.secure_port,
        *(each["containerPort"] for each in container["ports"]),
    }

    assert ports == {int(instruction(r"EXPOSE (\d+)"))}


def test_the_user_is_everywhere_the_same() -> None:
    assert instruction(r"USER (\d+:\d+)") == f"{USER}:{USER}"
    assert (POD["securityContext"]["runAsUser"], POD["securityContext"]["runAsGroup"]) == (USER, USER)


def test_the_entry_point_is_what_the_check_of_the_image_looks_for() -> None:
    assert instruction(r"ENTRYPOINT \[\"/(.*)\"\]") == PROGRAM


def test_the_version_is_the_project_s_and_the_chart_s() -> None:
    version = DESCRIPTION["project"]["version"]
    chart = yaml.safe_load((PROJECT / "charts/loadmaster/Chart.yaml").read_text())

    assert instruction(r"ARG VERSION=(.*)") == version
    assert chart["appVersion"] == version


def test_everything_that_is_copied_is_sent_to_the_builder() -> None:
    sent = [line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [
        name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()
    ]

    assert copied
    assert [name for name in copied if not any(fnmatch(name, pattern) for pattern in sent)] == []
    assert [name for name in sent if not Path(PROJECT, name).exists()] == []
