"""A configuration as a file that has the same effect, with all defaults written out.

Rule: what `kube-scheduler --write-config-to` writes: the plugins with the default ones merged in, MultiPoint as it is,
and the arguments of every enabled plugin that has some.
"""

import logging
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import yaml

from scheduler.config.extenders import OMITTED
from scheduler.config.profiles import API_VERSION, KIND, KnownPlugins
from scheduler.config.types import Config
from scheduler.framework.arguments import arguments_of, camel_case, parse_arguments
from scheduler.process.writing import writing
from scheduler.runtime.profile_spec import PLUGIN_SETS, PluginRef, PluginSet, ProfileSpec

_logger = logging.getLogger(__name__)


def as_document(config: Config, known: KnownPlugins) -> dict[str, Any]:
    """The configuration as plain values. `known`: the plugins that it was checked with."""
    sections = {key: value for key, value in arguments_of(config).items() if key not in ("profiles", "gates")}
    profiles = [_profile(spec, known) for spec in config.profiles]
    document: dict[str, Any] = _plain({"apiVersion": API_VERSION, "kind": KIND, **sections, "profiles": profiles})
    return document


def as_shown(config: Config, known: KnownPlugins) -> dict[str, Any]:
    """The same without secrets: private keys and passwords of extenders."""
    document = as_document(config, known)
    for extender, shown in zip(config.extenders, document["extenders"], strict=True):
        shown["urlPrefix"] = extender.name
        if (tls := shown.get("tlsConfig")) and tls["keyData"]:
            tls["keyData"] = OMITTED
    return document


def as_yaml(document: Mapping[str, Any]) -> str:
    """The text of a file."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def _plain(value: Any) -> Any:
    """Numbers as people write them: 50, not 50.0."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case _:
            return value


def write_effective(config: Config, known: KnownPlugins, path: str) -> None:
    """Write a file that means the same, keys included, as kube-scheduler does; a new one is for our user only then.

    Raises ConfigError if that cannot be.
    """
    document = as_document(config, known)
    mode = 0o666 if document == as_shown(config, known) else 0o600
    text = as_yaml(document)
    with writing(path), open(path, "w", opener=partial(os.open, mode=mode)) as file:
        file.write(text)
    _logger.info("Wrote configuration", extra={"file": path})


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Repeated values are written each time, without YAML aliases."""
        return True


def _profile(spec: ProfileSpec, known: KnownPlugins) -> dict[str, Any]:
    percentage = spec.percentage_of_nodes_to_score
    plugins = {
        camel_case(name): _set(chosen) for name in PLUGIN_SETS if (chosen := getattr(spec.plugins, name)) != PluginSet()
    }
    return {
        "schedulerName": spec.scheduler_name,
        **({} if percentage is None else {"percentageOfNodesToScore": percentage}),
        "plugins": plugins,
        "pluginConfig": _plugin_config(spec, known),
    }


def _set(chosen: PluginSet) -> dict[str, Any]:
    lists = {"enabled": chosen.enabled, "disabled": chosen.disabled}
    return {key: [_ref(ref) for ref in refs] for key, refs in lists.items() if refs}


def _ref(ref: PluginRef) -> dict[str, Any]:
    return {"name": ref.name, "weight": ref.weight} if ref.weight else {"name": ref.name}


def _plugin_config(spec: ProfileSpec, known: KnownPlugins) -> list[dict[str, Any]]:
    names = dict.fromkeys(spec.plugin_config)
    for point in PLUGIN_SETS:
        names.update((ref.name, None) for ref in getattr(spec.plugins, point).enabled)
    entries = []
    for name in names:
        given = spec.plugin_config.get(name, {})
        arguments = arguments_of(parse_arguments(known[name], given, "", [])) if name in known else dict(given)
        if arguments:
            entries.append({"name": name, "args": arguments})
    return entries
