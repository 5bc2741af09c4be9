"""The developer's command: `python -m tests.controlplane build|up|down|status`."""

import argparse
import sys

from tests.controlplane import daemon
from tests.controlplane.build import BINARIES, find_binaries
from tests.controlplane.processes import ProcessError
from tests.controlplane.toolchain import BuildError


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns 0, or 1 if `status` or `down` find nothing up, or 2 for an error, told on stderr."""
    arguments = parser().parse_args(argv)
    try:
        result: int = arguments.run(arguments)
    except (BuildError, ProcessError, TimeoutError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return result


def build(_: argparse.Namespace) -> int:
    for name, path in find_binaries(BINARIES).items():
        print(f"{name:<24} {path}")
    return 0


def up(arguments: argparse.Namespace) -> int:
    wishes = daemon.Wishes(arguments.nodes, arguments.zones, arguments.kube_scheduler)
    if state := daemon.current():
        print(f"A control plane is up already ({state.server}); `down` ends it.", file=sys.stderr)
        print(state.export_line)
    elif arguments.foreground:
        daemon.serve(wishes)
    else:
        print(daemon.up(wishes).export_line)
    return 0


def down(_: argparse.Namespace) -> int:
    if daemon.down():
        return 0
    print("No control plane is up.", file=sys.stderr)
    return 1


def status(_: argparse.Namespace) -> int:
    state = daemon.current()
    if state is None:
        print("No control plane is up.")
        return 1
    print(daemon.describe(state))
    print(state.export_line)
    return 0


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    defaults = daemon.Wishes()
    result = argparse.ArgumentParser(
        prog="python -m tests.controlplane",
        description="A Kubernetes control plane with fake nodes on this machine, without Docker.",
    )
    commands = result.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: object, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        return added

    command("build", build, "Build the binaries into the cache directory, if they are not there.")
    starting = command("up", up, "Start a control plane in the background and print its KUBECONFIG.")
    starting.add_argument("--nodes", type=int, default=defaults.nodes, help="fake nodes (default: %(default)s)")
    starting.add_argument("--zones", type=int, default=defaults.zones, help="zones they are in (default: %(default)s)")
    starting.add_argument("--kube-scheduler", action="store_true", help="run kube-scheduler, too")
    starting.add_argument("--foreground", action="store_true", help="stay until Ctrl-C")
    command("down", down, "End it; nothing is left.")
    command("status", status, "Say whether one is up and what is in it.")
    return result


if __name__ == "__main__":
    sys.exit(main())
