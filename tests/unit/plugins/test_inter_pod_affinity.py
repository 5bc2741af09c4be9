"""InterPodAffinity: required affinity and anti-affinity, both ways."""

from collections.abc import Sequence

import pytest

from plugins.inter_pod_affinity.filter import AFFINITY, ANTI_AFFINITY, EXISTING_ANTI_AFFINITY
from scheduler import framework as fw
from scheduler.api.objects import PodAffinityTerm
from scheduler.framework.arguments import parse_arguments
from scheduler.testing import Objects, a_node, a_pod, an_object
from tests.unit.plugins.cluster import a_cluster, every_row, refusals
from tests.unit.plugins.pod_affinity import (
    HOST,
    ZONE,
    a_plugin,
    a_selector,
    a_zoned_node,
    pods_like,
    with_terms,
)

WEB = {"app": "web"}
DB = {"app": "db"}


def test_reasons_and_codes_are_kube_schedulers() -> None:
    assert fw.unresolvable("node(s) didn't match pod affinity rules") == AFFINITY
    assert fw.unschedulable("node(s) didn't match pod anti-affinity rules") == ANTI_AFFINITY
    assert fw.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules") == EXISTING_ANTI_AFFINITY


def test_a_pod_that_no_required_term_concerns_skips_filter() -> None:
    cluster = a_cluster(
        a_zoned_node("a", "z1"),
        pods={"a": [with_terms("x", near=[pods_like(ZONE, app="web")], apart=[pods_like(ZONE, app="db")])]},
    )

    answer = a_plugin().pre_filter(fw.CycleState(), with_terms(labels=WEB, likes=[(1, pods_like(ZONE))]), cluster)

    assert answer == fw.SKIP


@pytest.mark.parametrize(
    ("expressions", "matches"),
    [
        pytest.param([("app", "In", "web", "db")], True, id="In"),
        pytest.param([("app", "In", "db")], False, id="In, another value"),
        pytest.param([("app", "NotIn", "db")], True, id="NotIn"),
        pytest.param([("absent", "NotIn", "x")], True, id="NotIn, no such label"),
        pytest.param([("app", "Exists")], True, id="Exists"),
        pytest.param([("absent", "DoesNotExist")], True, id="DoesNotExist"),
        pytest.param([("app", "Exists"), ("tier", "In", "back")], False, id="all expressions must hold"),
        pytest.param([], True, id="an empty selector matches every pod"),
    ],
)
def test_a_pod_goes_near_pods_that_its_selector_matches(expressions: list[tuple[str, ...]], matches: bool) -> None:
    cluster = a_cluster(
        a_zoned_node("with", "z1"),
        a_zoned_node("beside", "z1"),
        a_zoned_node("other", "z2"),
        a_zoned_node("nowhere", None),
        pods={"with": [a_pod("x", labels={"app": "web", "tier": "front"})]},
    )

    near = refusals(a_plugin(), with_terms(near=[pods_like(ZONE, *expressions)]), cluster)
    apart = refusals(a_plugin(), with_terms(apart=[pods_like(ZONE, *expressions)]), cluster)

    far = ["other", "nowhere"] if matches else ["with", "beside", "other", "nowhere"]
    assert near == dict.fromkeys(far, AFFINITY)
    assert apart == (dict.fromkeys(["with", "beside"], ANTI_AFFINITY) if matches else {})


def test_a_term_without_selector_matches_no_pod() -> None:
    cluster = a_cluster(a_zoned_node("a", "z1"), pods={"a": [a_pod("x", labels=WEB)]})
    nobody = PodAffinityTerm(topology_key=ZONE)

    assert refusals(a_plugin(), with_terms(labels=WEB, near=[nobody]), cluster) == {"a": AFFINITY}
    assert refusals(a_plugin(), with_terms(labels=WEB, apart=[nobody]), cluster) == {}


