"""Everything that this program raises on purpose.

SchedulerError
├── ConfigError        something the user wrote is wrong: report every problem, exit 2
├── PluginError        a plugin raised or broke its contract: this pod backs off, the others go on
└── ClusterError       the API server and we disagree
    └── BindRejected   it refused the binding for good: forget the assumption, requeue the pod
"""

from collections.abc import Sequence


class SchedulerError(Exception):
    """Base of the errors in this file."""


class ConfigError(SchedulerError):
    """A file or an option that the user wrote is wrong.

    `problems` has one line for each, every line with the place: `profiles[0].plugins.score: …`.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class PluginError(SchedulerError):
    """A plugin raised, or answered what its extension point does not allow."""

    def __init__(self, plugin: str, point: str, detail: str) -> None:
        super().__init__(f"running {point} plugin {plugin!r}: {detail}")
        self.plugin = plugin
        self.point = point


class ClusterError(SchedulerError):
    """The API server did not do what was asked of it."""


class BindRejected(ClusterError):
    """The API server will not bind this pod: it is gone, bound elsewhere, or the request is not allowed."""
