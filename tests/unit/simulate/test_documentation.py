"""The command of the README dumps all that counts."""

import re
from pathlib import Path

import plugins
from scheduler.config.load import load_config
from scheduler.cycle.writers import Writers
from scheduler.engine.engine import build_engine
from scheduler.framework.nodes.resources import SINCE_1_37
from scheduler.process.metrics import Metrics
from scheduler.simulate.apiserver.creation import USED
from scheduler.simulate.other_objects import guessed_plural
from scheduler.simulate.recording import RecordingWriters
from scheduler.state.simulated_api import SimulatedApi

README = Path(__file__).parents[3] / "README.md"
MADE_OF_WORKLOADS = {"daemonsets", "deployments", "jobs"}
"""Of a running cluster their pods are there."""


def dumped() -> set[str]:
    match = re.search(r"kubectl get -A -o json ([\w,\\\n]+) > cluster\.json", README.read_text())
    assert match is not None
    return set(re.findall(r"\w+", match[1]))


def test_the_command_dumps_all_that_default_plugins_look_up() -> None:
    recording = RecordingWriters()
    writers = Writers(recording, recording, recording, recording, SimulatedApi())
    engine = build_engine(load_config(None, plugins.IN_TREE), plugins.IN_TREE, writers, Metrics(), lambda: 0.0)
    read = {resource.plural for resource in engine.watched.values() if resource not in SINCE_1_37}
    engine.close()

    assert read | {"pods", "nodes"} <= dumped()


def test_the_command_dumps_all_that_counts_for_new_pods() -> None:
    plurals = {guessed_plural(label.partition(" ")[0]) for label in USED}

    assert plurals - MADE_OF_WORKLOADS <= dumped()
