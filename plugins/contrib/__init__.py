"""Plugins that ship with Loadmaster and are no part of kube-scheduler: a profile has them only if it names them."""

from typing import Final

from plugins.contrib.load_aware.plugin import LoadAware
from scheduler.framework import Plugin

CONTRIB: Final[dict[str, type[Plugin]]] = {
    "LoadAware": LoadAware,
}
"""By the name that a configuration has for them."""
