"""Compare what Loadmaster and kube-scheduler make of events: which ones they see, and whom the hints would wake.

    python -m tests.conformance.run --only hints

A case is a configuration and questions; its first profile is asked. The verdict
on it is `{"registered": {plugin: [event]}, "answers": [{"hints": {plugin: {"0/1": "Queue"}}, "changes": [event]}]}`,
with an event as `{"resource", "actions"}`; "0/1" is the first event of the question under the second registration.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import plugins
from scheduler.api.decoding import reread
from scheduler.api.objects import Node, node_from_dict
from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.api.pods.requests import allocatable_of
from scheduler.api.unstructured import Unstructured
from scheduler.config.load import config_from_dict
from scheduler.engine.engine import build_engine
from scheduler.framework.events import Action, ClusterEvent, ClusterEventWithHint, QueueingHint
from scheduler.framework.nodes.resources import STRUCTS
from scheduler.process.metrics import Metrics
from scheduler.runtime.changes import node_changes, pod_changes
from tests.conformance.compare import Difference, unequal
from tests.conformance.generate import generate
from tests.conformance.generators.observed_events import question
from tests.conformance.generators.topic import Draw, assigned
from tests.conformance.oracle import Oracle
from tests.conformance.ours import gates_of
from tests.conformance.recorded import CASES, write_cases
from tests.conformance.wider_hints import as_kube_scheduler_answers, without_further
from tests.fakes import FakeWorld

Json = dict[str, Any]
Registered = dict[str, Sequence[ClusterEventWithHint]]

QUESTIONS: Final = 20
"""Questions of one case: setting up kube-scheduler for it takes longer than to ask them."""

CHUNK: Final = 200
HINTS: Final = CASES.parent / "hints"

_STRUCTS: Final = {struct.__name__: struct for struct in STRUCTS.values()}
"""Kind → what hints get objects of it as."""

ACTIONS: Final = {
    "".join(word.capitalize() for word in (action.name or "").split("_")): action
    for action in Action
    if action is not Action.UPDATE_OTHER
} | {"Update": Action.UPDATE_OTHER}
"""kube-scheduler's name → ours. An incoming general Update is one that is none of the others."""


def generate_questions(seed: int) -> Json:
    """The case of this seed: hints look at what they are given, and at DeviceClasses."""
    cluster = generate(seed)
    draw = Draw(f"hints of {seed}")
    nodes = [each for each in cluster["objects"] if each["kind"] == "Node"]
    pods = [each for each in cluster["objects"] if each["kind"] == "Pod"]
    waiting = any(not assigned(pod) for pod in pods)
    questions = [question(draw, nodes, pods) for _ in range(QUESTIONS)] if waiting else []
    classes = [each for each in cluster["objects"] if each["kind"] == "DeviceClass"]
    return {
        "name": f"seed-{seed}",
        "config": cluster["config"],
        "objects": classes,
        "questions": in_thousandths(questions),
    }


def in_thousandths(questions: list[Json]) -> list[Json]:
    """The questions without amounts of memory that kube-scheduler gets wrong in thousandths, or only we do in bytes.

    It compares what a pod asked for before and after in thousandths of a byte. Of 1E there is no such number, which it
    takes for nothing; and a pod that asks for some thousandths less asks for the same number of bytes.
    """
    text = json.dumps(questions)
    for odd, plain in (("1E", "1e15"), ("100m", "1")):
        text = text.replace(f'"memory": "{odd}"', f'"memory": "{plain}"')
    return list(json.loads(text))


def judge(case: Json) -> Json:
    """Loadmaster's verdict on a case."""
    config = config_from_dict(case["config"], plugins.IN_TREE, gates=gates_of(case))
    engine = build_engine(config, plugins.IN_TREE, FakeWorld().writers, Metrics(), lambda: 0.0)
    for each in case["objects"]:
        if "resource.k8s.io/DeviceClass" in engine.watched:
            engine.object_handlers.object_changed("resource.k8s.io/DeviceClass", decoded(each))
    registered = next(iter(engine.frameworks.values())).rejector_events()
    return {
        "registered": {plugin: [as_json(each.event) for each in events] for plugin, events in registered.items()},
        "answers": [answer(asked, registered) for asked in case["questions"]],
    }


def answer(asked: Json, registered: Registered) -> Json:
    """What the hints of all plugins say to one question."""
    pod, old, new = pod_from_dict(asked["pod"]), decoded(asked["old"]), decoded(asked["new"])
    hints: dict[str, dict[str, str]] = {}
    for i, event in enumerate(asked["events"]):
        happened = ClusterEvent(event["resource"], ACTIONS[event["actions"][0]])
        for plugin, events in registered.items():
            for j, each in enumerate(events):
                if each.event.matches(happened):
                    hints.setdefault(plugin, {})[f"{i}/{j}"] = hint(each, pod, old, new)
    return {"hints": hints, "changes": [as_json(change) for change in changes(old, new)]}


def hint(registered: ClusterEventWithHint, pod: Pod, old: object, new: object) -> str:
    """What one hint says; without one it is a yes."""
    if registered.hint is None:
        return QueueingHint.QUEUE.value
    try:
        return registered.hint(pod, old, new).value
    except ValueError:
        return "error"


def changes(old: object, new: object) -> Sequence[ClusterEvent]:
    """The events that an update amounts to; an object that came, went, or is of another kind has none."""
    if isinstance(old, Pod) and isinstance(new, Pod):
        return pod_changes(old, new)
    return node_changes(old, new) if isinstance(old, Node) and isinstance(new, Node) else ()


