"""Plugins come from where the configuration, flags and entry points say, and from nowhere else."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins import IN_TREE
from scheduler.config.load import load_config, requested_plugins
from scheduler.framework.awaited import together
from scheduler.framework.errors import ConfigError
from scheduler.plugin_loading.load import load
from scheduler.plugin_loading.registry import PluginRegistry, PluginRequest
from scheduler.plugin_loading.sources import Directory, PluginFile, PluginSources, read_sources

pytestmark = pytest.mark.programs

MINE = """\
from typing import ClassVar
from scheduler import framework as fw

class Mine(fw.FilterPlugin):
    name: ClassVar[str] = "Mine"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return None
"""
YOURS = MINE.replace("Mine", "Yours")
ENABLED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: loadmaster, plugins: {multiPoint: {enabled: [{name: Mine}]}}}]
"""


def read(*directories: Path | str, problems: tuple[str, ...] = ()) -> PluginSources:
    found: list[str] = []
    sources = read_sources([str(each) for each in directories], [], [], found)
    assert tuple(found) == problems
    return sources


def names(registry: PluginRegistry) -> set[str]:
    return set(registry) - set(IN_TREE)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for installed packages."""
    place = tmp_path / "site-packages"
    place.mkdir()
    monkeypatch.syspath_prepend(place)
    before = set(sys.modules)
    yield place
    for module in set(sys.modules) - before:
        del sys.modules[module]


def install(place: Path, package: str, entry_points: dict[str, str], **modules: str) -> None:
    """Install a distribution with modules."""
    (place / package).mkdir()
    for name, source in {"__init__": "", **modules}.items():
        (place / package / f"{name}.py").write_text(source)
    info = place / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in entry_points.items())
    (info / "entry_points.txt").write_text(f"[loadmaster.plugins]\n{lines}")


# Files.


def test_the_configuration_names_directories_too(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    config = tmp_path / "config.yaml"
    config.write_text(f"{ENABLED}loadmaster: {{pluginDirectories: [{tmp_path}]}}\n")
    registry = PluginRegistry(IN_TREE)

    loaded = load_config(str(config), registry)

    assert names(registry) == {"Mine"}
    assert loaded.loadmaster.plugin_directories == (str(tmp_path),)


def test_what_nobody_names_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: Path) -> None:
    install(installed, "acme", {"Mine": "acme.mine:Mine"}, mine="raise SystemExit")
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / "plugins", tmp_path / "scheduler", tmp_path / "named" / "below"):
        folder.mkdir(exist_ok=True, parents=True)
        (folder / "mine.py").write_text("raise SystemExit")
    registry = PluginRegistry(IN_TREE, directories=[str(tmp_path / "named")])

    registry.load(PluginRequest())

    assert names(registry) == set()


def test_files_that_are_no_plugins_by_their_names_are_left_alone(tmp_path: Path) -> None:
    for name in ("_shared.py", "test_mine.py", "mine_test.py", "conftest.py", ".hidden.py", "notes.txt", "mine.pyc"):
        (tmp_path / name).write_text("raise SystemExit")

    assert set(load(read(tmp_path), IN_TREE, {}).registry) == set(IN_TREE)


def test_files_of_a_directory_import_each_other(tmp_path: Path) -> None:
    (tmp_path / "_shared.py").write_text('LABEL = "team"\n')
    (tmp_path / "mine.py").write_text(f"from ._shared import LABEL\n{MINE}    label = LABEL\n")

    loaded = load(read(tmp_path), IN_TREE, {})

    assert vars(loaded.registry["Mine"])["label"] == "team"


def test_a_file_called_as_a_library_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text(f"import numpy\nassert numpy.__name__ == 'numpy'\n{MINE}")
    (tmp_path / "scheduler.py").write_text(YOURS)

    assert {"Mine", "Yours"} <= set(load(read(tmp_path), IN_TREE, {}).registry)


def test_a_compiled_file_of_another_version_is_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    os.utime(tmp_path / "mine.py", (1, 1))
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(tmp_path)], check=True)
    (tmp_path / "mine.py").write_text(MINE.replace("Mine", "Ours"))
    os.utime(tmp_path / "mine.py", (1, 1))

    assert "Ours" in load(read(tmp_path), IN_TREE, {}).registry


def test_a_directory_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "link").symlink_to(tmp_path)

    assert len(read(tmp_path, tmp_path / "link", f"{tmp_path}/").directories) == 1


def test_a_mounted_config_map_is_read_behind_its_link(tmp_path: Path) -> None:
    for version, source in (("..2026_01", MINE), ("..2026_02", YOURS)):
        (tmp_path / version).mkdir()
        (tmp_path / version / "mine.py").write_text(source)
    (tmp_path / "..data").symlink_to("..2026_01")
    (tmp_path / "mine.py").symlink_to("..data/mine.py")
    before = read(tmp_path)

    (tmp_path / "..new").symlink_to("..2026_02")
    (tmp_path / "..new").rename(tmp_path / "..data")

    path = f"{tmp_path}/mine.py"
    assert before.directories == (Directory(str(tmp_path), (PluginFile(path, MINE.encode()),)),)
    assert read(tmp_path).directories[0].files == (PluginFile(path, YOURS.encode()),)


def test_files_are_of_one_version_though_the_config_map_changes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("..1", "..2"):
        (tmp_path / version).mkdir()
        for name in ("a.py", "b.py"):
            (tmp_path / version / name).write_text(version)
    (tmp_path / "..data").symlink_to("..1")
    listdir = os.listdir

    def swapped(path: str) -> list[str]:
        found = listdir(path)
        if (tmp_path / "..1").exists():
            (tmp_path / "..new").symlink_to("..2")
            (tmp_path / "..new").rename(tmp_path / "..data")
            (tmp_path / "..1").rename(tmp_path / "..gone")
        return found

    monkeypatch.setattr(os, "listdir", swapped)

    assert [file.content for file in read(tmp_path).directories[0].files] == [b"..2", b"..2"]


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text("")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "folder.py").mkdir()
    os.mkfifo(tmp_path / "odd" / "pipe.py")
    (tmp_path / "odd" / "huge.py").write_bytes(b"#" * (4 * 2**20 + 1))
    (tmp_path / "odd" / "lost.py").symlink_to("nowhere")

    read(
        tmp_path / "none",
        tmp_path / "file.py",
        tmp_path / "odd",
        problems=(
            f"{tmp_path}/none: the directory of plugins cannot be read: No such file or directory",
            f"{tmp_path}/file.py: the directory of plugins cannot be read: Not a directory",
            f"{tmp_path}/odd/folder.py: cannot be read: Is a directory",
            f"{tmp_path}/odd/huge.py: cannot be read: larger than 4194304 bytes",
            f"{tmp_path}/odd/lost.py: cannot be read: No such file or directory",
            f"{tmp_path}/odd/pipe.py: cannot be read: this is no ordinary file",
        ),
    )


def test_two_files_with_a_plugin_of_one_name_are_both_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(MINE)
    (tmp_path / "b.py").write_text(f"\n{MINE}")

    with pytest.raises(ConfigError) as caught:
        load(read(tmp_path), IN_TREE, {})

    assert caught.value.problems == (
        f"{tmp_path}/b.py:5: 'Mine' is the name of another plugin already, {tmp_path}/a.py:4",
    )


# Modules and entry points.


def test_a_module_is_loaded_that_the_configuration_names(installed: Path) -> None:
    install(installed, "acme", {}, mine=MINE, yours=YOURS, both=MINE.replace("Mine", "Ours") + YOURS)
    registry = PluginRegistry(IN_TREE)

    registry.load(PluginRequest(modules=("acme.mine", "acme.both:Ours")))

    assert names(registry) == {"Mine", "Ours"}
    assert registry.loaded.origins["Mine"] == "module acme.mine"


def test_a_package_has_the_plugins_of_its_modules(installed: Path) -> None:
    install(installed, "acme", {}, mine=MINE)
    (installed / "acme" / "__init__.py").write_text(
        "from acme.mine import Mine\nfrom plugins.node_name import NodeName"
    )
    registry = PluginRegistry(IN_TREE)

    registry.load(PluginRequest(modules=("acme",)))

    assert names(registry) == {"Mine"}


def test_an_entry_point_is_loaded_if_a_profile_names_its_plugin(installed: Path) -> None:
    points = {"Mine": "acme.mine:Mine", "Yours": "acme.yours:Yours", "Broken": "acme.broken:Broken"}
    install(installed, "acme", points, mine=MINE, yours=YOURS, broken="1/0")
    registry = PluginRegistry(IN_TREE)

    registry.load(PluginRequest(names=frozenset({"Mine", "NodeName"})))

    assert names(registry) == {"Mine"}
    assert registry.loaded.origins["Mine"] == "entry point Mine of acme 1.0"


def test_what_is_wrong_with_modules_and_entry_points_is_told_at_once(installed: Path) -> None:
    install(
        installed,
        "acme",
        {"Mine": "acme.mine:Mine", "Other": "acme.mine:Mine", "Module": "acme.mine", "Value": "acme.odd:VALUE"},
        mine=MINE,
        odd="VALUE = 1\nclass Nothing: pass\n",
        broken="import none_of_mine\n",
    )
    modules = ("acme.mine:Yours", "acme.odd", "acme.odd:Nothing", "acme.broken", "nowhere.at.all", "acme.nothing")

    with pytest.raises(ConfigError) as caught:
        PluginRegistry(IN_TREE).load(PluginRequest(modules=modules, names=None))

    assert caught.value.problems == (
        "module acme.mine: there is no Yours in acme.mine",
        "module acme.odd: there is no plugin in it: a class that inherits FilterPlugin, or another one of "
        "scheduler.framework",
        "module acme.odd: Nothing does not inherit one; a plugin inherits FilterPlugin, or another extension point",
        f"module acme.broken, {installed}/acme/broken.py:1: there is no module 'none_of_mine': it is not installed "
        "where Loadmaster runs",
        "module nowhere.at.all: there is no module 'nowhere': it is not installed where Loadmaster runs",
        "module acme.nothing: there is no module 'acme.nothing'; did you mean 'acme.mine'?",
        "entry point Module of acme 1.0: 'acme.mine' is a module; it should name a class of it, as acme.mine:Class",
        "entry point Other of acme 1.0: this is the plugin 'Mine': the entry point should have its name",
        "entry point Value of acme 1.0: VALUE is no class, but of type int; a plugin inherits FilterPlugin, or another "
        "extension point",
    )


# A program's own, and what is in-tree.


def test_a_program_gives_plugins_of_its_own() -> None:
    node_name = IN_TREE["NodeName"]
    mine = type("Mine", (node_name,), {"name": "Mine"})

    assert names(PluginRegistry(IN_TREE, {"Mine": mine})) == {"Mine"}
    with pytest.raises(ConfigError) as caught:
        PluginRegistry(IN_TREE, {"Ours": mine, "NodeName": node_name, "Value": 5})  # type: ignore[dict-item]
    assert caught.value.problems == (
        "plugin 'Ours' is registered under another name than its own, 'Mine'",
        "plugin 'Value' of the program is no class that inherits scheduler.framework.Plugin",
    )


def test_nothing_is_wrong_with_our_own() -> None:
    assert set(load(PluginSources(), {}, IN_TREE).registry) == set(IN_TREE)


def test_folders_called_as_our_packages_do_no_harm(tmp_path: Path) -> None:
    for name in ("plugins", "scheduler", "numpy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('this is not Loadmaster')")
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "config.yaml").write_text(ENABLED)
    (tmp_path / "nodes.yaml").write_text("kind: Node\nmetadata: {name: n}\n")
    program = str(Path(sys.executable).with_name("loadmaster"))
    command = [program, "simulate", "nodes.yaml", "--config=config.yaml", "--plugin-dir=."]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "nothing to place\n", "")


# Reloads.


def test_files_that_have_not_changed_stay_loaded(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    registry = PluginRegistry(IN_TREE, directories=[str(tmp_path)])
    registry.load(PluginRequest())

    same = registry.renewed()
    same.load(PluginRequest())
    (tmp_path / "mine.py").write_text(f"{MINE}\n")
    changed = same.renewed()
    changed.load(PluginRequest())

    assert same["Mine"] is registry["Mine"]
    assert changed["Mine"] is not registry["Mine"]


def test_a_new_version_that_is_wrong_leaves_the_old_one_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    registry = PluginRegistry(IN_TREE, directories=[str(tmp_path)])
    registry.load(PluginRequest())
    (tmp_path / "mine.py").write_text("import os; os._exit(1)\n")

    with pytest.raises(ConfigError, match=r"mine\.py:1: it ends the program"):
        registry.renewed().load(PluginRequest())

    assert registry["Mine"].__module__ in sys.modules
    registry.close()
    assert registry["Mine"].__module__ not in sys.modules


def test_what_was_prepared_is_what_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    registry = PluginRegistry(IN_TREE, directories=[str(tmp_path)])
    registry.prepare(PluginRequest())
    (tmp_path / "mine.py").write_text("while True: pass\n")

    registry.load(PluginRequest())

    assert names(registry) == {"Mine"}
    assert registry.loaded.origins["Mine"] == f"{tmp_path}/mine.py:4"


async def test_a_reload_is_prepared_while_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("while True: pass\n")
    registry = PluginRegistry(IN_TREE, directories=[str(tmp_path)], seconds=1)
    steps = 0

    async def go_on() -> None:
        nonlocal steps
        while True:
            await asyncio.sleep(0.01)
            steps += 1

    with pytest.raises(ConfigError, match=r"mine\.py:1: it is still being imported after 1 s"):
        await together(registry.prepare_meanwhile(PluginRequest()), go_on())

    assert steps > 10


# What a configuration asks for.


def test_a_configuration_asks_for_all_that_its_profiles_name() -> None:
    plugins = {"filter": {"enabled": [{"name": "A"}]}, "multi_point": {"disabled": [{"name": "*"}, {"name": "B"}]}}
    values = {
        "loadmaster": {"pluginDirectories": ["/plugins", "relative"], "pluginModules": ["acme.mine"]},
        "profiles": [{"plugins": plugins, "pluginConfig": [{"name": "C"}]}],
    }

    assert requested_plugins(values) == PluginRequest(("/plugins",), ("acme.mine",), frozenset("ABC"), values)


@pytest.mark.parametrize(
    "values",
    [
        {"loadmaster": 5, "profiles": 7},
        {"loadmaster": {"pluginDirectories": "x", "pluginModules": {}}, "profiles": [3, {"plugins": []}]},
        {"profiles": [{"plugins": {"filter": 1, "score": {"enabled": {}}}, "pluginConfig": [{"name": []}, 1]}]},
    ],
)
def test_what_is_odd_in_a_configuration_is_left_to_its_own_check(values: dict[str, object]) -> None:
    assert requested_plugins(values) == PluginRequest(config=values)


def test_settings_of_plugins_are_checked(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        f"{ENABLED.replace('Mine', 'NodeName')}\nloadmaster: {{pluginDirectories: [here], pluginModules: ['a b']}}\n"
    )

    with pytest.raises(ConfigError) as caught:
        load_config(str(config), IN_TREE)

    first, second = caught.value.problems
    assert first.startswith(str(config))
    assert first.endswith(': loadmaster.pluginDirectories[0]: Invalid value: "here": must be an absolute path')
    assert second.endswith(
        ': loadmaster.pluginModules[0]: Invalid value: "a b": must be package.module or package.module:Class'
    )
