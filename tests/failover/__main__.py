"""`python -m tests.failover`: alternate SIGTERM and SIGKILL of the leader, and judge the gaps between bindings."""

import argparse
import asyncio
import contextlib
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from tests.bench.wire import Server
from tests.cluster.loadmaster import install_rbac
from tests.cluster.replicas import DEFAULTS, Timing, two_replicas
from tests.controlplane import AsyncClient, ControlPlane, Settings, a_node
from tests.failover import audit, report
from tests.failover.load import Load
from tests.failover.rounds import Failover, How, Round

NODES: Final = 50
NAMESPACE: Final = "failover"
SHORT: Final = Timing(5.0, 3.0, 1.0)
"""So that a kill costs seconds; a fifth of the rounds has the defaults."""

WAYS: Final[tuple[How, ...]] = ("SIGTERM", "SIGKILL")


def series(rounds: int) -> Iterator[tuple[Timing, int]]:
    """Timings, and how many rounds each has."""
    with_defaults = max(rounds // 5, min(rounds, 2))
    if rounds > with_defaults:
        yield SHORT, rounds - with_defaults
    yield DEFAULTS, with_defaults


class Series:
    """All rounds of one timing, under a load of their own."""

    def __init__(self, controlplane: ControlPlane, timing: Timing, rate: float) -> None:
        self._controlplane = controlplane
        self._timing = timing
        self._rate = rate

    async def play(self, numbers: range) -> tuple[list[Round], list[str]]:
        """Play the rounds of these numbers; return them, and the pods that moved. Raises TimeoutError."""
        async with contextlib.AsyncExitStack() as stack:
            admin = stack.enter_context(self._controlplane.client())
            starting = two_replicas(self._controlplane, admin, self._timing)
            replicas = await asyncio.to_thread(starting.__enter__)
            stack.callback(starting.__exit__, None, None, None)
            api = await stack.enter_async_context(self._controlplane.async_client())
            credentials = self._controlplane.credentials
            server = Server(self._controlplane.apiserver.port, credentials.ca, credentials.tokens["admin"])
            load = Load(server, NAMESPACE, self._rate, f"lease-{self._timing.lease:g}")
            async with seen(load, api):
                failover = Failover(replicas, load, self._timing, self._rate)
                return [told(await failover.play(number, WAYS[number % 2])) for number in numbers], load.bindings.moved


@contextlib.asynccontextmanager
async def seen(load: Load, api: AsyncClient) -> AsyncIterator[None]:
    """Have pods come and watch them; afterwards they are gone."""
    watching = asyncio.create_task(load.watch(api))
    load.__enter__()
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await asyncio.to_thread(load.__exit__)
        await api.delete_all("Pod", NAMESPACE)


def told(played: Round) -> Round:
    """Print a round."""
    print(
        f"{played.number:3} {played.how} lease {played.lease:g} s: {played.gap:.2f} s without a binding, "
        f"{played.allowed:g} s allowed; as before after {played.again:.1f} s",
        flush=True,
    )
    return played


async def play(controlplane: ControlPlane, rounds: int, rate: float) -> tuple[list[Round], list[str]]:
    """Play all rounds; return them, and the pods that moved. Raises TimeoutError."""
    played: list[Round] = []
    moved: list[str] = []
    for timing, count in series(rounds):
        more = await Series(controlplane, timing, rate).play(range(len(played) + 1, len(played) + count + 1))
        played += more[0]
        moved += more[1]
    return played, moved


def keep_logs(directory: Path, out: Path) -> None:
    """Keep what the replicas had to say."""
    out.mkdir(parents=True, exist_ok=True)
    for log in directory.glob("replica-*.log"):
        shutil.copy(log, out)


def main() -> int:
    """Returns 0 if all gaps are right and nothing was bound twice, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.failover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--rate", type=float, default=200.0, help="pods a second")
    parser.add_argument("--out", type=Path, default=Path("build/failover"))
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="loadmaster-failover-")))
        settings = Settings(apiserver_flags=audit.flags(directory))
        with ControlPlane(settings) as controlplane:
            install_rbac(controlplane)
            controlplane.create_namespace(NAMESPACE)
            with controlplane.client() as api:
                api.create_many(a_node(f"node-{i}", pods="1000") for i in range(NODES))
            try:
                played, moved = asyncio.run(play(controlplane, arguments.rounds, arguments.rate))
            finally:
                keep_logs(controlplane.directory, arguments.out)
        answers = audit.read(audit.log_in(directory))
    report.write(arguments.out, played, answers)
    print(f"\n{report.table(played)}\n\n{report.told(answers)}")
    problems = report.verdict(played, answers, moved)
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
