"""The recipes work as the page says, in a directory with nothing else in it, and the names next to Go's are ours."""

import inspect
import os
import re
import shutil
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from scheduler import framework as fw
from scheduler import testing
from scheduler.config.load import config_from_dict
from scheduler.framework import handle as handle_module
from scheduler.plugin_loading.in_tree import in_tree
from scheduler.plugin_tools.bench_command import load_file
from scheduler.runtime.profile import POINTS

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples"
RECIPES, _, GO_NAMES = (ROOT / "docs" / "plugins" / "recipes.md").read_text().partition("\n## Go's names and ours\n")
PLUGINS = sorted(path.stem.removeprefix("test_") for path in EXAMPLES.glob("test_*.py") if path.stem != "test_examples")


def run(command: str, directory: Path) -> str:
    """Run a command as an author does, with Loadmaster's programs in the path and nothing of this repository."""
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(directory)}
    done = subprocess.run(
        command,
        shell=True,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def test_each_recipe_passes_its_tests_in_an_empty_directory(tmp_path: Path) -> None:
    for name in PLUGINS:
        for file in (f"{name}.py", f"test_{name}.py"):
            shutil.copy(EXAMPLES / file, tmp_path)

    out = run("python -m pytest -q -p no:cacheprovider", tmp_path)

    assert re.search(r"^\d+ passed", out.splitlines()[-1]), out
    assert len(PLUGINS) == 4


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", RECIPES, re.M | re.S)
    for file in ("partners.py", "test_partners.py"):
        shutil.copy(EXAMPLES / file, tmp_path)

    out = run(f"set -e\n{commands}", tmp_path)

    assert "Partners" in out


def configurations() -> Iterator[Any]:
    for text in re.findall(r"^```yaml\n(.*?)^```$", RECIPES, re.M | re.S):
        yield yaml.safe_load(text)


def test_the_configurations_of_the_page_are_accepted() -> None:
    registry = dict(in_tree())
    for name in PLUGINS:
        registry.update(load_file(str(EXAMPLES / f"{name}.py"), in_tree()).registry)

    enabled = [set(config_from_dict(each, registry).profiles[0].enabled) for each in configurations()]

    assert [each - in_tree().keys() for each in enabled] == [{"Deadline"}, {"Licences"}]


ROWS: Final = re.findall(r"^\| (?!---)(.*?) \| (.*?) \|", GO_NAMES, re.M)
NAMES: Final = sorted({name for _, ours in ROWS for name in re.findall(r"`([^`]+)`", ours)} - {"--plugin-dir"})
VALUES: Final[dict[str, Any]] = {
    "handle": fw.Handle,
    "state": fw.CycleState,
    "nodes": fw.NodeColumns,
    "node": fw.NodeInfo,
    "waiting": handle_module.WaitingPod,
    "fw": fw,
}
"""What the page calls by these names."""

NOT_IMPORTED: Final = ("None", "hint", "problems")
"""What the author writes."""


@pytest.mark.parametrize("name", NAMES)
def test_every_name_beside_gos_is_one_of_ours_with_these_parameters(name: str) -> None:
    path, _, parameters = name.partition("(")
    first, *rest = path.split(".")
    if first in NOT_IMPORTED:
        return
    found = VALUES[first] if first in VALUES else getattr(fw, first, None) or getattr(testing, first)
    for part in rest:
        found = member(found, part)

    if parameters and found not in (testing.a_pod, testing.a_node):
        ours = inspect.signature(found).parameters
        wanted = {each.strip().lstrip("*") for each in parameters.rstrip(")").split(",") if each.strip() != ")"}
        assert wanted - {""} <= ours.keys(), name


def member(owner: Any, name: str) -> Any:
    """A member of a class or module, or the type of one that only instances have."""
    if inspect.isclass(owner):
        hints = typing.get_type_hints(owner)
        if name in hints:
            return hints[name]
    return getattr(owner() if owner is fw.CycleState else owner, name)


OTHER_METHODS: Final = {
    "queue_sort": "less",
    "placement_generate": "generate_placements",
    "placement_score": "score_placement",
    "pod_group_post_filter": "pod_group_victims",
}
"""Extension point → its method, where that has another name."""


def test_the_page_has_all_extension_points_with_names_of_their_own() -> None:
    methods = {kind.__name__: OTHER_METHODS.get(point, point) for point, (kind, *_) in POINTS.items()}

    others = {f"{kind}.{method}" for kind, method in methods.items() if kind != in_camel_case(method)}

    assert others - {name.partition("(")[0] for name in NAMES} == set()


def in_camel_case(method: str) -> str:
    """The base class of an extension point whose name is its method's."""
    return "".join(word.capitalize() for word in method.split("_")) + "Plugin"
