"""Random life of pods and nodes: every count equals a recount of the pods, one by one."""

from contextlib import ExitStack
from typing import Any, Final

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler.api.label_selectors import parse_label_selector
from scheduler.api.objects import LabelSelector, LabelSelectorRequirement
from scheduler.api.pods.pod import Pod, pod_from_dict
from scheduler.api.pods.pod_affinity import AffinityTerm
from scheduler.framework.pods import PodMatch, TermKind, TermWeights
from scheduler.state import pod_index
from scheduler.state.nodes import count_columns
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node

NODES: Final = ["n1", "n2", "n3", "n4", "n5"]
NAMESPACES: Final = ["x", "y", "z"]
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

node_names = st.sampled_from(NODES)
uids = st.sampled_from(["a", "b", "c", "d", "e", "f"])
namespaces = st.sampled_from(NAMESPACES)
labels = st.none() | st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["", "1", "2"]))
expressions = st.builds(
    lambda key, operator, values: LabelSelectorRequirement(
        key=key, operator=operator, values=tuple(values) if operator.endswith("n") else None
    ),
    st.sampled_from(["app", "tier"]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(st.sampled_from(["", "1", "2"]), min_size=1, max_size=2),
)
selectors = st.none() | st.builds(LabelSelector, match_expressions=st.lists(expressions, max_size=2).map(tuple))
label_expressions = st.builds(
    lambda key, operator, values: {
        "key": key,
        "operator": operator,
        **({"values": values} if operator.endswith("n") else {}),
    },
    st.sampled_from(["app", "tier"]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(st.sampled_from(["", "1", "2"]), min_size=1, max_size=2),
)
matches = st.builds(
    PodMatch, st.none() | st.frozensets(namespaces, max_size=2), selectors.map(parse_label_selector), st.booleans()
)
terms = st.fixed_dictionaries(
    {
        "topologyKey": st.sampled_from(["zone", "rack"]),
        "labelSelector": st.sampled_from([None, {}, {"matchLabels": {"app": "1"}}, {"matchLabels": {"a b": ""}}])
        | st.fixed_dictionaries({"matchExpressions": st.lists(label_expressions, max_size=2)}),
        "namespaces": st.lists(namespaces, max_size=1),
        "namespaceSelector": st.sampled_from([None, {}, {"matchLabels": {"team": "t"}}]),
    }
)
lists = st.fixed_dictionaries(
    {
        REQUIRED: st.lists(terms, max_size=2),
        PREFERRED: st.lists(
            st.fixed_dictionaries({"weight": st.sampled_from([1, 2]), "podAffinityTerm": terms}), max_size=2
        ),
    }
)
affinities = st.none() | st.fixed_dictionaries({"podAffinity": st.none() | lists, "podAntiAffinity": st.none() | lists})
weights = st.sets(st.sampled_from(TermKind), min_size=1).flatmap(
    lambda kinds: st.tuples(*(st.tuples(st.just(kind), st.sampled_from([1, -1, 3])) for kind in sorted(kinds, key=str)))
)
pod_facts = st.fixed_dictionaries({"labels": labels, "deleting": st.booleans(), "affinity": affinities})


def a_drawn_pod(uid: str, facts: dict[str, Any]) -> Pod:
    metadata = {
        "name": uid,
        "uid": uid,
        "namespace": NAMESPACES[ord(uid) % 3],
        "labels": facts["labels"],
        "deletionTimestamp": "2026-01-01T00:00:00Z" if facts["deleting"] else None,
    }
    return pod_from_dict({"metadata": metadata, "spec": {"affinity": facts["affinity"]}})


def is_counted(pod: Pod, match: PodMatch) -> bool:
    if match.namespaces is not None and pod.namespace not in match.namespaces:
        return False
    return not (match.alive_only and pod.is_deleting) and match.selector.matches(pod.labels)


def terms_of(pod: Pod, kind: TermKind) -> list[tuple[AffinityTerm, int]]:
    terms = pod.affinity_terms
    match kind:
        case TermKind.REQUIRED_AFFINITY:
            return [(term, 0) for term in terms.required_affinity]
        case TermKind.REQUIRED_ANTI_AFFINITY:
            return [(term, 0) for term in terms.required_anti_affinity]
        case TermKind.PREFERRED_AFFINITY:
            return [(term, weight) for term, weight in terms.preferred_affinity]
        case TermKind.PREFERRED_ANTI_AFFINITY:
            return [(term, weight) for term, weight in terms.preferred_anti_affinity]


class PodsComeAndGo(RuleBasedStateMachine):
    """The table against a dict of pods by node."""

    def __init__(self) -> None:
        super().__init__()
        self.table = NodeTable(1)
        # Room for three columns of eight rows: columns are dropped and built again all the time.
        keys, limit = self.table._labels.rows_with, 3 * count_columns.column_bytes(8)
        self.table._alike_pods = pod_index.AlikePodsIndex(1, keys, limit, sums_limit=4 * 1024)
        self.pods: dict[str, tuple[str, Pod]] = {}
        self.nodes: set[str] = set()
        self.asked: list[PodMatch] = []
        self.what_ifs = ExitStack()
        self.supposed: dict[str, tuple[str, Pod]] | None = None

    @precondition(lambda self: self.supposed is None)
    @rule(name=node_names, keys=st.sets(st.sampled_from(["zone", "rack"])))
    def set_node(self, name: str, keys: set[str]) -> None:
        self.table.set_node(a_node(name, labels=dict.fromkeys(keys, "1")))
        self.nodes.add(name)

    @precondition(lambda self: self.supposed is None)
    @rule(name=node_names)
    def remove_node(self, name: str) -> None:
        self.table.remove_node(name)
        self.nodes.discard(name)

    @precondition(lambda self: self.supposed is None)
    @rule(uid=uids, name=node_names, facts=pod_facts)
    def add_or_replace(self, uid: str, name: str, facts: dict[str, Any]) -> None:
        pod = a_drawn_pod(uid, facts)
        if uid in self.pods:
            name, old = self.pods[uid]
            self.table.replace_pod(name, old, pod)
        else:
            self.table.add_pod(name, pod)
        self.pods[uid] = name, pod

    @precondition(lambda self: self.supposed is None)
    @rule(uid=uids)
    def remove(self, uid: str) -> None:
        if uid in self.pods:
            self.table.remove_pod(*self.pods.pop(uid))

    @precondition(lambda self: self.supposed is None and bool(self.nodes))
    @rule(name=node_names, facts=pod_facts, leave=st.booleans())
    def suppose(self, name: str, facts: dict[str, Any], leave: bool) -> None:
        row = self.table.row_of(name)
        if row is None:
            return
        leaving = [pod for where, pod in self.pods.values() if where == name] if leave else []
        visitor = a_drawn_pod("v", facts)
        self.what_ifs.enter_context(self.table.what_if(row, add=[visitor], remove=leaving))
        gone = {pod.uid for pod in leaving}
        self.supposed = {uid: entry for uid, entry in self.pods.items() if uid not in gone} | {"v": (name, visitor)}

    @precondition(lambda self: self.supposed is not None)
    @rule()
    def end_suppositions(self) -> None:
        self.what_ifs.close()
        self.supposed = None

    @rule(match=matches)
    def ask(self, match: PodMatch) -> None:
        self.asked = [match, *self.asked][:5]

    @rule(again=st.integers(0, 4))
    def check_a_count(self, again: int) -> None:
        for match in self.asked[again : again + 1]:
            expected = [sum(is_counted(pod, match) for pod in pods) for pods in self.by_row()]
            assert self.table.pods.counts(match).tolist() == expected, match

    @rule(weights=weights, namespace=namespaces, labels=labels, team=st.booleans())
    def check_terms(self, weights: TermWeights, namespace: str, labels: dict[str, str] | None, team: bool) -> None:
        of_namespace = {"team": "t"} if team else {}
        rows = self.by_row()
        expected: dict[str, list[int]] = {}
        for row, pods in enumerate(rows):
            for pod in pods:
                for kind, amount in weights:
                    for term, weight in terms_of(pod, kind):
                        if self.has_key(term.topology_key) and term.matches(namespace, labels, of_namespace):
                            column = expected.setdefault(term.topology_key, [0] * len(rows))
                            column[row] += amount * (weight or 1)

        found = self.table.pods.terms_towards(weights, namespace, labels or {}, of_namespace)

        assert {key: column.counts.tolist() for key, column in found} == expected

    @rule(weights=weights)
    def check_whether_there_are_terms(self, weights: TermWeights) -> None:
        terms = [
            term for pods in self.by_row() for pod in pods for kind, _ in weights for term, _ in terms_of(pod, kind)
        ]
        assert self.table.pods.has_terms(weights) == any(self.has_key(term.topology_key) for term in terms)

    def has_key(self, key: str) -> bool:
        nodes = map(self.table.node, self.nodes)
        return any(node is not None and key in (node.metadata.labels or {}) for node in nodes)

    @invariant()
    def sums_are_right(self) -> None:
        self.table.check_invariants()

    def teardown(self) -> None:
        self.what_ifs.close()

    def by_row(self) -> list[list[Pod]]:
        rows: list[list[Pod]] = [[] for _ in range(self.table.size)]
        for name, pod in (self.pods if self.supposed is None else self.supposed).values():
            rows[self.table._row_of[name]].append(pod)
        return rows


PodsComeAndGo.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestPodsComeAndGo = PodsComeAndGo.TestCase
