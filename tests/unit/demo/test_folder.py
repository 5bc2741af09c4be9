from pathlib import Path

from plugins import IN_TREE
from scheduler.config.load import load_config
from scheduler.plugin_loading.registry import PluginRegistry
from tests.demo.folder import lay_out


def test_the_folder_begins_anew_with_what_a_scheduler_can_go_by(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    (folder / "plugins").mkdir(parents=True)
    (folder / "plugins" / "old.py").write_text("left by an earlier demo")

    config, plugins = lay_out(folder, tmp_path / "kubeconfig", tmp_path / "kubectl")

    registry = PluginRegistry(IN_TREE, directories=[plugins.removeprefix("--plugin-dir=")])
    loaded = load_config(config.removeprefix("--config="), registry)
    assert [profile.scheduler_name for profile in loaded.profiles] == ["loadmaster"]
    assert set(registry) == set(IN_TREE)
    assert (folder / "kubectl").readlink() == tmp_path / "kubectl"
    assert (folder / "loadmaster").is_file()