def test_affinity_is_told_before_anti_affinity_and_that_before_the_anti_affinity_of_others() -> None:
    hostile = with_terms("hostile", WEB, apart=[pods_like(HOST, app="web")])
    cluster = a_cluster(
        a_zoned_node("all", None), a_zoned_node("two", "z1"), a_zoned_node("one", "z1"), a_zoned_node("none", "z1"),
        pods={
            "all": [hostile],
            "two": [with_terms("h2", WEB, apart=[pods_like(HOST, app="web")])],
            "one": [with_terms("h3", DB, apart=[pods_like(HOST, app="web")])],
        },
    )  # fmt: skip
    pod = with_terms(labels=WEB, near=[pods_like(ZONE, app="db")], apart=[pods_like(HOST, app="web")])

    found = refusals(a_plugin(), pod, cluster)

    assert found == {"all": AFFINITY, "two": ANTI_AFFINITY, "one": EXISTING_ANTI_AFFINITY}


@pytest.mark.parametrize(
    ("labels", "refused"),
    [
        pytest.param({"app": "web"}, {"a", "b"}, id="the first term of one"),
        pytest.param({"tier": "back"}, {"b"}, id="the second term of the other"),
        pytest.param({"app": "db"}, set(), id="none"),
    ],
)
def test_any_anti_affinity_term_of_a_pod_there_keeps_a_pod_away(labels: dict[str, str], refused: set[str]) -> None:
    cluster = a_cluster(
        *(a_zoned_node(name, f"z-{name}") for name in "abc"),
        pods={
            "a": [with_terms("x", apart=[pods_like(ZONE, app="web"), pods_like("absent", tier="back")])],
            "b": [with_terms("y", apart=[pods_like(ZONE, app="web"), pods_like(HOST, tier="back")])],
        },
    )

    found = refusals(a_plugin(), a_pod("new", labels=labels), cluster)

    assert found == dict.fromkeys(refused, EXISTING_ANTI_AFFINITY)


def test_all_affinity_terms_must_be_met_by_a_single_pod() -> None:
    both = [pods_like(ZONE, app="web"), pods_like(HOST, tier="back")]
    nodes = [a_zoned_node("a", "z1"), a_zoned_node("b", "z1")]
    halves = {"a": [a_pod("x", labels={"app": "web"}), a_pod("y", labels={"tier": "back"})]}

    apart = refusals(a_plugin(), with_terms(near=both), a_cluster(*nodes, pods=halves))
    together = refusals(
        a_plugin(),
        with_terms(near=both),
        a_cluster(*nodes, pods={"a": [a_pod("x", labels={"app": "web", "tier": "back"})]}),
    )

    assert apart == {"a": AFFINITY, "b": AFFINITY}
    assert together == {"b": AFFINITY}


@pytest.mark.parametrize(
    ("there", "refused"),
    [
        pytest.param([], {"bare"}, id="there is none yet: every node with the topology"),
        pytest.param([a_pod("other", labels=DB)], {"bare"}, id="only others"),
        pytest.param([a_pod("foreign", namespace="blue", labels=WEB)], {"bare"}, id="one like it, elsewhere"),
        pytest.param([a_pod("first", labels=WEB)], {"far", "bare"}, id="the second one goes to the first"),
    ],
)
def test_the_first_pod_of_a_series_that_wants_to_be_near_itself_can_start(
    there: list[fw.Pod], refused: set[str]
) -> None:
    cluster = a_cluster(
        a_zoned_node("near", "z1"), a_zoned_node("far", "z2"), a_zoned_node("bare", None), pods={"near": there}
    )
    pod = with_terms(labels=WEB, near=[pods_like(ZONE, app="web")])

    assert refusals(a_plugin(), pod, cluster) == dict.fromkeys(refused, AFFINITY)


def test_a_pod_that_does_not_match_its_own_terms_is_no_first_pod() -> None:
    cluster = a_cluster(a_zoned_node("a", "z1"))
    pod = with_terms(labels=WEB, near=[pods_like(ZONE, app="web"), pods_like(ZONE, app="db")])

    assert refusals(a_plugin(), pod, cluster) == {"a": AFFINITY}


def test_a_like_pod_on_a_node_without_the_topology_leaves_a_pod_the_first() -> None:
    cluster = a_cluster(a_zoned_node("a", "z1"), a_zoned_node("bare", None), pods={"bare": [a_pod("x", labels=WEB)]})
    pod = with_terms(labels=WEB, near=[pods_like(ZONE, app="web")])

    assert refusals(a_plugin(), pod, cluster) == {"bare": AFFINITY}


