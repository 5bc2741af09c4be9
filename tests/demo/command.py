"""The command: starts everything, plays, sums up, and ends everything, whatever happens in between.

Exit codes: 0, 1 if a scene or a process failed, 2 if it could not begin, 130 after Ctrl-C.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from tests.cluster import loadmaster
from tests.cluster.proxied import own_address, proxied
from tests.controlplane import (
    ApiError,
    ApiUnreachable,
    BuildError,
    Client,
    Component,
    ControlPlane,
    KubectlError,
    ProcessError,
    Settings,
)
from tests.controlplane.build import find_binaries
from tests.demo import report
from tests.demo import screen as screens
from tests.demo.director import Director, SceneError
from tests.demo.feed import Feed
from tests.demo.folder import FOLDER, lay_out
from tests.demo.model import Model
from tests.demo.scenes import all_scenes

QUIET = "-v=0"
"""As it is shipped: no line for each pod."""

EXPLAIN_ROLE = "kube-system:loadmaster:explain"
TITLE = "Loadmaster on a real control plane with fake nodes"
SETTINGS = Settings(
    controller_manager=True,
    kwok=True,
    disable_admission=("TaintNodesByCondition",),  # its taint would be one more reason in the message of `huge`
)
FAILURES = (
    ApiError,
    ApiUnreachable,
    BuildError,
    KubectlError,
    OSError,
    ProcessError,
    SceneError,
    subprocess.SubprocessError,  # kubectl did not answer in time
)


class StepError(Exception):
    """A step failed. `code` is for the shell."""

    def __init__(self, step: str, reason: BaseException, code: int) -> None:
        super().__init__(f"{step} failed: {reason}")
        self.code = code


def main(environment: Mapping[str, str] = os.environ) -> int:
    """Run the demo; return the exit code."""
    if (cluster := environment.get("LOADMASTER_CLUSTER") or "built") != "built":
        print(
            f"make demo: refused with LOADMASTER_CLUSTER={cluster}: it makes nodes, so it runs only on a control plane"
            " of its own. Unset the variable.",
            file=sys.stderr,
        )
        return 2
    keep = environment.get("KEEP", "") not in ("", "0")
    try:
        with step("Building the control plane", code=2):  # it shows its own progress
            find_binaries()
        perform(environment, keep=keep)
    except StepError as error:
        print(f"make demo: {error}\nNothing was left running.", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        print("\nStopped. Nothing was left running.", file=sys.stderr)
        return 130
    return 0


def perform(environment: Mapping[str, str], *, keep: bool) -> None:
    """Start everything, play, sum up, end everything. Raises StepError."""
    with ExitStack() as stack:
        with announced("Starting etcd, kube-apiserver, kube-controller-manager and kwok"):
            cluster = stack.enter_context(ControlPlane(SETTINGS))
        with announced("Installing the shipped service account and its RBAC"):
            loadmaster.install_rbac(cluster)
        api = stack.enter_context(cluster.client())
        with announced("Starting `loadmaster run` with that account"):
            scheduler = stack.enter_context(to_be_asked(cluster, api) if keep else loadmaster.start(cluster, QUIET))
        with step("The demo"):
            feed = stack.enter_context(Feed(cluster))
            director = Director(api, feed, scheduler, screens.choose(environment, TITLE), Model())
            play(director, report.try_it(FOLDER) if keep else [])


def to_be_asked(cluster: ControlPlane, api: Client) -> AbstractContextManager[Component]:
    """The scheduler, by what is in the folder, with its page and behind its Service, where `explain` finds it."""
    options = [QUIET, *lay_out(FOLDER, cluster.kubeconfig(), Path(cluster.kubectl_binary))]
    address = own_address()
    if not address:  # the API server leads to no loopback address: `explain` says so, and decides by itself
        return loadmaster.start(cluster, *options)
    page = [{"op": "add", "path": "/rules/0/nonResourceURLs/-", "value": "/debug/page/*"}]
    cluster.kubectl("patch", "clusterrole", EXPLAIN_ROLE, "--type=json", f"--patch={json.dumps(page)}")
    return proxied(cluster, api, address, "--page", *options)


def play(director: Director, then_try: list[str]) -> None:
    """All scenes, then the summary. With something to try everything stays until Ctrl-C, the summary comes then."""
    played = False
    try:
        with director.screen as screen:
            for scene in all_scenes():
                director.play(scene)
            played = True
            if then_try:
                screen.begin("All yours until Ctrl-C. In another terminal:")
                screen.stay(then_try)
                while True:
                    director.show()
    finally:
        if played:
            director.screen.sum_up(director.model)


@contextmanager
def step(name: str, code: int = 1) -> Iterator[None]:
    """Name what fails in the block."""
    try:
        yield
    except FAILURES as error:
        raise StepError(name, error, code) from error


@contextmanager
def announced(name: str) -> Iterator[None]:
    """A step that says that it begins and how long it took."""
    print(f"{name} ... ", end="", flush=True)
    begun = time.monotonic()
    with step(name):
        try:
            yield
        except BaseException:
            print(flush=True)  # what is said of it begins a line
            raise
    print(f"{time.monotonic() - begun:.1f} s", flush=True)
