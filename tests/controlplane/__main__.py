"""The developer's command: `python -m tests.controlplane build|up`."""

import argparse
import shlex
import signal
import sys
from contextlib import suppress
from typing import Final

from tests.controlplane.build import BINARIES, find_binaries
from tests.controlplane.controlplane import ControlPlane, programs
from tests.controlplane.flags import Settings
from tests.controlplane.objects import a_node
from tests.controlplane.processes import ProcessError
from tests.controlplane.toolchain import BuildError

SETTINGS: Final = Settings(
    controller_manager=True,
    kwok=True,
    # The new node's taint would be lifted by a controller, 200 nodes a second; these nodes are born ready.
    disable_admission=("TaintNodesByCondition",),
)


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns 0, or 2 for an error, told on stderr."""
    arguments = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        arguments.run(arguments)
    except (BuildError, ProcessError, TimeoutError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def build(_: argparse.Namespace) -> None:
    for name, path in find_binaries(BINARIES).items():
        print(f"{name:<24} {path}")


def up(arguments: argparse.Namespace) -> None:
    """Run a control plane until SIGTERM or Ctrl-C."""
    find_binaries([*programs(SETTINGS), "kubectl", *(["kube-scheduler"] if arguments.kube_scheduler else [])])
    with suppress(KeyboardInterrupt), ControlPlane(SETTINGS) as controlplane:
        zones = max(1, arguments.zones)
        with controlplane.client() as api:
            api.create_many(a_node(f"node-{i}", zone=f"zone-{i % zones}") for i in range(arguments.nodes))
        if arguments.kube_scheduler:
            controlplane.start_kube_scheduler()
        print(f"export KUBECONFIG={shlex.quote(str(controlplane.kubeconfig()))}", flush=True)
        while True:
            signal.pause()


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    result = argparse.ArgumentParser(
        prog="python -m tests.controlplane",
        description="A Kubernetes control plane with fake nodes on this machine, without Docker.",
    )
    commands = result.add_subparsers(required=True, metavar="COMMAND")
    building = commands.add_parser("build", help="build the binaries into the cache directory, if they are not there")
    building.set_defaults(run=build)
    starting = commands.add_parser("up", help="start a control plane, print its KUBECONFIG, and stay until Ctrl-C")
    starting.set_defaults(run=up)
    starting.add_argument("--nodes", type=int, default=10, help="fake nodes (default: %(default)s)")
    starting.add_argument("--zones", type=int, default=3, help="zones they are in (default: %(default)s)")
    starting.add_argument("--kube-scheduler", action="store_true", help="run kube-scheduler, too")
    return result


if __name__ == "__main__":
    sys.exit(main())
