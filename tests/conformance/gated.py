"""Compare Loadmaster with kube-scheduler on clusters that need feature gates which are off by default.

    python -m tests.conformance.run --only gated

As many clusters have groups of pods with devices. A case that differs is made small and written to `gated/`. Of taints
it also asks about events, as `hints.py` does.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tests.conformance import failure, groups_ours, hints, ours
from tests.conformance.failure import answer
from tests.conformance.generate import cluster_of, objects_of
from tests.conformance.generators import gated_devices
from tests.conformance.generators.gated_amounts import AMOUNTS, GatedAmounts
from tests.conformance.generators.gated_devices import GatedDevices
from tests.conformance.generators.gated_taints import COMPARISONS, GatedTaints
from tests.conformance.generators.group_devices import with_devices
from tests.conformance.generators.observed_events import question
from tests.conformance.generators.resources import Resources
from tests.conformance.generators.spread import Spread
from tests.conformance.generators.topic import Draw, Topic
from tests.conformance.groups import CHUNK, REPORTED, Oracles, differences
from tests.conformance.recorded import CASES

Json = dict[str, Any]
GATED: Final = CASES.parent / "gated"
DEVICES: Final = (Resources(), GatedDevices())
TOPICS: Final[Mapping[tuple[str, ...], Sequence[Topic]]] = {
    **dict.fromkeys(gated_devices.GATES, DEVICES),
    (AMOUNTS,): (Resources(), GatedAmounts()),
    (COMPARISONS,): (Resources(), GatedTaints(), Spread()),
}
"""The sets of gates that are tried, each of which needs a kube-scheduler of its own, and what clusters have then."""


def generate(seed: int) -> Json:
    """The case of this seed."""
    draw = Draw(seed)
    gates = list(TOPICS)[seed % len(TOPICS)]
    objects = objects_of(draw, TOPICS[gates], ours.DEFAULT_CONFIG, cluster_of(draw.randint(1, 5)))
    return {
        "name": f"gated-{seed}",
        "gates": list(gates),
        "alone": True,
        "config": ours.DEFAULT_CONFIG,
        "objects": objects,
    }


def compare(seeds: range) -> int:
    """Judge the cases of these seeds; stop at the first difference. Return the exit code."""
    with Oracles() as oracles:
        known, judge = list(judged(oracles, seeds)), groups_ours.judge
        if failure.compare(known, failure.outcomes, judge, oracles.judge_all, **REPORTED, directory=GATED):
            return 1
        questions = [asking(case) for case, _ in known if COMPARISONS in case["gates"]]
        return hints.compare_judged(hints.with_hints(questions, oracles.judge_all(questions)))


def judged(oracles: Oracles, seeds: range) -> Iterator[tuple[Json, Json]]:
    """The cases of these seeds and the oracle's verdicts."""
    for start in range(0, len(seeds), CHUNK):
        chunk = seeds[start : start + CHUNK]
        cases = [*map(generate, chunk), *map(with_devices, chunk)]
        yield from zip(cases, oracles.judge_all(cases), strict=True)


def asking(case: Json) -> Json:
    """Questions about events in the cluster of a case; preemption, which the oracle awaits, has no hints there."""
    draw = Draw(f"hints of {case['name']}")
    nodes, pods = ([each for each in case["objects"] if each["kind"] == kind] for kind in ("Node", "Pod"))
    questions = [question(draw, nodes, pods) for _ in range(hints.QUESTIONS)]
    plugins = {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}
    config = ours.DEFAULT_CONFIG | {"profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}]}
    return case | {"config": config, "objects": [], "questions": hints.in_thousandths(questions)}


def gates_matter(recorded: Json) -> bool:
    """Whether something else would become of a pod if the gates were off."""
    return bool(differences(recorded["expected"], answer(groups_ours.judge, recorded["case"] | {"gates": []})))
