"""The configuration in effect, as the port shows it."""

from dataclasses import replace

from plugins import IN_TREE
from scheduler.assembly.port import Shown
from scheduler.config.load import load_config


class Current:
    """A reloader: what it has may become another."""

    def __init__(self) -> None:
        self.config, self.registry = load_config(None, IN_TREE), IN_TREE


def test_it_is_written_once_for_each() -> None:
    current = Current()
    shown = Shown(current)
    first = shown()

    assert shown() is first
    current.config = replace(current.config, parallelism=5)
    assert shown()["parallelism"] == 5
