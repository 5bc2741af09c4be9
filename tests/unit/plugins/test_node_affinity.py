"""NodeAffinity: the nodes that a pod, or the scheduler for it, selects and prefers."""

import pytest

from plugins.node_affinity import CONFLICT, NOT_ENFORCED, NOT_SELECTED, NodeAffinity
from scheduler import framework as fw
from scheduler.api import objects
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node, a_pod, a_requirement, a_term, preferred, required
from tests.unit.plugins.cluster import a_cluster, every_row, refusals, scores

SSD = a_requirement("disk", "In", "ssd")
ZONE_A = a_requirement("zone", "In", "a")


def three_nodes() -> NodeTable:
    return a_cluster(
        a_node("a", labels={"zone": "a", "disk": "ssd", "generation": "7"}),
        a_node("b", labels={"zone": "b", "disk": "hdd", "generation": "12"}),
        a_node("bare"),
    )


def by_name(operator: str, *names: str) -> objects.NodeSelectorTerm:
    return a_term(fields=[a_requirement("metadata.name", operator, *names)])


@pytest.mark.parametrize(
    ("pod", "fits"),
    [
        pytest.param(a_pod(node_affinity=required()), set(), id="no terms match nothing"),
        pytest.param(a_pod(node_affinity=required(a_term())), set(), id="an empty term matches nothing"),
        pytest.param(
            a_pod(node_affinity=required(by_name("NotIn", "b"))), {"a", "bare"}, id="matchFields excludes a node"
        ),
        pytest.param(
            a_pod(node_affinity=required(by_name("In", "gone"), a_term(SSD))),
            {"a"},
            id="fields do not match, labels of another term do",
        ),
        pytest.param(
            a_pod(node_affinity=required(a_term(fields=[a_requirement("spec.unschedulable", "NotIn", "x")]))),
            {"a", "b", "bare"},
            id="an unknown field is empty",
        ),
        pytest.param(
            a_pod(node_affinity=required(a_term(a_requirement("zone", "Like", "a")), a_term(SSD))),
            {"a"},
            id="a term that cannot be parsed matches nothing, others do",
        ),
        pytest.param(
            a_pod(node_affinity=required(a_term(a_requirement("generation", "Gt", "many")))),
            set(),
            id="Gt of what is no number cannot be parsed",
        ),
    ],
)
def test_a_pod_fits_the_nodes_that_it_selects(pod: fw.Pod, fits: set[str]) -> None:
    found = refusals(NodeAffinity(), pod, three_nodes())

    assert found == dict.fromkeys({"a", "b", "bare"} - fits, NOT_SELECTED)


def test_filter_and_score_do_without_pre_filter_and_pre_score() -> None:
    cluster, plugin = three_nodes(), NodeAffinity()
    picky = a_pod(node_selector={"disk": "ssd"}, node_affinity=required(a_term(ZONE_A)))
    choosy = a_pod(node_affinity=preferred((7, a_term(ZONE_A))))

    codes = plugin.filter_nodes(fw.CycleState(), picky, cluster, every_row(cluster))
    found = plugin.score_nodes(fw.CycleState(), choosy, cluster, every_row(cluster))

    assert codes is not None
    assert (codes == 0).tolist() == [True, False, False]
    assert found is not None
    assert found.tolist() == [7, 0, 0]


def test_labels_of_many_values_are_matched_as_well() -> None:
    names = [f"n{i}" for i in range(50)]
    cluster = a_cluster(*(a_node(name, labels={"host": name}) for name in names))
    pod = a_pod(node_affinity=required(a_term(a_requirement("host", "In", "n7", "n40", "gone"))))

    assert set(names) - refusals(NodeAffinity(), pod, cluster).keys() == {"n7", "n40"}


