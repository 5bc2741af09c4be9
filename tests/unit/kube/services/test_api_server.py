"""The version and the clock of an API server, whatever it answers."""

import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import BadStatus
from scheduler.kube.services.api_server import ApiServer, ask_api_server
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, fake_client

VERSION = "GET /version"


async def asked(tmp_path: Path, answer: Answer) -> ApiServer:
    async with fake_client(tmp_path, FakeApi().on(VERSION, answer)) as client:
        return await ask_api_server(client)


async def test_it_says_its_version_and_the_time(tmp_path: Path) -> None:
    date = formatdate(time.time() + 100, usegmt=True)

    server = await asked(tmp_path, Answer(200, {"gitVersion": "v1.36.3"}, {"Date": date}))

    assert server.version == "v1.36.3"
    assert server.ahead is not None
    assert 95 < server.ahead < 105


@pytest.mark.parametrize("body", [{}, [], "x", {"gitVersion": 7}])
async def test_one_that_does_not_say_has_no_version(tmp_path: Path, body: Any) -> None:
    assert (await asked(tmp_path, Answer(200, body, {"Date": "yesterday"}))) == ApiServer("", None)


@pytest.mark.parametrize("status", [401, 403])
async def test_one_that_keeps_it_to_itself_is_an_error_of_its_own(tmp_path: Path, status: int) -> None:
    with pytest.raises(BadStatus):
        await asked(tmp_path, Answer(status))


async def test_no_answer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="cannot ask the API server"):
        await asked(tmp_path, LOST)
