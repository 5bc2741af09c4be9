"""Blocks that are no commands: YAML is judged by who reads it, Python compiles, markers have their reasons."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from scheduler.config.load import config_from_dict
from scheduler.plugin_loading.in_tree import in_tree
from scheduler.plugin_tools.bench_command import load_file
from tests.chart.helm import CHART, Helm
from tests.cluster.loadmaster import define
from tests.cluster.native_groups import COMPOSITE_APIS, COMPOSITE_GATES
from tests.controlplane import ControlPlane, Settings
from tests.controlplane.definitions import ELASTIC_QUOTA, KUEUE, POD_GROUP
from tests.docs.pages import Block, blocks, pages

ALL: Final = [block for page in pages() for block in blocks(page)]
EXAMPLES: Final = Path(__file__).parents[2] / "docs" / "examples"
NOT_RUN_AT_MOST: Final = 28


def of(language: str) -> list[Any]:
    return [pytest.param(block, id=block.place) for block in ALL if block.language == language]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """An API server that has what the pages show, groups of pods and quotas among it."""
    with ControlPlane(Settings().with_feature_gates(COMPOSITE_GATES, COMPOSITE_APIS)) as controlplane:
        define(controlplane, POD_GROUP, *KUEUE, ELASTIC_QUOTA)
        controlplane.create_namespace("team-a")
        yield controlplane


@pytest.fixture(scope="module")
def registry() -> dict[str, Any]:
    """The plugins that the pages may name: ours, and those of the examples."""
    found = dict(in_tree())
    for path in sorted(EXAMPLES.glob("*.py")):
        if not path.name.startswith("test_"):
            found.update(load_file(str(path), in_tree()).registry)
    return found


@pytest.mark.parametrize("block", of("yaml"))
def test_yaml_is_what_its_reader_accepts(
    block: Block, cluster: ControlPlane, registry: dict[str, Any], tmp_path: Path
) -> None:
    for document in yaml.safe_load_all(block.text):
        if block.marker == "part":
            continue
        if isinstance(document, dict) and document.get("kind") == "KubeSchedulerConfiguration":
            config_from_dict(document, registry)
        elif isinstance(document, dict) and "kind" in document:
            cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=json.dumps(document))
        elif isinstance(document, dict) and document.keys() <= values_of_the_chart():
            Helm(tmp_path).render(document)
        else:
            pytest.fail(f"{block.place}: neither a configuration, nor an object, nor values: mark it as a part")


def values_of_the_chart() -> set[str]:
    return set(yaml.safe_load((CHART / "values.yaml").read_text()))


@pytest.mark.parametrize("block", of("python"))
def test_python_compiles(block: Block) -> None:
    compile(block.text, block.place, "exec", flags=0x2000)  # with `await` at the top, as in a plugin's method


def test_a_block_that_is_not_run_has_a_reason_and_they_are_few() -> None:
    marked = [block for block in ALL if block.marker == "not-run"]

    assert [block.place for block in marked if len(block.about) < 10] == []
    assert len(marked) <= NOT_RUN_AT_MOST
