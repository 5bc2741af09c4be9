"""The options of `loadmaster run`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from scheduler.config.serving import ServingOptions

if TYPE_CHECKING:  # loads numpy, which the command line's `--version` does without
    from scheduler.runtime.registry import Registry


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options take precedence over the configuration file. Names are kube-scheduler's flags."""

    registry: "Registry"
    """All plugins that the configuration may name."""

    config: str | None = None
    """Path of the configuration file. None: the default configuration."""

    kubeconfig: str | None = None
    """Path of a kubeconfig file. None: `clientConnection.kubeconfig`, then the usual places."""

    leader_election: Mapping[str, object] = field(default_factory=dict)
    """Fields of `leaderElection` that were given as flags, as a file spells them."""

    verbosity: int = 0
    """How much to log, as klog's -v: 2 adds a line for each pod's outcome, 4 the libraries' own lines."""

    logging_format: Literal["text", "json"] = "text"
    serving: ServingOptions = field(default_factory=ServingOptions)
    """The port for health and metrics."""
