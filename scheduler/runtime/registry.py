"""Plugin classes by name."""

from collections.abc import Mapping

from scheduler.framework.plugin import Plugin

Registry = Mapping[str, type[Plugin]]
