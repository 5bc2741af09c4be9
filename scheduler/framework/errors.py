"""Everything that this program raises on purpose.

SchedulerError
├── ConfigError        something the user wrote is wrong: report every problem, exit 2
├── PluginError        a plugin raised or broke its contract: this pod backs off, the others go on
│   └── WrongAnswer    it answered what its extension point does not allow
├── AttemptFailed      a plugin says that the pod, or what it names, cannot be evaluated: the same, but no fault
└── ClusterError       the API server and we disagree
    ├── BindRejected   it refused the binding for good: forget the assumption, requeue the pod
    └── ApiError       it did not do what a plugin asked: the plugin decides what that means
"""

from collections.abc import Sequence

from scheduler.api.wording.text import MAX_MESSAGE, printable, shortened


class SchedulerError(Exception):
    """Base of the errors in this file."""


class ConfigError(SchedulerError):
    """A file or an option that the user wrote is wrong.

    `problems` has one line for each, every line with the place: `profiles[0].plugins.score: …`.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(map(printable, problems))
        super().__init__("\n".join(self.problems))


class PluginError(SchedulerError):
    """A plugin raised, or answered what its extension point does not allow. Worded as kube-scheduler words it."""

    def __init__(self, plugin: str, point: str, detail: str) -> None:
        words = _PLUGIN_ERRORS.get(point, _ANY_PLUGIN_ERROR)
        super().__init__(shortened(words.format(point=point, plugin=plugin, detail=detail), MAX_MESSAGE))
        self.plugin = plugin
        self.point = point


class WrongAnswer(PluginError):
    """A plugin's method answered what its extension point does not allow."""

    def __init__(self, plugin: str, point: str, detail: str, place: str) -> None:
        """`place`: file and line of the method, or its name."""
        super().__init__(plugin, point, detail)
        self.place = place


class AttemptFailed(SchedulerError, ValueError):
    """Raised by a plugin if the attempt cannot continue because of the pod, or of an object that it depends on.

    The text is for the pod's owner. Unlike any other exception it is no fault: it goes into no log, and counts against
    no plugin. It is kube-scheduler's status Error. A ValueError, as the functions that read what others wrote raise.
    """


_ANY_PLUGIN_ERROR = 'running {point} plugin "{plugin}": {detail}'
_PLUGIN_ERRORS = {
    "PreFilterExtensionAddPod": 'running AddPod on PreFilter plugin "{plugin}": {detail}',
    "PreFilterExtensionRemovePod": 'running RemovePod on PreFilter plugin "{plugin}": {detail}',
    "Filter": 'running "{plugin}" filter plugin: {detail}',
    "PostFilter": "{detail}",
    "Score": 'running Score plugins: plugin "{plugin}" failed with: {detail}',
    "ScoreExtensionNormalize": 'running Normalize on Score plugins: plugin "{plugin}" failed with: {detail}',
    "ScoreRange": 'applying score defaultWeights on Score plugins: plugin "{plugin}" {detail}',
    "PlacementGenerate": "{detail}",
    "PlacementScore": 'running PlacementScore plugins: plugin "{plugin}" failed with: {detail}',
    "PlacementScoreExtensionNormalize": (
        'running NormalizePlacementScore on PlacementScore plugins: plugin "{plugin}" failed with: {detail}'
    ),
    "PlacementScoreRange": 'applying score defaultWeights on PlacementScore plugins: plugin "{plugin}" {detail}',
}


class ClusterError(SchedulerError):
    """The API server did not carry out a request."""


class ApiError(ClusterError):
    """A plugin's call was refused, or the API server could not be reached. The text is the API server's.

    `status` is the HTTP status: 409 if the object was changed meanwhile, 404 if it is gone; 0 without any answer.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class BindRejected(ClusterError):
    """The API server will not bind this pod: it is gone, bound elsewhere, or the request is not allowed."""
