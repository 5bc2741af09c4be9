"""From a profile's lists of names to its plugins at each extension point.

Rule: pkg/scheduler/framework/runtime/framework.go at v1.36.3 (NewFramework, expandMultiPointPlugins,
getValidScoreWeights).
"""

import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final, TypeVar

from scheduler.framework.arguments import parse_arguments
from scheduler.framework.errors import ConfigError
from scheduler.framework.groups.group_preemption import PodGroupPostFilterPlugin, PodGroupReleasePlugin
from scheduler.framework.handle import Handle
from scheduler.framework.nodes.resources import resource_problems, resources_to_watch
from scheduler.framework.plugin import (
    MAX_NODE_SCORE,
    MAX_TOTAL_SCORE,
    BindPlugin,
    FilterNodesPlugin,
    FilterPlugin,
    PermitPlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScoreNodesPlugin,
    ScorePlugin,
    SignPlugin,
)
from scheduler.framework.tracebacks import described_with_place
from scheduler.runtime.guards.plugin_faults import log_fault
from scheduler.runtime.profile_spec import PluginRef, PluginSet, ProfileSpec
from scheduler.runtime.registry import Registry

P = TypeVar("P", bound=Plugin)

_logger = logging.getLogger(__name__)

POINTS: Final[Mapping[str, tuple[type[Plugin], ...]]] = {
    "pre_enqueue": (PreEnqueuePlugin,),
    "queue_sort": (QueueSortPlugin,),
    "pre_filter": (PreFilterPlugin,),
    "filter": (FilterPlugin, FilterNodesPlugin),
    "post_filter": (PostFilterPlugin,),
    "pre_score": (PreScorePlugin,),
    "score": (ScorePlugin, ScoreNodesPlugin),
    "reserve": (ReservePlugin,),
    "permit": (PermitPlugin,),
    "pre_bind": (PreBindPlugin,),
    "bind": (BindPlugin,),
    "post_bind": (PostBindPlugin,),
    "placement_generate": (PlacementGeneratePlugin,),
    "placement_score": (PlacementScorePlugin,),
    "pod_group_post_filter": (PodGroupPostFilterPlugin, PodGroupReleasePlugin),
}
"""Extension point → what a plugin there is."""

_WEIGHTED: Final = {"score": "Score", "placement_score": "PlacementScore"}
"""The extension points at which plugins have weights."""


@dataclass(frozen=True, slots=True)
class ProfilePlugins:
    """The plugins of one profile, made and in order."""

    at: Mapping[str, Sequence[Plugin]]
    """Extension point → its plugins."""

    weights: Mapping[str, int]
    """Score plugin → weight, at least 1."""

    by_name: Mapping[str, Plugin] = field(default_factory=dict)

    placement_weights: Mapping[str, int] = field(default_factory=dict)
    """PlacementScore plugin → weight, at least 1."""

    def of(self, point: str, kind: type[P]) -> tuple[P, ...]:
        """The plugins at an extension point, which are all of that kind."""
        return tuple(plugin for plugin in self.at[point] if isinstance(plugin, kind))

    def start(self, handle: Handle) -> None:
        """Start every plugin, in the order in which they were enabled.

        Raises ConfigError with the first that does not start, or with all resources that there cannot be; then those
        that were started are stopped again.
        """
        for _ in self.starting(handle):
            pass

    def starting(self, handle: Handle) -> Iterator[None]:
        """The same, plugin by plugin. Those that were started are stopped again if it is closed before its end."""
        with ExitStack() as undo:
            for plugin in self.by_name.values():
                try:
                    plugin.start(handle)
                except BaseException as error:  # also one that would end the program
                    detail = f"plugin {plugin.name!r} did not start: {described_with_place(error)}"
                    raise ConfigError([f"profile {handle.profile_name!r}: {detail}"]) from error
                undo.callback(_stop, plugin)
                yield
            problems = [
                f"profile {handle.profile_name!r}: plugin {plugin.name!r}: {problem}"
                for plugin in self.by_name.values()
                for problem in resource_problems(plugin)
            ]
            if problems:
                raise ConfigError(problems)
            undo.pop_all()
        for plugin in self.by_name.values():
            _warn_of_stale_answers(plugin)

    def stop(self) -> None:
        """Stop every plugin, in the reverse order. What they raise is logged."""
        for _ in self.stopping():
            pass

    def stopping(self) -> Generator[None]:
        """The same, plugin by plugin. Those that are left are stopped if it is closed before its end."""
        left = list(self.by_name.values())
        try:
            while left:
                _stop(left.pop())
                yield
        finally:
            for plugin in reversed(left):
                _stop(plugin)


def _warn_of_stale_answers(plugin: Plugin) -> None:
    if isinstance(plugin, SignPlugin) and not plugin.signs_despite_objects:
        resources = ",".join(resources_to_watch([plugin]))
        if resources:
            _logger.warning(
                "A plugin signs pods and names other resources: if it looks them up in Filter or Score, its stored "
                "answers do not follow them. If that is right, say why in signs_despite_objects",
                extra={"plugin": plugin.name, "resources": resources},
            )


def _stop(plugin: Plugin) -> None:
    try:
        plugin.stop()
    except BaseException as error:  # noqa: BLE001 - nothing keeps the others from their turn
        log_fault("A plugin did not stop", plugin, "stop", error)


