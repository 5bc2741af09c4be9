import pytest

from tests.demo.facts import Gone, Pod, Refusal
from tests.demo.model import Burst, Model, natural, percentile
from tests.unit.demo.play import MESSAGE, a_model, let_huge_be_bound


def test_nodes_are_in_zones_and_in_the_order_of_their_numbers() -> None:
    zones = {zone: [node.name for node in nodes] for zone, nodes in a_model().in_zones().items()}

    assert zones == {"zone-a": ["a-1", "a-2", "a-10"], "zone-b": ["b-1"]}


def test_pods_are_counted_where_they_are_bound() -> None:
    model = a_model()

    assert {node: sorted(apps) for node, apps in model.on_nodes().items() if apps} == {"a-1": ["web"], "b-1": ["web"]}
    assert model.bound_of("web") == (2, 2)
    assert model.bound_of("huge") == (0, 1)
    assert model.apps() == ["web", "huge"]


def test_a_refused_pod_waits_until_it_is_bound_and_its_message_is_kept() -> None:
    model = a_model()
    assert [(p.pod.name, p.refusal) for p in model.waiting()] == [("huge-1", MESSAGE)]

    let_huge_be_bound(model)

    assert model.waiting() == []
    assert [(p.pod.node, p.refusal) for p in model.waited()] == [("b-2", MESSAGE)]


def test_a_refusal_that_arrives_after_the_bind_changes_nothing() -> None:
    model = a_model()

    model.apply(3.0, Refusal("web-1", "late"))
    model.apply(3.0, Refusal("unknown", "of a pod not seen"))

    assert [p.pod.name for p in model.waited()] == ["huge-1"]


def test_only_the_time_counts_in_which_a_pod_had_no_answer() -> None:
    model = a_model()
    assert model.total().seconds == pytest.approx(0.3 + 0.2)  # 1.0 to 1.3 for web, 2.0 to 2.2 for huge

    let_huge_be_bound(model)

    assert model.total().seconds == pytest.approx(0.5)


def test_a_pod_that_is_deleted_before_it_has_an_answer_stops_the_time() -> None:
    model = Model()
    model.apply(1.0, Pod("p", "web", 100))
    model.apply(1.5, Gone("Pod", "p"))
    model.apply(9.0, Pod("q", "web", 100))

    assert model.total().seconds == pytest.approx(0.5)
    assert model.bound_of("web") == (0, 1)


def test_a_burst_is_what_was_bound_since() -> None:
    model = a_model()
    before = model.total()

    let_huge_be_bound(model)

    assert model.since(before) == Burst(1, 0.0)
    assert [placement.pod.name for placement in model.bound_since(before)] == ["huge-1"]


@pytest.mark.parametrize(("now", "rate"), [(1.05, 0), (1.1, 1), (1.3, 2), (2.2, 1), (2.35, 0)])
def test_the_rate_is_that_of_the_last_second(now: float, rate: float) -> None:
    assert a_model().rate(now) == rate


def test_the_history_counts_binds_in_spans() -> None:
    model = a_model()

    assert model.history(now=1.9, buckets=4, width=0.25) == [1, 1, 0, 0]
    assert model.history(now=1.9, buckets=2, width=1.0) == [0, 2]
    assert model.best_rate == 2


def test_pods_that_were_refused_first_have_no_part_in_the_latencies() -> None:
    model = a_model()
    let_huge_be_bound(model)

    assert model.latencies() == [pytest.approx(0.1), pytest.approx(0.3)]


def test_a_node_that_is_gone_takes_its_row_with_it() -> None:
    model = a_model()

    model.apply(3.0, Gone("Node", "b-1"))

    assert "zone-b" not in model.in_zones()
    assert "b-1" not in model.on_nodes()


def test_an_event_seen_twice_counts_once() -> None:
    model = a_model()

    model.apply(5.0, Pod("web-1", "web", 2000, "a-1"))

    assert model.total().pods == 2
    assert model.latencies()[0] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([], 50, 0.0), ([7.0], 99, 7.0), ([1.0, 2.0], 50, 1.0), ([float(i) for i in range(1, 101)], 99, 99.0)],
)
def test_percentiles_are_values_that_occurred(values: list[float], percent: float, expected: float) -> None:
    assert percentile(values, percent) == expected


def test_a_rate_without_time_is_none() -> None:
    assert Burst(1, 0.0).rate == 0.0
    assert Burst(3, 2.0).rate == 1.5


def test_names_sort_by_their_numbers() -> None:
    assert sorted(["a-10", "a-9", "b", "a-1"], key=natural) == ["a-1", "a-9", "a-10", "b"]
