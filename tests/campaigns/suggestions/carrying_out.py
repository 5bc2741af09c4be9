"""Does what a suggestion says, as its reader would: by a JSON Patch, by commands of kubectl, or by one more node."""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import jsonpatch

from scheduler.api.pods.pod import Pod
from tests.campaigns.suggestions import sizes
from tests.campaigns.suggestions.clusters import CORDONED, Json
from tests.campaigns.suggestions.sizes import Sizes
from tests.campaigns.suggestions.worlds import Invalid, Judge, World

ONE_MORE: Final = re.compile(r"one more node (?:of \S+, )?like (\S+?)(?:, but with another (\S+))?,? would do")

TOLERATING: Final = re.compile(r"make ResourceClaim (\S+) again, tolerating (\S+) \(.*\)")
PRIORITY: Final = re.compile(
    r"give it a priority above \d+, by a PriorityClass: it could then evict \d+ pods?, for example on (\S+) .*"
)
WAIT: Final = re.compile(r"wait until (.+?) ha(?:s|ve) left")


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
        model, key = like.groups("")
        with Judge(world, one_more_like=model, of_new=key.rstrip(",")) as judge:
            fits = judge.fits(judge.pod(name))
        kind = "one of a new domain" if key else "one more node"
        return Outcome({kind: 1}, "" if judge.added in fits else "the new node does not take it")
    if (raised := PRIORITY.fullmatch(suggestion["text"])) is not None:
        return Outcome(
            {"priority": 1}, "" if raised[1] in raised_preempts(world, name, before) else "it does not evict"
        )
    by_command: list[Sizes] = []
    for claim, taint in TOLERATING.findall(suggestion["text"]):
        by_command.append({"device toleration": 1})
        world = with_toleration(world, claim, taint)
    if (wait := WAIT.search(suggestion["text"])) is not None:
        leaving = [each.rpartition("/")[2] for each in wait[1].split(", ") if each != "…"]
        by_command.append({"wait": len(leaving)})
        for each in leaving:
            world = after_deletion(world, each)
    for command in filter(None, suggestion.get("command", "").split(" && ")):
        arguments = shlex.split(command)
        by_command.append(_of_command(arguments, suggestion["text"]))
        world = after_command(world, arguments)
    if suggestion.get("patch"):
        world = _patched(world, name, suggestion)
    with Judge(world) as judge:
        after = judge.pod(name)
        fits = judge.fits(after)
    return Outcome(sizes.added(*by_command, sizes.of_pod(before, after)), _problem(suggestion, fits))


def _of_command(arguments: list[str], text: str) -> Sizes:
    found = sizes.of_command(arguments)
    return {"delete equal": found["delete"]} if "of the same priority" in text else found


def _problem(suggestion: Json, fits: set[str]) -> str:
    if suggestion.get("command") or suggestion["text"].startswith("wait "):
        return "" if set(suggestion["names"]) <= fits else f"it fits {sorted(fits)}, not {suggestion['names']}"
    if not suggestion.get("patch") and not TOLERATING.search(suggestion["text"]):
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
        case ["kubectl", "annotate", "pvc", "--namespace", _, name, annotation]:
            claim = world.get("PersistentVolumeClaim", name)
            if claim["metadata"].get("annotations", {}).pop(annotation.removesuffix("-"), None) is None:
                raise Invalid(f"there is no annotation {annotation}")
            return world.changed("PersistentVolumeClaim", name, claim)
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
    """Return the world without a pod; the devices of claims that it alone used are freed.

    Deleting the mirror of a static pod changes nothing.
    """
    metadata = world.get("Pod", pod)["metadata"]
    if _is_static(metadata):
        return world
    without = world.without("Pod", pod)
    for each in world.objects:
        if each["kind"] == "ResourceClaim" and [
            consumer["name"] for consumer in each.get("status", {}).get("reservedFor", ())
        ] == [pod]:
            freed = {key: value for key, value in each.items() if key != "status"}
            without = without.changed("ResourceClaim", each["metadata"]["name"], freed)
    return without


def with_toleration(world: World, claim: str, taint: str) -> World:
    """Return the world with a claim that tolerates a taint of devices in each request."""
    made = world.get("ResourceClaim", claim)
    key, _, effect = taint.partition(":")
    for request in made["spec"]["devices"]["requests"]:
        toleration = {"key": key, "operator": "Exists", "effect": effect}
        request["exactly"]["tolerations"] = [*request["exactly"].get("tolerations", ()), toleration]
    return world.changed("ResourceClaim", claim, made)


def raised_preempts(world: World, name: str, pod: Pod) -> set[str]:
    """Return the nodes on which the pod would fit without all pods of its own or a lower priority there."""
    found = set()
    for node in (each["metadata"]["name"] for each in world.nodes()):
        without = world
        for each in world.running():
            if each["spec"]["nodeName"] == node and each["spec"].get("priority", 0) <= pod.priority:
                without = without.without("Pod", each["metadata"]["name"])
        with Judge(without) as judge:
            if node in judge.fits(judge.pod(name)):
                found.add(node)
    return found


def deletable(world: World, is_wanted: Callable[[int], bool]) -> Iterator[Json]:
    """Yield the running pods of such a priority that are gone once they are deleted, or once they have left."""
    for pod in world.running():
        if is_wanted(pod["spec"].get("priority", 0)) and not _is_static(pod["metadata"]):
            yield pod


def _is_static(metadata: Json) -> bool:
    return any(owner["kind"] == "Node" for owner in metadata.get("ownerReferences", ()))
