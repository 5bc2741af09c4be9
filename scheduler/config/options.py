"""The options of `loadmaster run`."""

from collections.abc import Mapping, Sequence
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

    write_config_to: str | None = None
    """Path of a file into which to write the effective configuration, instead of scheduling."""

    shadow_of: str | None = None
    """The name of another scheduler: decide about its pods at the same time, and write nothing."""

    leader_election: Mapping[str, object] = field(default_factory=dict)
    """Fields of `leaderElection` that were given as flags, as a file spells them."""

    deprecated: Mapping[str, object] = field(default_factory=dict)
    """Path of a field of the configuration → its value, for those that were given as flags."""

    feature_gates: Sequence[str] = ()
    """`--feature-gates`, each time that it was given."""

    verbosity: int = 0
    """How much to log, as klog's -v: 2 adds a line for each pod's outcome, 4 the libraries' own lines."""

    modules: Sequence[tuple[str, int]] = ()
    """The same for some modules: pattern, level."""

    flags: Mapping[str, str] = field(default_factory=dict)
    """Name → value of all flags, to be shown."""

    logging_format: Literal["text", "json"] = "text"
    serving: ServingOptions = field(default_factory=ServingOptions)
    """The port for health and metrics."""
