"""The command: starts everything, plays the scenes, sums up, and ends everything, whatever happens in between.

Exit codes: 0, 1 if a scene or a process failed, 2 if it could not begin, 130 after Ctrl-C.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console

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
from tests.controlplane.controlplane import programs
from tests.demo.feed import Feed, watching
from tests.demo.model import Model
from tests.demo.restarts import STAYS, Restarts, must_run
from tests.demo.scenes import BIG_NODE, Scene, all_scenes
from tests.demo.view import Screen, ending

FOLDER: Final = Path(__file__).parents[2] / "build" / "demo"
"""While the demo stays: what leads to the cluster, and what the scheduler goes by, for you to change."""

CONFIG: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: loadmaster
"""
QUIET: Final = "-v=0"
"""As it is shipped: no line for each pod."""

FRAME_SECONDS: Final = 0.125
SCENE_TIMEOUT: Final = 60.0
"""Seconds for a scene to have its effect. Usual is 1 to 3; the rest is for a machine that is busy."""

EXPLAIN_ROLE: Final = "kube-system:loadmaster:explain"
SETTINGS: Final = Settings(
    controller_manager=True,
    disable_admission=("TaintNodesByCondition",),  # its taint would be one more reason in the message of `huge`
)
STAYING: Final = replace(SETTINGS, kwok=True)
"""Pods that a user deletes go only once something in the place of a kubelet agrees."""
FAILURES: Final = (ApiError, ApiUnreachable, KubectlError, OSError, ProcessError, subprocess.SubprocessError)


def main() -> int:
    """Run the demo; return the exit code."""
    if (cluster := os.environ.get("LOADMASTER_CLUSTER") or "built") != "built":
        print(
            f"make demo: refused with LOADMASTER_CLUSTER={cluster}: it makes nodes, so it runs only on a control plane"
            " of its own. Unset the variable.",
            file=sys.stderr,
        )
        return 2
    try:
        keep = os.environ.get("KEEP", "") not in ("", "0")
        find_binaries(needed(keep=keep))  # builds them, and shows its own progress
        perform(keep=keep)
    except BuildError as error:
        print(f"make demo: Building the control plane failed: {error}", file=sys.stderr)
        return 2
    except FAILURES as error:
        print(f"make demo: {error}\nNothing was left running.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Nothing was left running.", file=sys.stderr)
        return 130
    return 0


def needed(*, keep: bool) -> list[str]:
    """The programs that it starts."""
    return [*programs(STAYING), "kubectl"] if keep else programs(SETTINGS)


def perform(*, keep: bool) -> None:
    """Start everything, play, sum up, end everything."""
    with ExitStack() as stack:
        with announced("Starting etcd, kube-apiserver and kube-controller-manager" + (", and kwok" if keep else "")):
            cluster = stack.enter_context(ControlPlane(STAYING if keep else SETTINGS))
        with announced("Installing the shipped service account and its RBAC"):
            loadmaster.install_rbac(cluster)
        api = stack.enter_context(cluster.client())
        with announced("Starting `loadmaster run` with that account"):
            process = stack.enter_context(to_be_asked(cluster, api) if keep else loadmaster.start(cluster, QUIET))
        feed = stack.enter_context(watching(cluster))
        watch = Restarts(FOLDER / "pid").check if keep else must_run
        screen = Screen(Console(highlight=False))
        Play(api, feed, process, screen, watch).perform(try_it(FOLDER, process.port) if keep else [])


