"""The HTTP server: health in kube-scheduler's format (`/healthz`, `/livez`, `/readyz`), and `/metrics`.

A health path answers `ok`, or 500 with the list of its checks, as k8s.io/apiserver/pkg/server/healthz writes it:

    [+]ping ok
    [-]sched-handler-sync failed: reason withheld
    readyz check failed

`?verbose` shows the list in any case, `?exclude=NAME` leaves a check out, `/readyz/NAME` asks for one.
"""

import logging
import os
import socket
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, TypeAlias

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from scheduler.framework.errors import ConfigError

log = logging.getLogger(__name__)

Check: TypeAlias = Callable[[], bool]
"""Whether one part is healthy. Must be quick."""


class HttpServer:
    """An async context manager that serves while it is entered."""

    def __init__(
        self,
        registry: CollectorRegistry,
        live: Mapping[str, Check],
        ready: Mapping[str, Check],
        host: str = "0.0.0.0",
        port: int = 10259,
    ) -> None:
        """`live` and `ready` are checks by name; being ready includes being live. Port 0: any free one."""
        self._registry = registry
        self._host = host
        self._port = port
        every = {"ping": _ping, **live, **ready}
        alive = {"ping": _ping, **live}
        self.app = web.Application()
        for name, checks in (("healthz", alive), ("livez", alive), ("readyz", every)):
            handler = _HealthHandler(name, checks)
            self.app.router.add_get(f"/{name}", handler.all)
            self.app.router.add_get(f"/{name}/{{check}}", handler.one)
        self.app.router.add_get("/metrics", self._metrics)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        """Start to listen. Raises ConfigError if the address cannot be bound."""
        runner = web.AppRunner(self.app, access_log=None, handle_signals=False)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port).start()
        except OSError as error:
            await runner.cleanup()
            raise ConfigError([f"cannot listen on {self._host}:{self._port}: {_reason(error)}"]) from error
        self._runner = runner
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def port(self) -> int:
        """The port it listens on."""
        if self._runner is None:
            raise RuntimeError("the server is not started: use it in an `async with` statement")
        return int(self._runner.addresses[0][1])

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        # Not in a thread: some gauges read the scheduler's state, which belongs to the event loop.
        return web.Response(body=encode(self._registry), headers={"Content-Type": content_type})


class _HealthHandler:
    def __init__(self, name: str, checks: Mapping[str, Check]) -> None:
        self._name = name
        self._checks = checks

    async def all(self, request: web.Request) -> web.Response:
        excluded = set(request.query.getall("exclude", []))
        results = {name: _passes(name, check) for name, check in self._checks.items() if name not in excluded}
        passed = all(results.values())
        lines = [f"[+]{name} ok" if ok else f"[-]{name} failed: reason withheld" for name, ok in results.items()]
        if not passed:
            return web.Response(status=500, text="\n".join([*lines, f"{self._name} check failed\n"]))
        if "verbose" in request.query:
            return web.Response(text="\n".join([*lines, f"{self._name} check passed\n"]))
        return web.Response(text="ok")

    async def one(self, request: web.Request) -> web.Response:
        name = request.match_info["check"]
        check = self._checks.get(name)
        if check is None:
            return web.Response(status=404, text="404 page not found\n")
        if _passes(name, check):
            return web.Response(text="ok")
        return web.Response(status=500, text=f"internal server error: {name} failed\n")


def _reason(error: OSError) -> str:
    # asyncio repeats the address, as a tuple; a name that cannot be resolved has error numbers of its own.
    if error.errno is None or isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    return os.strerror(error.errno)


def _ping() -> bool:
    return True


def _passes(name: str, check: Check) -> bool:
    try:
        return check()
    except Exception:
        log.exception("A health check failed to run", extra={"check": name})
        return False
