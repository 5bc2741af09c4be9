"""Where the configuration comes from: what counts as a change, and what is loaded again."""

import os
from pathlib import Path

import pytest

from plugins import IN_TREE
from scheduler.config.options import RunOptions
from scheduler.config.source import ConfigurationSource, Loaded
from scheduler.framework.errors import ConfigError
from scheduler.plugin_loading.registry import PluginRegistry
from tests.unit.config.faulty import HEADER

pytestmark = pytest.mark.programs

PLUGIN = """\
from scheduler import framework as fw


class Mine(fw.PostBindPlugin):
    name = "Mine"
    tone = "{tone}"

    async def post_bind(self, state, pod, node_name):
        pass
"""


class Files:
    """A configuration and a directory of plugins, as a scheduler reads them."""

    def __init__(self, directory: Path) -> None:
        self.config, self.plugins = directory / "config.yaml", directory / "plugins"
        self.plugins.mkdir()
        self.write()
        self.write_plugin("first")
        registry = PluginRegistry(IN_TREE, None, [str(self.plugins)])
        self.source = ConfigurationSource(RunOptions(registry=registry, config=str(self.config)))

    def write(self, fields: str = "") -> None:
        self.config.write_text(
            f"{HEADER}profiles: [{{plugins: {{postBind: {{enabled: [{{name: Mine}}]}}}}}}]\n{fields}"
        )

    def write_plugin(self, tone: str) -> None:
        (self.plugins / "mine.py").write_text(PLUGIN.format(tone=tone))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def tone(loaded: Loaded) -> str:
    found: str = vars(loaded.registry["Mine"])["tone"]
    return found


def test_files_that_do_not_change_have_the_same_signature_and_none_has_one(files: Files) -> None:
    files.source.load()
    without = ConfigurationSource(RunOptions(registry=IN_TREE))

    assert files.source.signature() == files.source.signature()
    assert (without.name, without.signature()) == ("", without.signature())


def test_a_changed_configuration_and_a_changed_plugin_have_another_one(files: Files) -> None:
    files.source.load()
    signatures = [files.source.signature()]

    files.write("parallelism: 7\n")
    signatures.append(files.source.signature())
    files.write_plugin("longer than the first")
    signatures.append(files.source.signature())
    (files.plugins / "other.py").write_text("")
    signatures.append(files.source.signature())
    files.config.unlink()
    signatures.append(files.source.signature())

    assert len(set(signatures)) == len(signatures)


@pytest.mark.parametrize("which", ["configuration", "plugin"])
def test_a_file_that_is_overwritten_in_place_with_as_many_bytes_and_its_old_time_has_changed(
    which: str, files: Files
) -> None:
    files.source.load()
    path = files.config if which == "configuration" else files.plugins / "mine.py"
    before, there = files.source.signature(), path.stat()

    with path.open("r+") as file:
        file.write("#" * there.st_size)
    os.utime(path, ns=(there.st_atime_ns, there.st_mtime_ns))

    assert (path.stat().st_mtime_ns, path.stat().st_size) == (there.st_mtime_ns, there.st_size)
    assert files.source.signature() != before


def test_a_link_that_points_elsewhere_is_a_change(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(HEADER)
    link = tmp_path / "config.yaml"
    link.symlink_to("one")
    source = ConfigurationSource(RunOptions(registry=IN_TREE, config=str(link)))
    before = source.signature()

    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").rename(link)

    assert source.signature() != before


async def test_what_is_as_before_is_equal_with_the_same_classes(files: Files) -> None:
    loaded = files.source.load()

    again = await files.source.load_again(loaded.registry)

    assert again == loaded
    assert again.registry["Mine"] is loaded.registry["Mine"]


async def test_a_changed_plugin_is_another_class_and_the_old_one_goes_on_also_beside_one_that_is_wrong(
    files: Files,
) -> None:
    loaded = files.source.load()

    files.write_plugin("second")
    again = await files.source.load_again(loaded.registry)
    (files.plugins / "mine.py").write_text("class Mine(\n")
    with pytest.raises(ConfigError, match=r"mine\.py:1"):
        await files.source.load_again(again.registry)

    assert again != loaded
    assert (tone(loaded), tone(again)) == ("first", "second")
