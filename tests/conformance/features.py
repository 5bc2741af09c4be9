"""What can be seen in a case and in kube-scheduler's verdict on it: a text for each thing, for `record`."""

import re
from collections.abc import Iterator
from typing import Any, Final

from tests.conformance.failure import outcome
from tests.conformance.generators.topic import assigned
from tests.conformance.groups import outcome as outcome_of_group
from tests.conformance.queue import place_of

Json = dict[str, Any]

TELLING: Final = frozenset({"operator", "effect", "protocol", "type", "reason", "phase", "hostIP", "restartPolicy"})
"""Fields whose value is a feature; of the others it is that they are set."""


def of_clusters(recorded: Json) -> Iterator[str]:
    """What can be seen in a case, and in the verdict on it."""
    case, expected = recorded["case"], recorded["expected"]
    for profile in case["config"]["profiles"]:
        for plugin in profile.get("pluginConfig", ()):
            yield from fields(f"args {plugin['name']}", plugin["args"])
        for point, plugins in profile["plugins"].items():
            yield from (f"{point} disabled {plugin['name']}" for plugin in plugins.get("disabled", ()))
            yield from (f"{point} enabled {plugin['name']}" for plugin in plugins.get("enabled", ()))
    outcomes = {f"{pod['namespace']}/{pod['name']}": outcome(pod) for pod in expected["pods"]}
    for thing in case["objects"]:
        metadata = thing["metadata"]
        became = outcomes.get(f"{metadata.get('namespace')}/{metadata['name']}", "")
        for part in ("spec", "status"):
            yield from fields(f"{thing['kind']} {became} {part}", thing.get(part, {}))
    for pod in expected["pods"]:
        yield from verdict_features(pod)


def verdict_features(pod: Json) -> Iterator[str]:
    """What can be seen in the verdict on a pod."""
    yield f"outcome {outcome(pod)}"
    if "nodes are available" not in pod["message"]:
        yield f"message {re.sub(r'[0-9]+', '#', pod['message'])[:100]}"
    yield f"best {min(len(pod['best']), 3)} of {min(len(pod['nodes']), 3)}"
    for node in pod["nodes"].values():
        reasons = node.get("reasons", ())
        yield f"{node['code']} {node.get('plugin')} for {min(len(reasons), 4)} reasons"
        yield from (f"{node['code']} {node.get('plugin')} {reason}" for reason in reasons)
        for plugin, score in (node.get("scores") or {}).items():
            yield f"score {plugin} {min(score, 100) // 5}"
        if extended := node.get("extended"):
            yield from (f"extended {part} {min(len(extended[part]), 4)}" for part in ("requests", "mappings"))
            yield from fields("extended", extended)


def fields(prefix: str, value: object) -> Iterator[str]:
    """The paths of fields that are set, without positions in lists."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in TELLING:
                yield f"{prefix}.{key}={inner}"
            elif key not in {"labels", "nodeSelector"}:
                yield from fields(f"{prefix}.{key}", inner)
    elif isinstance(value, list):
        yield f"{prefix} of {min(len(value), 2)}"
        for inner in value:
            yield from fields(prefix, inner)
    else:
        yield prefix


def of_groups(known: Json) -> Iterator[str]:
    """What can be seen in a case: what became of each group, and of what it was made."""
    case, expected = known["case"], known["expected"]
    gates = "+".join(sorted(case["gates"]))
    outcomes: dict[str, str] = {}
    for pod in expected.get("pods", ()):
        yield f"{gates} alone {steady(pod['message'])} victims {min(len(pod['victims']), 3)}"
    for group in expected.get("groups", ()):
        became = outcomes[f"{group['namespace']}/{group['name']}"] = outcome_of_group(group)
        yield f"{gates} {became}"
        yield f"{became} {steady(group['message'])} victims {min(len(group['victims']), 3)}"
        yield f"{became} condition {group['condition'] and steady(group['condition']['message'])}"
        yield from (f"gated {steady(why)}" for why in group["gated"].values())
        for name, part in group.get("parts", {}).items():
            outcomes[f"{group['namespace']}/{name}"] = became
            yield f"{became} part {part['code']} {steady(part['message'])}"
            yield f"{became} part's condition {part['condition'] and steady(part['condition']['message'])}"
        for member in group["members"]:
            told = steady(member.get("message", ""))
            yield f"{became} {member.get('reason')} nominated {bool(member['nominatedNode'])} {told}"
    for thing in case["objects"]:
        metadata, spec = thing["metadata"], thing.get("spec", {})
        name = spec.get("schedulingGroup", {}).get("podGroupName", metadata["name"])
        became = outcomes.get(f"{metadata.get('namespace')}/{name}", "around")
        yield from (f"{became} {path}" for path in fields(thing["kind"], spec))


def steady(message: str) -> str:
    """A message without numbers and names of groups, nodes and pods."""
    return re.sub(r"\b(job|n|r|old|past|lone|zone)-?\w*\d[-\w]*|\d+", "#", message)


def of_queue(recorded: Json) -> Iterator[str]:
    """From where to where pods go, by which operation, and who had refused them."""
    places: dict[str, str] = {}
    for operation, step in zip(recorded["case"]["queue"]["operations"], recorded["expected"]["steps"], strict=True):
        for name, state in step.items():
            if name.startswith("("):
                continue
            before, after = places.get(name, "gone"), place_of(state)
            places[name] = after
            event = operation.get("event", {}).get("resource", "")
            refused = "refused" if " by= " not in state else ""
            pending = "pending" if " pending= " not in state else ""
            yield f"{operation['do']} {event} {before} to {after} {refused} {pending}"


def of_hints(recorded: Json) -> Iterator[str]:
    """What can be seen in a question and its answer."""
    (asked,), (said,) = recorded["case"]["questions"], recorded["expected"]["answers"]
    old, new = asked["old"], asked["new"]
    itself = (new or old)["metadata"].get("uid") == asked["pod"]["metadata"]["uid"]
    where = (
        f"{'assigned' if (new or old)['kind'] == 'Pod' and assigned(new or old) else ''} {'itself' if itself else ''}"
    )
    kind = "add" if old is None else "delete" if new is None else "update"
    for plugin, answers in said["hints"].items():
        yield from (f"{plugin} {answer} {kind} {where} under {key}" for key, answer in answers.items())
    yield from (f"{kind} {where} {change['actions']}" for change in said["changes"])
