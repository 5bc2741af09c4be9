"""What a plugin author imports is the interface alone: the engine that runs plugins is not loaded with it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

ENGINE = ("runtime", "state", "queue", "cycle", "config", "kube", "serve", "simulate")


def loaded_by(statement: str) -> list[str]:
    """Return the names of our own modules that a new interpreter has loaded after a statement."""
    script = f"{statement}; import sys; print(*sorted(name for name in sys.modules if name.startswith('scheduler')))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_the_interface_loads_no_module_of_the_engine() -> None:
    loaded = loaded_by("from scheduler import framework as fw; fw.Plugin")

    rooms = [name.split(".")[1] for name in loaded if "." in name]
    assert {room: rooms.count(room) for room in ENGINE} == dict.fromkeys(ENGINE, 0)
    assert set(rooms) == {"api", "framework"}


@pytest.mark.parametrize(
    "statement",
    [
        "from scheduler.framework import *; found = FilterPlugin",
        "from scheduler.framework import FilterPlugin as found",
        "import scheduler.framework; found = scheduler.framework.FilterPlugin",
        "import scheduler.framework; assert 'FilterPlugin' in dir(scheduler.framework); found = 1",
    ],
)
def test_the_names_are_there_however_they_are_imported(statement: str) -> None:
    assert "scheduler.framework.exported" in loaded_by(f"{statement}; assert found")


def test_errors_come_without_all_that_plugins_may_use() -> None:
    loaded = loaded_by("from scheduler.framework.errors import ConfigError")

    assert set(loaded) == {
        "scheduler",
        "scheduler.api",
        "scheduler.api.read_only",
        "scheduler.api.wording",
        "scheduler.api.wording.text",
        "scheduler.framework",
        "scheduler.framework.errors",
    }


def test_plugins_of_the_tree_import_what_plugin_authors_import() -> None:
    imported = {
        name
        for path in (ROOT / "plugins").rglob("*.py")
        for name in re.findall(r"^from (scheduler[.\w]*) import", path.read_text(), re.MULTILINE)
    }

    assert {name for name in imported if not f"{name}.".startswith("scheduler.api.")} == {
        "scheduler",
        "scheduler.framework",
        "scheduler.framework.field_errors",
        "scheduler.framework.plugin",
        "scheduler.framework.preemption",
        "scheduler.framework.preemption.victims",
    }