def decoded(thing: Json | None) -> Any:
    """The object as a hint gets it."""
    if thing is None:
        return None
    readers: dict[str, Callable[[Any], Any]] = {"Node": node_from_dict, "Pod": pod_from_dict}
    read: Callable[[Any], Any] = readers.get(thing["kind"], Unstructured.from_dict)
    struct = _STRUCTS.get(thing["kind"])
    return read(thing) if struct is None else reread(thing, struct)


def as_json(event: ClusterEvent) -> Json:
    """An event in the oracle's words."""
    whole = event.action & Action.UPDATE == Action.UPDATE
    names = [
        name for name, action in ACTIONS.items() if action & event.action and not (whole and action & Action.UPDATE)
    ]
    return {"resource": event.resource, "actions": [*names, "Update"] if whole else names}


def differences(case: Json, expected: Json, actual: Json) -> list[Difference]:
    """What `actual`, ours, says otherwise than `expected`, the oracle's.

    kube-scheduler registers plugins also where they are enabled only at points at which nothing can be refused.
    """
    rejectors = actual["registered"]
    found: list[Difference] = []
    shared = {plugin: without_further(plugin, events) for plugin, events in rejectors.items()}
    for plugin, events in shared.items():
        found += unequal(f"registered by {plugin}", expected["registered"].get(plugin), events)
    pairs = zip(case["questions"], expected["answers"], actual["answers"], strict=True)
    for i, (asked, theirs, ours) in enumerate(pairs):
        for plugin, events in shared.items():
            said = theirs["hints"].get(plugin, {})
            answers = ours["hints"].get(plugin, {})
            alike = as_kube_scheduler_answers(plugin, case, asked, said, answers, len(events))
            found += unequal(f"[{i}] {plugin}", said, alike)
        known = known_differences(asked)
        expected_names, actual_names = by_name(theirs["changes"]), by_name(ours["changes"])
        found += unequal(f"[{i}] changes", sorted(expected_names - known), sorted(actual_names - known))
    return found


def known_differences(asked: Json) -> set[str]:
    """The events of an update that kube-scheduler sees and we do not, or the other way round, on purpose."""
    old, new = asked["old"], asked["new"]
    if old is None or new is None:
        return set()
    if new["kind"] == "Node":
        # We compare amounts as they are written, and an API server does not change its mind about that.
        amounts = [allocatable_of(node["status"]["allocatable"]) for node in (old, new)]
        return {"Node/UpdateNodeAllocatable"} if amounts[0] == amounts[1] else set()
    if new["kind"] != "Pod":
        return set()
    # A pod of which only the status changed is no news.
    resource = "AssignedPod" if assigned(new) else "TargetPod"
    return {f"{resource}/Update"} if old["spec"] == new["spec"] else set()


def by_name(events: list[Json]) -> set[str]:
    """Without repetition: kube-scheduler tells of a taint and of an uncordoned node alike, each for itself."""
    return {f"{event['resource']}/{action}" for event in events for action in event["actions"]}


def compare(seeds: Sequence[int]) -> int:
    """Ask both about the cases of these seeds; stop at the first difference. Return the exit code."""
    with Oracle() as oracle:
        return compare_judged(judged(oracle, seeds))


def compare_judged(cases: Iterable[tuple[Json, Json]]) -> int:
    """Ask ourselves about cases with the oracle's verdicts; stop at the first difference. Return the exit code."""
    count = 0
    for case, expected in cases:
        if found := differences(case, expected, judge(case)):
            report(case, expected, found)
            return 1
        count += len(case["questions"])
    print(f"{count} events")
    return 0


def judged(oracle: Oracle, seeds: Sequence[int]) -> Iterator[tuple[Json, Json]]:
    """The cases of these seeds with the oracle's verdicts. Raises ValueError for a case that it refuses."""
    for start in range(0, len(seeds), CHUNK):
        cases = [generate_questions(seed) for seed in seeds[start : start + CHUNK]]
        yield from with_hints(cases, list(oracle.judge_all(cases)))


def with_hints(cases: Iterable[Json], verdicts: Iterable[Json]) -> Iterator[tuple[Json, Json]]:
    """The cases with what the oracle's verdicts say of hints. Raises ValueError for a case that it refuses."""
    for case, verdict in zip(cases, verdicts, strict=True):
        if verdict.get("error"):
            raise ValueError(f"{case['name']}: kube-scheduler refuses the case: {verdict['error']}")
        yield case, verdict["hints"]


def report(case: Json, expected: Json, found: Sequence[Difference]) -> None:
    """Print the differences, and write down the questions on which there are some."""
    print(f"\nhints of {case['name']} differ:")
    for difference in found[:12]:
        print(f"  {difference}")
    numbers = sorted({int(each.where[1:].partition("]")[0]) for each in found if each.where.startswith("[")})
    path = write_cases(HINTS / f"failed-{case['name']}.jsonl", [alone(case, expected, i) for i in numbers[:1]])
    print(f"Written to {path}: once it passes, keep it as a recorded case.")


def alone(case: Json, expected: Json, number: int) -> Json:
    """One question with its answer, as it is recorded."""
    return {
        "case": case | {"name": f"{case['name']}-{number}", "questions": [case["questions"][number]]},
        "expected": expected | {"answers": [expected["answers"][number]]},
    }
