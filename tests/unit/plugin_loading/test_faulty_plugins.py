"""Each plugin that cannot be loaded costs one clear line, with file and line, and all are told at once."""

from pathlib import Path

import pytest

from plugins import IN_TREE
from scheduler.framework.errors import ConfigError
from scheduler.plugin_loading.load import load
from scheduler.plugin_loading.sources import PluginSources, read_sources
from scheduler.plugin_loading.trial import try_out
from tests.unit.plugin_loading.faulty import FAULTY, Faulty

pytestmark = pytest.mark.programs


def written(directory: Path, name: str, faulty: Faulty) -> list[str]:
    """Write the file, and return what is to be said of it."""
    path = directory / f"{name}.py"
    path.write_bytes(faulty.source.encode(errors="surrogateescape"))
    return [problem.replace("FILE", str(path)) for problem in faulty.problems]


def sources_in(directory: Path) -> PluginSources:
    problems: list[str] = []
    sources = read_sources([str(directory)], [], [], problems)
    assert problems == []
    return sources


@pytest.mark.parametrize("fault", [name for name, each in FAULTY.items() if not each.ends_its_process])
def test_a_fault_is_one_clear_line(fault: str, tmp_path: Path) -> None:
    expected = written(tmp_path, "mine", FAULTY[fault])
    (tmp_path / "_helpers.py").write_text("x = 1\n")

    with pytest.raises(ConfigError) as caught:
        load(sources_in(tmp_path), IN_TREE, {})

    assert list(caught.value.problems) == expected


def test_all_faults_are_told_at_once_and_none_of_them_runs_here(tmp_path: Path) -> None:
    expected = [
        line for index, faulty in enumerate(FAULTY.values()) for line in written(tmp_path, f"p{index:02}", faulty)
    ]
    (tmp_path / "_helpers.py").write_text("x = 1\n")

    assert len(FAULTY) >= 50
    assert sorted(try_out(sources_in(tmp_path), IN_TREE, seconds=2)) == sorted(expected)
