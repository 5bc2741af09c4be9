"""The command: starts everything, plays the scenes, and ends everything, whatever happens in between.

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
from tests.demo.scenes import BIG_NODE, Scene, all_scenes

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

STAYS: Final = "All yours until Ctrl-C. In another terminal:"
NEXT: Final = (
    ("KEEP=1 make demo", "the same, and stays for you to look at it and change it"),
    (".venv/bin/loadmaster simulate --help", "where would a pod go? No cluster"),
    ("make help", "everything else there is"),
)
LOOK_SECONDS: Final = 0.1
RETRY_SECONDS: Final = 5.0
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
    """Start everything, play, end everything."""
    with ExitStack() as stack:
        with announced("Starting etcd, kube-apiserver and kube-controller-manager" + (", and kwok" if keep else "")):
            cluster = stack.enter_context(ControlPlane(STAYING if keep else SETTINGS))
        with announced("Installing the shipped service account and its RBAC"):
            loadmaster.install_rbac(cluster)
        api = stack.enter_context(cluster.client())
        with announced("Starting `loadmaster run` with that account"):
            process = stack.enter_context(to_be_asked(cluster, api) if keep else loadmaster.start(cluster, QUIET))
        check = Restarts(FOLDER / "pid").check if keep else must_run
        Play(api, process, check).perform(try_it(FOLDER, process.port) if keep else [])


class Play:
    """Plays the scenes on a cluster, and watches over the scheduler meanwhile."""

    def __init__(self, api: Client, scheduler: Component, check: Callable[[Component], None]) -> None:
        """`check`: what is done about a scheduler that has ended."""
        self._api = api
        self._scheduler = scheduler
        self._check = check

    def perform(self, then_try: list[str]) -> None:
        """All scenes. With something to try everything stays until Ctrl-C."""
        for scene in all_scenes():
            self._play(scene)
        if then_try:
            say(STAYS)
            print(*(f"  {line}" for line in then_try), sep="\n", flush=True)
            while True:
                self._wait()
        width = max(len(command) for command, _ in NEXT)
        print("", *(f"  {command:{width}}  {text}" for command, text in NEXT), sep="\n")

    def _play(self, scene: Scene) -> None:
        """Do what the scene does, and say what came of it. Raises ProcessError."""
        say(scene.caption)
        begun = time.monotonic()
        scene.act(self._api)
        while not (outcome := scene.outcome(self._api)):
            if time.monotonic() > begun + SCENE_TIMEOUT:
                log = self._scheduler.log_tail()
                raise ProcessError(f"{scene.caption}\nNot after {SCENE_TIMEOUT:.0f} s. The scheduler's log:\n{log}")
            self._wait()
        print(f"  after {time.monotonic() - begun:.1f} s: {outcome}", flush=True)

    def _wait(self) -> None:
        self._check(self._scheduler)
        time.sleep(LOOK_SECONDS)


def say(what: str) -> None:
    """Say it as the captions of scenes are said."""
    print(f"* {what}", flush=True)


def must_run(scheduler: Component) -> None:
    """Raises ProcessError if the scheduler has ended."""
    if not scheduler.running:
        raise ProcessError(f"the scheduler ended with code {scheduler.exit_code}:\n{scheduler.log_tail()}")


class Restarts:
    """Starts a scheduler again that a user has ended, as a kubelet would; they may have changed its files."""

    def __init__(self, pid_file: Path) -> None:
        self._pid_file = pid_file
        self._next_try = 0.0

    def check(self, scheduler: Component) -> None:
        """Start the scheduler again if it has ended, and say so."""
        if scheduler.running:
            self._pid_file.write_text(f"{scheduler.pid}\n")
            return
        if time.monotonic() < self._next_try:
            return
        code = scheduler.exit_code
        try:
            scheduler.start()
        except ProcessError:  # the configuration may be one that was just edited
            self._next_try = time.monotonic() + RETRY_SECONDS
            say(f"The scheduler does not start, and is tried every {RETRY_SECONDS:g} s: {scheduler.log_tail(1)}")
        else:
            say(f"The scheduler ended with code {code}, and runs again. {STAYS}")


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
