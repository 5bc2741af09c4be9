"""`python -m tests.kind up|down|test|install`: see `make kind`, `kind-down`, `kind-test` and `kind-deps`."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.chart import HelmError
from tests.controlplane.cluster import KubectlError
from tests.controlplane.toolchain import BuildError
from tests.image.debian import ImageError
from tests.kind import cluster, engine, image, node_image, requirements
from tests.kind.cluster import KindCluster, State
from tests.kind.engine import Engine, EngineError, RefusedError
from tests.kind.kubernetes import Kubernetes, VersionError, requested
from tests.kind.release import install_example, install_loadmaster, remove_example

PYTEST = (sys.executable, "-m", "pytest", "--override-ini=testpaths=tests/kind")
ERRORS = (BuildError, EngineError, HelmError, ImageError, KubectlError, TimeoutError, VersionError)


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns its exit code; 2 for an error, told on stderr."""
    parser = argparse.ArgumentParser(prog="python -m tests.kind")
    parser.add_argument("command", choices=("up", "down", "test", "install"))
    arguments, pytest_arguments = parser.parse_known_args(argv)
    try:
        match arguments.command:
            case "up":
                return up()
            case "down":
                return down()
            case "test":
                return test(pytest_arguments)
            case _:
                return requirements.install()
    except ERRORS as error:
        print(error, file=sys.stderr)
        if isinstance(error, ImageError):
            print("`sudo make kind-deps` installs what makes images where none can be pulled.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def up() -> int:
    """Make the cluster, or bring the one that is there up to date, and say how to look around."""
    if lacks := requirements.missing():
        print("No kind cluster can run here. Missing:", *lacks, sep="\n  ", file=sys.stderr)
        return 2
    found, _ = ensure()
    with KindCluster(found) as kind, timed("example workloads"):
        install_example(kind)
    print(how_to_look_around(found))
    return 0


def ensure() -> tuple[State, bool]:
    """The cluster with Loadmaster as it is in this directory, and whether it was made now."""
    kubernetes = requested(os.environ)
    with timed("engine"):
        running = engine.find_or_start()
    state = State.load()
    made = state is None or not cluster.exists(running)
    if state and not made and os.environ.get("KUBERNETES") and not kubernetes.covers(state.kubernetes):
        raise VersionError(f"The cluster that is there has Kubernetes {state.kubernetes}: `make kind-down` first.")
    try:
        if made:
            state = make(running, kubernetes)
        assert state is not None
        update(running, state)
    except BaseException:
        if made and os.environ.get("KEEP") != "1":
            end(running)
        raise
    return state, made


def make(running: Engine, kubernetes: Kubernetes) -> State:
    """Make the cluster."""
    with timed("node image"):
        nodes = node_image.ensure(running, kubernetes)
        running.check_privileged(nodes)
    with timed("cluster"):
        return cluster.create(running, nodes)


def update(running: Engine, state: State) -> None:
    """Have Loadmaster on the cluster as it is in this directory."""
    with timed("Loadmaster's image"):
        loadmaster = image.build(running)
    with KindCluster(state) as kind:
        with timed("image on the nodes"):
            kind.load(loadmaster)
        with timed("chart"):
            install_loadmaster(kind, loadmaster)


def down() -> int:
    """Delete the cluster, and end our own engine."""
    running = engine.find()
    if running is None or not cluster.exists(running):
        print("There is no kind cluster.", file=sys.stderr)
    if running:
        end(running)
    return 0


def end(running: Engine) -> None:
    """Leave no cluster, and no engine of our own."""
    if cluster.exists(running):
        cluster.delete(running)
    if running == engine.own():
        engine.stop(engine.own_directory())


def test(arguments: list[str]) -> int:
    """Run the tests; return pytest's exit code. A cluster that is made for them is deleted afterwards."""
    try:
        if lacks := requirements.missing():
            raise RefusedError("Missing:\n  " + "\n  ".join(lacks))
        state, made = ensure()
    except RefusedError as refused:
        print(f"Skipped: no kind cluster can run here. {refused}", file=sys.stderr)
        return 0
    try:
        with KindCluster(state) as kind:
            remove_example(kind)
        with timed("tests"):
            return subprocess.run([*PYTEST, *arguments], check=False).returncode
    finally:
        if made and os.environ.get("KEEP") != "1":
            with timed("end of the cluster"):
                down()


def how_to_look_around(state: State) -> str:
    """What a user types next."""
    running = Engine(state.engine, state.host)
    lines = [
        f"Loadmaster places pods on a kind cluster with Kubernetes {state.kubernetes}: three nodes in three zones.",
        "",
        f"  export KUBECONFIG={cluster.kubeconfig()}",
        *([f"  {running.export_line}"] if running.host else []),
        f"  export PATH={':'.join(str(path.parent) for path in cluster.programs(running))}:$PATH",
        "  kubectl get pods --output=wide                     where the pods of the example are",
        "  kubectl --namespace=kube-system logs deploy/loadmaster",
        "  .venv/bin/loadmaster explain default/too-large     why a pod is pending",
        "  .venv/bin/loadmaster page                          all of it in a browser",
        "",
        "`make kind` again takes up what you changed; `make kind-down` deletes the cluster.",
    ]
    return "\n".join(lines)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long a step took."""
    started = time.monotonic()
    yield
    print(f"--- {what}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