def build(spec: ProfileSpec, registry: Registry) -> ProfilePlugins:
    """Make the plugins that `spec` enables and put them at their extension points; `start` is still to come.

    Raises ConfigError with every problem: unknown names, wrong arguments, a plugin enabled twice or where it has
    nothing to do, no or several queue sort plugins, no bind plugin, several plugins that generate placements, weights
    whose sum overflows.
    """
    problems: list[str] = []
    by_name = _make(spec, registry, problems)
    if not problems:
        at = {point: _at_point(point, spec, by_name, problems) for point in POINTS}
        problems.extend(point_problems(at))
        weights, placement_weights = (_weights(point, spec, by_name, problems) for point in _WEIGHTED)
    if problems:
        raise ConfigError([f"profile {spec.scheduler_name!r}: {problem}" for problem in problems])
    return ProfilePlugins(at, weights, by_name, placement_weights)


def plugin_names(spec: ProfileSpec) -> tuple[str, ...]:
    """The plugins that a profile enables somewhere, each once."""
    names = {ref.name: None for ref in spec.plugins.multi_point.enabled}
    for point in POINTS:
        names.update((ref.name, None) for ref in _set(spec, point).enabled)
    return tuple(names)


def _make(spec: ProfileSpec, registry: Registry, problems: list[str]) -> dict[str, Plugin]:
    """Make every plugin that is enabled somewhere, once."""
    made: dict[str, Plugin] = {}
    for name in plugin_names(spec):
        if name not in registry:
            problems.append(f"plugin {name!r} does not exist")
            continue
        path = f"arguments of {name}"
        plugin = parse_arguments(registry[name], spec.plugin_config.get(name, {}), path, problems)
        if plugin is not None:
            made[name] = plugin
    return made


def _at_point(point: str, spec: ProfileSpec, by_name: Mapping[str, Plugin], problems: list[str]) -> tuple[Plugin, ...]:
    """Merge the plugins enabled at one point with those of MultiPoint there.

    Order: plugins named in both, as the point lists them; then MultiPoint's; then the point's other ones.
    """
    chosen = _set(spec, point)
    explicit: dict[str, None] = {}
    for ref in chosen.enabled:
        if not isinstance(by_name[ref.name], POINTS[point]):
            problems.append(f"plugin {ref.name!r} does not extend {point}")
        elif ref.name in explicit:
            problems.append(f"plugin {ref.name!r} already registered at {point}")
        explicit[ref.name] = None
    disabled = {ref.name for ref in chosen.disabled}
    from_multi_point: dict[str, None] = {}
    overridden: set[str] = set()
    if "*" not in disabled:
        for ref in spec.plugins.multi_point.enabled:
            if not isinstance(by_name[ref.name], POINTS[point]) or ref.name in disabled:
                continue
            if ref.name in explicit:
                overridden.add(ref.name)
            elif ref.name in from_multi_point:
                problems.append(f"plugin {ref.name!r} already registered at {point}")
            else:
                from_multi_point[ref.name] = None
    names = [
        *(name for name in explicit if name in overridden),
        *from_multi_point,
        *(name for name in explicit if name not in overridden),
    ]
    return tuple(by_name[name] for name in names)


def point_problems(at: Mapping[str, Sequence[Plugin]]) -> Iterator[str]:
    """Yield what no profile can have at its extension points."""
    sorts = len(at["queue_sort"])
    if sorts != 1:
        yield f"only one queue sort plugin required, but got {sorts}"
    if not at["bind"]:
        yield "at least one bind plugin is needed"
    if len(at["placement_generate"]) > 1:
        yield "at most one placement generate plugin is allowed"
    either_form = {plugin.name: plugin for point in ("filter", "score") for plugin in at[point]}
    for name, plugin in either_form.items():
        if _has_both_forms(plugin):
            yield f"plugin {name!r} has Filter or Score in both forms; keep one"


def _has_both_forms(plugin: Plugin) -> bool:
    return (isinstance(plugin, FilterPlugin) and isinstance(plugin, FilterNodesPlugin)) or (
        isinstance(plugin, ScorePlugin) and isinstance(plugin, ScoreNodesPlugin)
    )


def _weights(point: str, spec: ProfileSpec, by_name: Mapping[str, Plugin], problems: list[str]) -> dict[str, int]:
    """A weight at the point wins over MultiPoint's; 0 means 1, since a plugin can be disabled instead."""
    weights: dict[str, int] = {}
    total = 0
    refs: tuple[PluginRef, ...] = (*_set(spec, point).enabled, *spec.plugins.multi_point.enabled)
    for ref in refs:
        if ref.name in weights or not isinstance(by_name[ref.name], POINTS[point]):
            continue
        weights[ref.name] = ref.weight or 1
        if weights[ref.name] * MAX_NODE_SCORE > MAX_TOTAL_SCORE - total:
            problems.append(f"total score of {_WEIGHTED[point]} plugins could overflow")
            break
        total += weights[ref.name] * MAX_NODE_SCORE
    return weights


def _set(spec: ProfileSpec, point: str) -> PluginSet:
    chosen: PluginSet = getattr(spec.plugins, point)
    return chosen