def test_pods_of_a_node_that_is_not_there_count_for_nobody() -> None:
    cluster = a_cluster(a_zoned_node("a", "z1"), pods={"gone": [a_pod("x", labels=WEB)]})
    pod = with_terms(labels=WEB, near=[pods_like(ZONE, app="web")], apart=[pods_like(HOST, app="web")])

    assert refusals(a_plugin(), pod, cluster) == {}


BLUE = a_selector(team="blue")


@pytest.mark.parametrize(
    ("namespaces", "selector", "matches"),
    [
        pytest.param((), None, {"default"}, id="nothing said: its own"),
        pytest.param(("blue",), None, {"blue"}, id="by name"),
        pytest.param((), BLUE, {"blue"}, id="by label"),
        pytest.param(("default",), BLUE, {"default", "blue"}, id="by name or label"),
        pytest.param((), a_selector(team="green"), set(), id="by a label that none has"),
        pytest.param((), a_selector(), {"default", "blue", "bare", "unknown"}, id="an empty selector means all"),
        pytest.param(
            (),
            a_selector(("team", "NotIn", "red")),
            {"blue", "bare"},
            id="those without a label",
        ),
        pytest.param((), a_selector(("team", "DoesNotExist")), {"bare"}, id="those that lack a label"),
        pytest.param((), a_selector(("team", "Exists")), {"default", "blue"}, id="those that have a label"),
    ],
)
def test_a_term_reaches_into_the_namespaces_that_it_names(
    namespaces: Sequence[str], selector: object, matches: set[str]
) -> None:
    names = ("default", "blue", "bare", "unknown")
    cluster = a_cluster(
        *(a_zoned_node(name, "z1") for name in names),
        pods={name: [a_pod("x", namespace=name, labels=WEB)] for name in names},
    )
    term = pods_like(HOST, namespaces=namespaces, of=selector, app="web")  # type: ignore[arg-type]

    apart = refusals(a_plugin(), with_terms(apart=[term]), cluster)
    near = refusals(a_plugin(), with_terms(near=[term]), cluster)

    assert apart == dict.fromkeys(matches, ANTI_AFFINITY)
    assert near == dict.fromkeys(set(names) - matches, AFFINITY)


@pytest.mark.parametrize(
    ("namespace", "refused"),
    [
        pytest.param("default", False, id="another label"),
        pytest.param("blue", True, id="the label"),
        pytest.param("bare", False, id="no label"),
        pytest.param("unknown", False, id="an unknown namespace has no labels"),
    ],
)
def test_terms_of_pods_there_look_at_the_labels_of_the_pods_namespace(namespace: str, refused: bool) -> None:
    hostile = with_terms("x", apart=[pods_like(ZONE, of=BLUE, app="web")])
    cluster = a_cluster(a_zoned_node("a", "z1"), pods={"a": [hostile]})

    found = refusals(a_plugin(), a_pod(namespace=namespace, labels=WEB), cluster)

    assert found == ({"a": EXISTING_ANTI_AFFINITY} if refused else {})


def test_a_namespace_that_gets_a_label_is_selected_from_then_on() -> None:
    objects = Objects({fw.NAMESPACE: [an_object("shop")]})
    plugin = a_plugin(objects)
    cluster = a_cluster(a_zoned_node("a", "z1"), pods={"a": [a_pod("x", namespace="shop", labels=WEB)]})
    pod = with_terms(near=[pods_like(ZONE, of=BLUE, app="web")])
    before = refusals(plugin, pod, cluster)

    objects.put(fw.NAMESPACE, an_object("shop", labels={"team": "blue"}))

    assert before == {"a": AFFINITY}
    assert refusals(plugin, pod, cluster) == {}


