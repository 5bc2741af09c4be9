"""Does what a suggestion says, as its reader would: by a JSON Patch, by commands of kubectl, or by one more node."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import jsonpatch

from scheduler.api.pod import Pod
from tests.campaigns.suggestions import sizes
from tests.campaigns.suggestions.clusters import CORDONED, Json
from tests.campaigns.suggestions.sizes import Sizes
from tests.campaigns.suggestions.worlds import Invalid, Judge, World

ONE_MORE: Final = re.compile(r"one more node (?:of \S+, )?like (\S+?),? would do")


@dataclass(frozen=True)
class Outcome:
    """What became of a suggestion."""

    sizes: Sizes
    problem: str
    """Why it is false; empty if it is true."""


def carried_out(world: World, name: str, before: Pod, suggestion: Json) -> Outcome:
    """Carry a suggestion out for the pod of this name, and have a fresh engine judge the pod."""
    try:
        return _carried_out(world, name, before, suggestion)
    except (Invalid, jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        return Outcome({}, f"cannot be carried out: {type(error).__name__}: {error}")


def _carried_out(world: World, name: str, before: Pod, suggestion: Json) -> Outcome:
    like = ONE_MORE.fullmatch(suggestion["text"])
    if like is not None:
        with Judge(world, one_more_like=like[1]) as judge:
            fits = judge.fits(judge.pod(name))
        return Outcome({"one more node": 1}, "" if judge.added in fits else "the new node does not take it")
    by_command: list[Sizes] = []
    for command in filter(None, suggestion.get("command", "").split(" && ")):
        arguments = shlex.split(command)
        by_command.append(sizes.of_command(arguments))
        world = after_command(world, arguments)
    if suggestion.get("patch"):
        world = _patched(world, name, suggestion)
    with Judge(world) as judge:
        after = judge.pod(name)
        fits = judge.fits(after)
    return Outcome(sizes.added(*by_command, sizes.of_pod(before, after)), _problem(suggestion, fits))


def _problem(suggestion: Json, fits: set[str]) -> str:
    if suggestion.get("command"):
        return "" if set(suggestion["names"]) <= fits else f"it fits {sorted(fits)}, not {suggestion['names']}"
    if not suggestion.get("patch"):
        return "it says nothing that could be done"
    return "" if suggestion["names"] == sorted(fits) else f"it fits {sorted(fits)}, not {suggestion['names']}"


def _patched(world: World, name: str, suggestion: Json) -> World:
    """Apply the patch to the object as it is written, and create the pod again."""
    source, _ = world.source(name)
    of = suggestion.get("object")
    if of is not None and (of["kind"], of["name"]) != (source["kind"], source["metadata"]["name"]):
        raise Invalid(f"the patch is for {of}")
    changed = jsonpatch.apply_patch(source, suggestion["patch"])
    if source["kind"] == "Pod":
        changed["metadata"].pop("resourceVersion", None)
        changed.pop("status", None)
    return world.changed(source["kind"], source["metadata"]["name"], changed)


def after_command(world: World, arguments: list[str]) -> World:
    """Return the world after a command of kubectl. Raises Invalid if kubectl refuses it."""
    match arguments:
        case ["kubectl", "uncordon", name]:
            uncordon(node := world.get("Node", name))
            return world.changed("Node", name, node)
        case ["kubectl", "taint", "nodes", name, *taints]:
            node = world.get("Node", name)
            for taint in taints:
                untaint(node, taint)
            return world.changed("Node", name, node)
        case ["kubectl", "label", "node", name, *rest]:
            label(node := world.get("Node", name), rest)
            return world.changed("Node", name, node)
        case ["kubectl", "delete", "pod", "--namespace", _, *names]:
            for each in names:
                world = after_deletion(world, each)
            return world
        case _:
            raise Invalid(f"unknown command: {arguments}")


def uncordon(node: Json) -> None:
    """Change the node as `kubectl uncordon` does, and as the node controller does then."""
    node["spec"].pop("unschedulable", None)
    node["spec"]["taints"] = [taint for taint in node["spec"].get("taints", ()) if taint != CORDONED]


def untaint(node: Json, taint: str) -> None:
    """`taint`: as `kubectl taint` takes it, with a minus at its end. Raises Invalid."""
    left = [each for each in node["spec"].get("taints", ()) if f"{spelled_taint(each)}-" != taint]
    if len(left) == len(node["spec"].get("taints", ())):
        raise Invalid(f"there is no taint {taint}")
    node["spec"]["taints"] = left


def spelled_taint(taint: Json) -> str:
    """Write a taint as kubectl does."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def label(node: Json, arguments: list[str]) -> None:
    """Raises Invalid if a label is there already, and is not to be overwritten."""
    labels = node["metadata"]["labels"]
    for key, _, value in (each.partition("=") for each in arguments if each != "--overwrite"):
        if labels.get(key, value) != value and "--overwrite" not in arguments:
            raise Invalid(f"'{key}' already has a value ({labels[key]}), and --overwrite is false")
        labels[key] = value


def after_deletion(world: World, pod: str) -> World:
    """Return the world without a pod. Deleting the mirror of a static pod changes nothing."""
    metadata = world.get("Pod", pod)["metadata"]
    return world if _is_static(metadata) else world.without("Pod", pod)


def deletable(world: World, priority: int) -> Iterator[str]:
    """Yield the running pods of lower priority that are gone once they are deleted."""
    for pod in world.running():
        if pod["spec"].get("priority", 0) < priority and not _is_static(pod["metadata"]):
            yield pod["metadata"]["name"]


def _is_static(metadata: Json) -> bool:
    return any(owner["kind"] == "Node" for owner in metadata.get("ownerReferences", ()))