@pytest.mark.parametrize(
    ("pod", "answer"),
    [
        pytest.param(a_pod(), fw.SKIP, id="nothing is selected"),
        pytest.param(a_pod(node_affinity=preferred((1, a_term(SSD)))), fw.SKIP, id="preferences are not for Filter"),
        pytest.param(a_pod(node_selector={}), None, id="an empty nodeSelector is one"),
        pytest.param(
            a_pod(node_affinity=required(by_name("In", "a"), by_name("In", "b"))),
            fw.PreFilterResult(frozenset(("a", "b"))),
            id="the nodes of all terms",
        ),
        pytest.param(
            a_pod(node_affinity=required(by_name("In", "a"), a_term(SSD))), None, id="one term may match any node"
        ),
        pytest.param(
            a_pod(
                node_affinity=required(
                    a_term(
                        fields=[
                            a_requirement("metadata.name", "In", "a"),
                            a_requirement("metadata.name", "In", "b"),
                        ]
                    )
                )
            ),
            CONFLICT,
            id="a term that names two nodes at once",
        ),
        pytest.param(
            a_pod(node_affinity=required(by_name("In", "a", "b"))),
            fw.PreFilterResult(frozenset(("a", "b"))),
            id="several values, which Filter will not take",
        ),
    ],
)
def test_pre_filter_narrows_the_nodes_down(pod: fw.Pod, answer: fw.PreFilterResult | fw.Status | None) -> None:
    assert NodeAffinity().pre_filter(fw.CycleState(), pod, three_nodes()) == answer


@pytest.mark.parametrize(
    ("pod", "plugin", "answer"),
    [
        pytest.param(a_pod(), NodeAffinity(), fw.SKIP, id="no preference"),
        pytest.param(a_pod(node_affinity=required(a_term(SSD))), NodeAffinity(), fw.SKIP, id="only a requirement"),
        pytest.param(a_pod(node_affinity=preferred()), NodeAffinity(), None, id="an empty list of preferences"),
        pytest.param(a_pod(), NodeAffinity(preferred((1, a_term(SSD)))), None, id="a preference of the scheduler"),
        pytest.param(a_pod(), NodeAffinity(preferred()), fw.SKIP, id="an empty list of the scheduler's"),
        pytest.param(a_pod(), NodeAffinity(required(a_term(SSD))), fw.SKIP, id="a requirement of the scheduler"),
    ],
)
def test_pre_score_skips_where_nothing_is_preferred(
    pod: fw.Pod, plugin: NodeAffinity, answer: fw.Status | None
) -> None:
    cluster = three_nodes()

    assert plugin.pre_score(fw.CycleState(), pod, cluster, every_row(cluster)) == answer


def test_a_preferred_term_that_cannot_be_parsed_is_an_error() -> None:
    pod = a_pod(node_affinity=preferred((1, a_term(SSD)), (1, a_term(a_requirement("zone", "Like", "a")))))
    cluster = three_nodes()
    text = (
        '[1].matchExpressions[0].operator: Unsupported value: "Like": '
        'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
    )

    answer = NodeAffinity().pre_score(fw.CycleState(), pod, cluster, every_row(cluster))

    assert answer == fw.Status(fw.Code.ERROR, (text,))
    with pytest.raises(ValueError, match="Unsupported value"):
        NodeAffinity().score_nodes(fw.CycleState(), pod, cluster, every_row(cluster))


def test_what_the_scheduler_requires_is_told_first() -> None:
    plugin = NodeAffinity(required(a_term(a_requirement("zone", "Exists"))))
    pod = a_pod(node_selector={"zone": "a"})

    assert refusals(plugin, pod, three_nodes()) == {"b": NOT_SELECTED, "bare": NOT_ENFORCED}
    assert refusals(plugin, a_pod(), three_nodes()) == {"bare": NOT_ENFORCED}


def test_what_the_scheduler_prefers_adds_to_the_pods_preferences() -> None:
    plugin = NodeAffinity(preferred((60, a_term(ZONE_A))))
    pod = a_pod(node_affinity=preferred((30, a_term(a_requirement("zone", "In", "b")))))

    assert scores(plugin, pod, three_nodes()) == {"a": 100, "b": 50, "bare": 0}


def test_wrong_arguments_are_all_reported() -> None:
    wrong = objects.NodeAffinity(
        required=objects.NodeSelector(node_selector_terms=(a_term(a_requirement("zone", "Like")), a_term(SSD))),
        preferred=(
            objects.PreferredSchedulingTerm(weight=1, preference=a_term(a_requirement("a b", "In", "x"))),
            objects.PreferredSchedulingTerm(weight=1, preference=by_name("Exists")),
        ),
    )
    required_path = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    preferred_path = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"

    paths = [path for path, _ in NodeAffinity(wrong).problems()]

    assert paths == [
        f"{required_path}.nodeSelectorTerms[0].matchExpressions[0].operator",
        f"{preferred_path}[0].matchExpressions[0].key",
        f"{preferred_path}[1].matchFields[0].operator",
    ]
    assert NodeAffinity(required(a_term(SSD))).problems() == []