class Play:
    """Plays the scenes on a cluster and watches over the scheduler meanwhile.

    `watch` says what has become of the scheduler, if there is news. Raises ProcessError if that ends the demo.
    """

    def __init__(
        self, api: Client, feed: Feed, scheduler: Component, screen: Screen, watch: Callable[[Component], str]
    ) -> None:
        self._api = api
        self._feed = feed
        self._scheduler = scheduler
        self._screen = screen
        self._watch = watch
        self._model = Model()

    def perform(self, then_try: list[str]) -> None:
        """All scenes, then the summary. With something to try everything stays until Ctrl-C, the summary comes then."""
        played = False
        try:
            with self._screen.open():
                for scene in all_scenes():
                    self._play(scene)
                played = True
                if then_try:
                    self._screen.begin(STAYS)
                    self._screen.stay(then_try)
                    while True:
                        self._show()
        finally:
            if played:
                self._screen.console.print(ending(self._model, self._screen.console))

    def _play(self, scene: Scene) -> None:
        """Do what the scene does and show it until it has had its effect. Raises ProcessError."""
        self._screen.begin(scene.caption)
        before, begun = len(self._model.bound), time.monotonic()
        scene.act(self._api)
        while not scene.done(self._model):
            if time.monotonic() > begun + SCENE_TIMEOUT:
                log = self._scheduler.log_tail()
                raise ProcessError(f"{scene.caption}\nNot after {SCENE_TIMEOUT:.0f} s. The scheduler's log:\n{log}")
            self._show()
        self._screen.end(self._model, before)
        while time.monotonic() < begun + scene.seconds:
            self._show()

    def _show(self) -> None:
        """Show what happens until the next frame is due. Raises ProcessError if the end of the scheduler ends this."""
        self._feed.update(self._model, until=time.monotonic() + FRAME_SECONDS)
        self._screen.tick(self._model)
        if news := self._watch(self._scheduler):
            self._screen.begin(news)


def to_be_asked(cluster: ControlPlane, api: Client) -> AbstractContextManager[Component]:
    """The scheduler, by what is in the folder, with its page and behind its Service, where `explain` finds it."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    plugins, config = FOLDER / "plugins", FOLDER / "config.yaml"
    plugins.mkdir(parents=True)
    config.write_text(CONFIG)
    ours = Path(sys.executable).parent / "loadmaster"
    for name, target in (
        ("kubeconfig", cluster.kubeconfig()),
        ("kubectl", Path(cluster.kubectl_binary)),
        ("loadmaster", ours),
    ):
        (FOLDER / name).symlink_to(target)
    options = [QUIET, f"--config={config}", f"--plugin-dir={plugins}"]
    address = own_address()
    if not address:  # the API server leads to no loopback address: `explain` says so, and decides by itself
        return loadmaster.start(cluster, *options)
    page = [{"op": "add", "path": "/rules/0/nonResourceURLs/-", "value": "/debug/page/*"}]
    cluster.kubectl("patch", "clusterrole", EXPLAIN_ROLE, "--type=json", f"--patch={json.dumps(page)}")
    return proxied(cluster, api, address, "--page", *options)


def try_it(folder: Path, port: int) -> list[str]:
    """What to type in another terminal while everything runs; the folder has kubeconfig, kubectl and loadmaster."""
    quoted = shlex.quote(str(folder))
    return [
        f"export KUBECONFIG={quoted}/kubeconfig PATH={quoted}:$PATH",
        "kubectl scale deployment web --replicas=100",
        "kubectl cordon b-2; kubectl rollout restart deployment api",
        f"kubectl cordon {BIG_NODE}; kubectl delete pod -l app=huge",
        "loadmaster explain $(kubectl get pod -l app=huge -o name | cut -d/ -f2)",
        f"curl -sk https://127.0.0.1:{port}/metrics | grep pending_pods",
        f"kill $(cat {quoted}/pid)  # restarts it; it also takes over what you change in config.yaml and plugins there",
        "loadmaster page",
    ]


@contextmanager
def announced(name: str) -> Iterator[None]:
    """A step that says that it begins and how long it took."""
    print(f"{name} ... ", end="", flush=True)
    begun = time.monotonic()
    try:
        yield
    except BaseException:
        print("failed", flush=True)
        raise
    print(f"{time.monotonic() - begun:.1f} s", flush=True)
