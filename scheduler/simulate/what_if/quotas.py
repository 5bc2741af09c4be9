"""Changed amounts of shares: "if team-a's minimum became 64 GPUs, what would change?"

The waiting pods are placed twice, with the shares as they are and as they would be: the answer is the difference.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from scheduler.api.pods.requests import allocatable_of
from scheduler.config.defaults import CAPACITY_SCHEDULING
from scheduler.config.types import Config
from scheduler.engine.engine import Engine
from scheduler.framework.errors import ConfigError
from scheduler.runtime.profile_spec import ProfileSpec
from scheduler.simulate.apiserver.validation import short
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.other_objects import OtherObject
from scheduler.simulate.what_if.questions import QuotaChange, did_you_mean
from scheduler.state.nodes.node_objects import part

_OF_OBJECTS: Final = {"minimum": "min", "maximum": "max"}
"""Field of a share → field of an ElasticQuota."""

_LABELS: Final = ("ElasticQuota (scheduling.x-k8s.io/v1alpha1)", "ElasticQuota (scheduling.sigs.k8s.io/v1alpha1)")

Document = dict[str, Any]


class Changed(NamedTuple):
    """A cluster and a configuration with other shares, and the changes."""

    cluster: SimulatedCluster
    config: Config
    changes: list[Document]
    """{"share", "field", "resource", "before", "after"}: quantities, before may be None."""


def with_quotas(cluster: SimulatedCluster, config: Config, changes: Sequence[QuotaChange]) -> Changed:
    """Return the cluster and the configuration with these changes. Raises ConfigError with all that is wrong."""
    problems: list[str] = []
    made: list[Document] = []
    for change in changes:
        found = list(_changed(cluster, config, change, problems))
        if found:
            cluster, config = found[0].cluster, found[0].config
            made += found[0].changes
    if problems:
        raise ConfigError(problems)
    return Changed(cluster, config, made)


def check(engine: Engine, changes: Iterable[QuotaChange]) -> None:
    """Raise ConfigError if shares make no sense with the changes."""
    wrong = {name: problem for ledger in engine.shares.ledgers for name, problem in ledger.problems.items()}
    problems = [f"--quota {each.share}: {wrong[each.share]}" for each in changes if each.share in wrong]
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))


def difference(before: Sequence[Document], after: Sequence[Document]) -> Document:
    """Return {"start", "wait", "victims"}: names of pods that only now get a node, get none any more, are evicted."""
    nodes = {_name(pod): pod["node"] for pod in before}
    evicted = {victim for pod in before for victim in pod["victims"]}
    start, wait = [], []
    for pod in after:
        name = _name(pod)
        if pod["node"] is not None and nodes.get(name) is None:
            start.append(name)
        elif pod["node"] is None and nodes.get(name) is not None:
            wait.append(name)
    victims = dict.fromkeys(victim for pod in after for victim in pod["victims"] if victim not in evicted)
    return {"start": start, "wait": wait, "victims": list(victims)}


def _name(pod: Document) -> str:
    return f"{pod['namespace']}/{pod['name']}"


def _changed(cluster: SimulatedCluster, config: Config, change: QuotaChange, problems: list[str]) -> Iterator[Changed]:
    """Yield what comes of one change; nothing if there is a problem."""
    at = f"--quota {change.share}"
    if not any(CAPACITY_SCHEDULING in profile.enabled for profile in config.profiles):
        problems.append(f"{at}: there are no shares: no profile of --config has the plugin {CAPACITY_SCHEDULING}")
        return
    try:
        allocatable_of(change.amounts)
    except ValueError as error:
        problems.append(f"{at}: {error}")
        return
    quota = next((each for each in cluster.others if _share_of(each) == change.share), None)
    declared = _declared(config)
    if change.share in declared:
        before = declared[change.share].get(change.field) or {}
        profiles = tuple(_with_share(profile, change) for profile in config.profiles)
        yield Changed(cluster, replace(config, profiles=profiles), list(_listed(change, before)))
    elif quota is None:
        names = [*declared, *filter(None, map(_share_of, cluster.others))]
        problems.append(f"{at}: there is no such share{did_you_mean(change.share, names)}")
    elif change.field not in _OF_OBJECTS:
        problems.append(f"{at}: an ElasticQuota has a minimum and a maximum, and no {change.field}")
    else:
        before = part(part(quota.content, "spec"), _OF_OBJECTS[change.field])
        others = cluster.others.mapped(lambda each: _with_amounts(each, change) if each is quota else each)
        yield Changed(replace(cluster, others=others), config, list(_listed(change, before)))


def _listed(change: QuotaChange, before: Mapping[str, Any]) -> Iterator[Document]:
    for resource, amount in change.amounts.items():
        at = {"share": change.share, "field": change.field, "resource": resource}
        yield {**at, "before": before.get(resource), "after": amount}


def _share_of(obj: OtherObject) -> str:
    """Return the name of the share that an object declares; empty if it is none."""
    _, namespace, name = obj.key
    return f"{namespace}/{name}" if obj.label in _LABELS else ""


def _with_amounts(obj: OtherObject, change: QuotaChange) -> OtherObject:
    spec, field = part(obj.content, "spec"), _OF_OBJECTS[change.field]
    spec = {**spec, field: {**part(spec, field), **change.amounts}}
    return obj._replace(content={**obj.content, "spec": spec})


def _declared(config: Config) -> dict[str, Mapping[str, Any]]:
    """Return the shares of the arguments, as they are written, by name."""
    shares = [
        share
        for profile in config.profiles
        if CAPACITY_SCHEDULING in profile.enabled
        for share in profile.plugin_config.get(CAPACITY_SCHEDULING, {}).get("shares") or ()
    ]
    return {short(str(each["name"])): each for each in shares}


def _with_share(profile: ProfileSpec, change: QuotaChange) -> ProfileSpec:
    arguments = profile.plugin_config.get(CAPACITY_SCHEDULING, {})
    shares = [
        {**each, change.field: {**(each.get(change.field) or {}), **change.amounts}}
        if each["name"] == change.share
        else each
        for each in arguments.get("shares") or ()
    ]
    config = {**profile.plugin_config, CAPACITY_SCHEDULING: {**arguments, "shares": shares}}
    return replace(profile, plugin_config=config)
