"""A control plane that stays: `up` starts it in the background, `down` ends it, `status` tells.

The background process holds a lock on the state file as long as it lives, and writes into it where the control plane
is. So whether one is up is asked of the kernel, and a state file that a crash left behind is never believed.
"""

import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.controlplane.build import cache_directory, find_binaries
from tests.controlplane.client import ApiError, ApiUnreachable
from tests.controlplane.cluster import wait_until
from tests.controlplane.controlplane import ControlPlane, programs
from tests.controlplane.flags import Settings
from tests.controlplane.objects import a_node
from tests.controlplane.processes import ProcessError
from tests.controlplane.sync import Client

ROOT: Final = Path(__file__).parents[2]
SETTINGS: Final = Settings(
    controller_manager=True,
    kwok=True,
    # The new node's taint would be lifted by a controller, 200 nodes a second; these nodes are born ready.
    disable_admission=("TaintNodesByCondition",),
)
START_TIMEOUT: Final = 300.0
"""Seconds for a start with very many nodes on a busy machine; usual is 4."""


@dataclass(frozen=True, slots=True)
class State:
    """What the background process says of itself."""

    pid: int
    server: str
    kubeconfig: str

    @property
    def export_line(self) -> str:
        """The line for the user's shell."""
        return f"export KUBECONFIG={shlex.quote(self.kubeconfig)}"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What `up` is asked for."""

    nodes: int = 10
    zones: int = 3
    kube_scheduler: bool = False

    def arguments(self) -> list[str]:
        """The command line that says the same."""
        flags = ["--kube-scheduler"] if self.kube_scheduler else []
        return [f"--nodes={self.nodes}", f"--zones={self.zones}", *flags]

    def programs(self) -> list[str]:
        """The binaries that it takes."""
        return [*programs(SETTINGS), "kubectl", *(["kube-scheduler"] if self.kube_scheduler else [])]


def up(wishes: Wishes) -> State:
    """Start a control plane in the background and return when it is ready. Raises BuildError or ProcessError."""
    find_binaries(wishes.programs())  # here, where its progress is seen
    log = state_file().with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.controlplane", "up", "--foreground", *wishes.arguments()],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        wait_until(lambda: current() or process.poll() is not None, START_TIMEOUT, "the start of the control plane")
    except BaseException:  # Ctrl-C, too
        process.terminate()
        process.wait()
        raise
    state = current()
    if state is None:
        raise ProcessError(f"the control plane did not start:\n{log.read_text(errors='replace').strip()}")
    return state


def serve(wishes: Wishes) -> None:
    """Run a control plane in this process until SIGTERM or Ctrl-C. Raises ProcessError, also if one is up already."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), published_state() as publish, ControlPlane(SETTINGS) as cp:
        with cp.client() as api:
            zones = max(1, wishes.zones)
            api.create_many(a_node(f"node-{i}", zone=f"zone-{i % zones}") for i in range(wishes.nodes))
        if wishes.kube_scheduler:
            cp.start_kube_scheduler()
        state = State(os.getpid(), cp.server, str(cp.kubeconfig()))
        publish(state)
        print(state.export_line, flush=True)
        while True:
            signal.pause()


def down(timeout: float = 60.0) -> bool:
    """End the control plane that is up, and return when nothing of it is left; False if none was up."""
    state = current()
    if state is None:
        if not locked():  # else one is starting
            remove_files()
        return False
    os.kill(state.pid, signal.SIGTERM)
    wait_until(lambda: not locked(), timeout, "the end of the control plane")
    remove_files()
    return True


def remove_files() -> None:
    """Remove what a control plane that is not up any more has left in the cache directory."""
    for path in (state_file(), state_file().with_suffix(".log")):
        path.unlink(missing_ok=True)


def describe(state: State) -> str:
    """What is in the control plane and whether it answers."""
    try:
        with Client(Path(state.kubeconfig)) as api:
            nodes, pods = len(api.list("Node")), api.list("Pod")
    except (ApiError, ApiUnreachable) as error:
        return f"up, but {state.server} does not answer: {error}"
    waiting = sum(1 for pod in pods if not pod["spec"].get("nodeName"))
    return f"up: {state.server}, {nodes} nodes, {len(pods)} pods, {waiting} of them waiting for a node"


def current() -> State | None:
    """The control plane that is up and ready, if any."""
    if not locked():
        return None
    with suppress(FileNotFoundError, json.JSONDecodeError):  # it is just ending, or just starting
        return State(**json.loads(state_file().read_text()))
    return None


def state_file() -> Path:
    """Where the background process writes its state."""
    return cache_directory() / "up.json"


def locked() -> bool:
    """Whether a process holds the state file."""
    try:
        with state_file().open("r") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


@contextmanager
def published_state() -> Iterator[Callable[[State], None]]:
    """Hold the state file and remove it at the end; the function given writes into it. Raises ProcessError."""
    path = state_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ProcessError("a control plane is up already, or starting") from None

        def publish(state: State) -> None:
            stream.write(json.dumps(asdict(state)))
            stream.flush()

        stream.truncate(0)  # what a crash left
        try:
            yield publish
        finally:
            path.unlink(missing_ok=True)