def test_several_terms_over_namespaces_meet_in_one_pod() -> None:
    terms = [
        pods_like(HOST, ("app", "Exists"), of=a_selector()),
        pods_like(HOST, namespaces=["blue", "bare"], app="web"),
        pods_like(HOST, of=BLUE),
    ]
    names = ("default", "blue", "bare")
    cluster = a_cluster(
        *(a_zoned_node(name, "z1") for name in names),
        pods={name: [a_pod("x", namespace=name, labels=WEB)] for name in names},
    )

    assert refusals(a_plugin(), with_terms(near=terms), cluster) == {"default": AFFINITY, "bare": AFFINITY}


def test_terms_that_cannot_be_parsed_refuse_the_pod_and_preemption_does_not_help() -> None:
    pod = with_terms(near=[pods_like(ZONE, ("app", "In"))], apart=[pods_like(ZONE, ("app", "Near", "web"))])

    answer = a_plugin().pre_filter(fw.CycleState(), pod, a_cluster(a_node("a")))

    assert answer == fw.unresolvable(
        "parsing pod: [requiredAffinityTerms: values: Invalid value: null: for 'in', 'notin' operators, values set "
        'can\'t be empty, requiredAntiAffinityTerms: "Near" is not a valid label selector operator]'
    )


def test_a_what_if_counts_the_pods_that_come_and_go_and_leaves_the_cycle_as_it_was() -> None:
    friend, enemy = a_pod("friend", labels=DB), with_terms("enemy", WEB, apart=[pods_like(ZONE, app="web")])
    cluster = a_cluster(a_zoned_node("a", "z1"), a_zoned_node("b", "z1"), a_zoned_node("c", "z2"), pods={"a": [friend]})
    pod = with_terms(labels=WEB, near=[pods_like(ZONE, app="db")], apart=[pods_like(HOST, app="web")])
    plugin, state = a_plugin(), fw.CycleState()
    plugin.pre_filter(state, pod, cluster)

    def codes(of: fw.CycleState) -> list[int]:
        found = plugin.filter_nodes(of, pod, cluster, every_row(cluster))
        one_by_one = [plugin.filter_nodes(of, pod, cluster, every_row(cluster)[row : row + 1]) for row in range(3)]
        singles = [0 if each is None else each.item() for each in one_by_one]
        assert singles == ([0, 0, 0] if found is None else found.tolist())
        return singles

    what_if = state.clone()
    plugin.add_pod(what_if, pod, enemy, cluster.info(1))
    plugin.add_pod(what_if, pod, a_pod("friend-2", labels=DB), cluster.info(2))
    without = what_if.clone()
    plugin.remove_pod(without, pod, friend, cluster.info(0))
    plugin.remove_pod(without, pod, enemy, cluster.info(1))

    assert codes(state) == [0, 0, 1]
    assert codes(what_if) == [3, 2, 0]
    assert codes(without) == [1, 1, 0]


def test_a_pod_becomes_the_first_of_its_kind_once_the_others_are_taken_away() -> None:
    other = a_pod("other", labels=WEB)
    cluster = a_cluster(a_zoned_node("a", "z1"), a_zoned_node("b", "z2"), pods={"a": [other]})
    pod = with_terms(labels=WEB, near=[pods_like(ZONE, app="web")])
    plugin, state = a_plugin(), fw.CycleState()
    plugin.pre_filter(state, pod, cluster)

    plugin.remove_pod(state, pod, other, cluster.info(0))

    assert plugin.filter_nodes(state, pod, cluster, every_row(cluster)) is None


def test_filter_without_pre_filter_is_an_error() -> None:
    with pytest.raises(LookupError, match='error reading "PreFilterInterPodAffinity" from cycleState: not found'):
        a_plugin().filter_nodes(fw.CycleState(), a_pod(), a_cluster(), every_row(a_cluster()))


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        pytest.param({"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True}, [], id="fine"),
        pytest.param(
            {"hardPodAffinityWeight": 101},
            ["args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
            id="too much",
        ),
        pytest.param(
            {"hardPodAffinityWeight": -1},
            ["args.hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]"],
            id="less than nothing",
        ),
    ],
)
def test_arguments_have_kube_schedulers_names_and_range(arguments: dict[str, object], problems: list[str]) -> None:
    found: list[str] = []

    parse_arguments(type(a_plugin()), arguments, "args", found)

    assert found == problems
