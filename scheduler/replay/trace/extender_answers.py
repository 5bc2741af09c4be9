"""Answers of extenders in a line of a trace: in few bytes, even about thousands of nodes."""

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from scheduler.extenders.chain import FilterVerdict
from scheduler.extenders.conversation import PREEMPT, ExtenderAnswer
from scheduler.framework.extenders import Overtaken
from scheduler.framework.preemption.dry_run import Victims
from scheduler.framework.status import Code, unresolvable, unschedulable
from scheduler.state.nodes.node_table import NodeTable


class Refusal(msgspec.Struct, array_like=True, frozen=True):
    """The nodes that were refused for one reason."""

    message: str
    is_final: bool
    """Whether preemption would not help."""
    names: tuple[str, ...]


class Filtered(msgspec.Struct, array_like=True, frozen=True, tag="filter"):
    """The nodes that passed, or, if those are fewer, the nodes that did not."""

    are_left: bool
    names: tuple[str, ...]
    refusals: tuple[Refusal, ...]


class Rated(msgspec.Struct, array_like=True, frozen=True, tag="prioritize"):
    """Score → nodes."""

    scores: tuple[tuple[int, tuple[str, ...]], ...]


class VictimsOnNode(msgspec.Struct, array_like=True, frozen=True):
    """Pods that may be evicted on a node."""

    node: str
    uids: tuple[str, ...]
    violations: int


class Agreed(msgspec.Struct, array_like=True, frozen=True, tag="preempt"):
    """The candidates for preemption that are left."""

    candidates: tuple[VictimsOnNode, ...]


class Failed(msgspec.Struct, array_like=True, frozen=True, tag="error"):
    """No answer, or none that counts."""

    message: str
    is_overtaken: bool


WrittenAnswer = Filtered | Rated | Agreed | Failed


def written_answer(verb: str, answer: ExtenderAnswer | Exception) -> WrittenAnswer:
    """Reduce an answer to what decisions depend on."""
    if isinstance(answer, Exception):
        return Failed(str(answer), isinstance(answer, Overtaken))
    if isinstance(answer, FilterVerdict):
        return _filtered(answer)
    if verb == PREEMPT:
        candidates = cast("Mapping[str, Victims]", answer).items()
        return Agreed(tuple(VictimsOnNode(name, tuple(pod.uid for pod in pods), n) for name, (pods, n) in candidates))
    by_score: dict[int, list[str]] = {}
    for name, score in cast("Mapping[str, int]", answer).items():
        by_score.setdefault(score, []).append(name)
    return Rated(tuple((score, tuple(names)) for score, names in by_score.items()))


def _filtered(verdict: FilterVerdict) -> Filtered:
    passed = frozenset(verdict.passed)
    are_left = 2 * len(passed) < len(verdict.asked)
    names = verdict.passed if are_left else [name for name in verdict.asked if name not in passed]
    by_reason: dict[tuple[str, bool], list[str]] = {}
    for name, status in verdict.refusals.items():
        is_final = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        by_reason.setdefault((status.message, is_final), []).append(name)
    refusals = (Refusal(message, is_final, tuple(of)) for (message, is_final), of in by_reason.items())
    return Filtered(are_left, tuple(names), tuple(refusals))


def verdict_of(answer: Filtered, asked: Sequence[str]) -> FilterVerdict:
    names = frozenset(answer.names)
    passed = [name for name in asked if (name in names) is answer.are_left]
    refusals = {
        name: unresolvable(each.message) if each.is_final else unschedulable(each.message)
        for each in answer.refusals
        for name in each.names
    }
    return FilterVerdict(asked, passed, refusals)


def victims_of(answer: Agreed, table: NodeTable) -> dict[str, Victims]:
    """Return node → pods there that may be evicted."""
    found = {}
    for node, uids, violations in map(msgspec.structs.astuple, answer.candidates):
        there = {pod.uid: pod for pod in table.pods_on(node)} if table.row_of(node) is not None else {}
        found[node] = Victims([there[uid] for uid in uids if uid in there], violations)
    return found
