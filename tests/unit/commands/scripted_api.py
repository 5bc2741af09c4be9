"""The fake API server in a thread of its own: for whole commands."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.unit.kube.fake_api import Answer, FakeApi, kubeconfig_text

Script = Mapping[str, Answer | tuple[Answer, ...]]
"""`METHOD /path` → what is answered, in turn, the last one for ever."""


def status(code: int, message: str, **more: Any) -> Answer:
    """An error as the API server tells it."""
    return Answer(code, {"kind": "Status", "apiVersion": "v1", "message": message, "code": code, **more})


def a_list(kind: str, *items: Any, more: str = "") -> Answer:
    """A page of a list; `more`: where the next page begins."""
    return Answer(
        body={"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"continue": more}, "items": list(items)}
    )


def a_program(directory: Path) -> dict[str, str]:
    """What a kubeconfig says of a program that gives another token each time, and writes into `runs` that it ran."""
    version = "client.authentication.k8s.io/v1"
    program = directory / "program"
    program.write_text(
        f"#!/bin/sh\ncd {directory}; echo run >> runs\n"
        f'echo "{{\\"kind\\": \\"ExecCredential\\", \\"apiVersion\\": \\"{version}\\", '
        '\\"status\\": {\\"token\\": \\"$(wc -l < runs | tr -d " ")\\"}}"\n'
    )
    program.chmod(0o755)
    return {"command": str(program), "apiVersion": version}


class ScriptedApi:
    """404 to what is not in the script, as an API server that does not serve it."""

    def __init__(self, script: Script) -> None:
        self._api = FakeApi("the server could not find the requested resource")
        for request, answers in script.items():
            self._api.on(request, *(answers if isinstance(answers, tuple) else (answers,)))
        self.is_hanging = self._api.is_hanging
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._api.server.start_server(shutdown_timeout=0.1))

    @property
    def url(self) -> str:
        return str(self._api.server.make_url("/")).rstrip("/")

    @property
    def asked(self) -> list[str]:
        """`METHOD /path?query` of each request."""
        return [f"{each.method} {each.target}" for each in self._api.requests]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Answer for as long as the block runs."""
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.run_until_complete(self._api.server.close())
            self._loop.close()


@contextmanager
def served(directory: Path, script: Script) -> Iterator[tuple[ScriptedApi, Path]]:
    """An API server, and a kubeconfig for it."""
    api = ScriptedApi(script)
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text(api.url))
    with api.running():
        yield api, kubeconfig
