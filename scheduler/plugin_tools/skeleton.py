"""A plugin to begin with, and its test: both work as they are."""

import importlib.util
import keyword
import re
import sys
from pathlib import Path
from string import Template
from typing import Final

from scheduler.framework.errors import ConfigError
from scheduler.process.writing import writing
from scheduler.runtime.registry import Registry

_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]*")

_PLUGIN: Final = Template('''\
"""Keep pods on nodes that have a label, and prefer those where its value is the pod's team."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from scheduler import framework as fw

NO_LABEL = fw.unresolvable("node(s) without the label that $name asks for")


@dataclass(frozen=True, slots=True)
class $name(fw.FilterPlugin, fw.ScorePlugin):
    """Refuse nodes without a label; prefer those where it has the value of the pod's label `team`.

    The fields are the plugin's arguments in the configuration file.
    """

    name: ClassVar[str] = "$name"
    label: str = "example.com/team"

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """What may help a pod that was refused: a node that comes, or whose labels change."""
        return (fw.on(fw.NODE, fw.Action.ADD | fw.Action.UPDATE_NODE_LABEL),)

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return None if self.label in node.labels else NO_LABEL

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> int:
        is_ours = node.labels.get(self.label) == pod.labels.get("team")
        return fw.MAX_NODE_SCORE if is_ours else fw.MIN_NODE_SCORE
''')

_TEST: Final = Template("""\
from $module import NO_LABEL, $name

from scheduler.testing import a_cluster, a_node, a_pod, check_plugin, schedule

CART = a_pod("cart", labels={"team": "shop"})
NODES = a_cluster(
    a_node("shops", labels={"example.com/team": "shop"}),
    a_node("banks", labels={"example.com/team": "bank"}),
    a_node("nobodys"),
)


def test_pods_run_on_nodes_with_the_label_and_rather_on_those_of_their_team() -> None:
    decision = schedule($name(), CART, NODES)

    assert decision.refusals == {"nobodys": NO_LABEL.by("$name")}
    assert decision.best == {"shops"}


def test_the_plugin_keeps_what_every_plugin_promises() -> None:
    check_plugin($name(), [CART, a_pod("stranger")], NODES)
""")


def write_skeleton(name: str, directory: str, known: Registry) -> tuple[Path, Path]:
    """Write the files `NAME.py` and `test_NAME.py`, in snake case, and return their paths. Raises ConfigError."""
    if not _NAME.fullmatch(name):
        raise ConfigError([f"{name!r} is no name for a plugin: it should be one word such as GpuGuard"])
    if name in known:
        raise ConfigError([f"{name!r} is the name of a plugin that is in-tree: choose another one"])
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    if module.startswith("test_") or module.endswith("_test") or module == "conftest":
        raise ConfigError([f"{name!r} is no name for a plugin: {module}.py would be taken for a test"])
    if keyword.iskeyword(module):
        raise ConfigError([f"{name!r} is no name for a plugin: {module!r} is a word of Python, and cannot be imported"])
    if module in sys.stdlib_module_names or importlib.util.find_spec(module) is not None:
        raise ConfigError([f"{name!r} is no name for a plugin: its test would find {module}.py instead of a library"])
    folder = Path(directory)
    files = {
        folder / f"{module}.py": _PLUGIN.substitute(name=name),
        folder / f"test_{module}.py": _TEST.substitute(name=name, module=module),
    }
    there = [f"{path}: this file exists already" for path in files if path.exists()]
    if there:
        raise ConfigError(there)
    for path, content in files.items():
        with writing(path), path.open("x", encoding="utf-8") as file:
            file.write(content)
    plugin, test = files
    return plugin, test
