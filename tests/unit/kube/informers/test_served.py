"""Whether a resource is served: what discovery says."""

from pathlib import Path
from typing import Any

import pytest

from scheduler.framework.errors import ClusterError
from scheduler.framework.nodes.resources import parse_resource
from scheduler.kube.informers.served import Served
from tests.fakes import run
from tests.unit.kube.fake_api import Answer, FakeApi, fake_client

VERSION = "GET /apis/example.com/v1"
GROUPS = "GET /apis"


def resources(*names: str, verbs: tuple[str, ...] = ("get", "list", "watch")) -> Answer:
    return Answer(body={"resources": [{"name": name, "verbs": list(verbs)} for name in names]})


def groups(*names: str) -> Answer:
    return Answer(body={"groups": [{"name": name} for name in names]})


def ask(directory: Path, name: str, answers: dict[str, Answer]) -> bool:
    async def scenario() -> bool:
        api = FakeApi()
        for request, answer in answers.items():
            api.on(request, answer)
        async with fake_client(directory, api) as client:
            return await Served(client, parse_resource(name)).ask()

    return run(scenario())


@pytest.mark.parametrize(
    ("answers", "served"),
    [
        pytest.param({}, False, id="no such group and version"),
        pytest.param({VERSION: resources("foos")}, False, id="only another resource"),
        pytest.param({VERSION: resources("budgets", verbs=("create",))}, False, id="not to be watched"),
        pytest.param({VERSION: resources("budgets"), GROUPS: groups("apps")}, False, id="not yet among the groups"),
        pytest.param({VERSION: resources("budgets"), GROUPS: groups("apps", "example.com")}, True, id="served"),
    ],
)
def test_a_resource_is_served_once_kopf_can_find_it(tmp_path: Path, answers: dict[str, Any], served: bool) -> None:
    assert ask(tmp_path, "budgets.v1.example.com", answers) is served


def test_a_resource_of_the_core_group_is_looked_for_there(tmp_path: Path) -> None:
    assert ask(tmp_path, "Service", {"GET /api/v1": resources("services")})


@pytest.mark.parametrize("answer", [Answer(503), Answer(body={"resources": 3})], ids=["error", "nonsense"])
def test_an_api_server_in_trouble_says_neither_yes_nor_no(tmp_path: Path, answer: Answer) -> None:
    with pytest.raises(ClusterError):
        ask(tmp_path, "budgets.v1.example.com", {VERSION: answer})
