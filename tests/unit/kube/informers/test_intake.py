"""What comes in from the watch and from lists, and what of it counts."""

from typing import Any

import msgspec
import pytest

from scheduler.api.decoding import Unreadable
from scheduler.api.pods.pod import keep_raw_pod
from scheduler.framework.nodes.resources import parse_resource
from scheduler.kube.informers.intake import Intake, Reduction, node_intake, object_intake, pod_intake
from scheduler.process.metrics import Metrics
from scheduler.testing import pod_from_dict
from tests.fakes import sample
from tests.unit.kube.fake_api import FakeHandlers, FakeObjectHandlers, node_dict, object_dict, pod_dict, watch_line

BUDGETS = "budgets.v1.example.com"


def deliver(intake: Intake[Any], type_: str, raw: Any) -> None:
    """Deliver a line of a watch."""
    assert intake.from_line(watch_line(type_, raw)) is not None


class Setup:
    def __init__(self) -> None:
        self.handlers = FakeHandlers()
        self.metrics = Metrics()
        self.failures = 0
        self.pods: Intake[Any] = pod_intake(self.handlers, self.metrics, self._failed)
        self.nodes: Intake[Any] = node_intake(self.handlers, self.metrics)

    def _failed(self, resource: str) -> None:
        self.failures += 1


@pytest.fixture
def setup() -> Setup:
    return Setup()


def test_events_reach_their_handlers(setup: Setup) -> None:
    deliver(setup.pods, "ADDED", pod_dict("a", 5))
    deliver(setup.nodes, "ADDED", node_dict("n", 6))
    deliver(setup.pods, "MODIFIED", pod_dict("a", 7, nodeName="n"))
    deliver(setup.pods, "DELETED", pod_dict("a", 8))
    deliver(setup.nodes, "DELETED", node_dict("n", 9))

    assert setup.handlers.calls == ["changed a 5", "changed n 6", "changed a 7", "deleted a", "deleted n"]
    assert sample(setup.metrics, "loadmaster_watch_events_total", resource="pods", type="DELETED") == 1


def test_what_is_not_newer_is_dropped(setup: Setup) -> None:
    for version in (5, 5, 4):
        deliver(setup.pods, "MODIFIED", pod_dict("a", version))

    assert setup.handlers.calls == ["changed a 5"]


def test_a_late_event_of_a_pod_that_a_comparison_found_gone_does_not_bring_it_back(setup: Setup) -> None:
    deliver(setup.pods, "ADDED", pod_dict("a", 5))
    setup.pods.drop("uid-a")
    setup.pods.compared("9")

    deliver(setup.pods, "MODIFIED", pod_dict("a", 8))
    deliver(setup.pods, "ADDED", pod_dict("b", 10))

    assert setup.handlers.calls == ["changed a 5", "deleted a", "changed b 10"]


@pytest.mark.parametrize(
    "raw",
    [{}, {"metadata": None}, {"metadata": {"uid": "a"}}, {"metadata": {"uid": "a", "resourceVersion": 7}}],
)
def test_an_event_of_an_unknown_object_is_counted_and_changes_nothing(setup: Setup, raw: dict[str, Any]) -> None:
    deliver(setup.pods, "MODIFIED", raw)

    assert setup.handlers.calls == []
    assert sample(setup.metrics, "loadmaster_watch_errors_total", resource="pods", reason="unreadable") == 1


def test_the_deletion_of_an_unknown_pod_is_dropped(setup: Setup) -> None:
    deliver(setup.pods, "DELETED", pod_dict("a", 5))

    assert setup.handlers.calls == []


def test_a_pod_that_cannot_be_read_is_reported_once_per_version(setup: Setup) -> None:
    for version in (5, 5, 6):
        deliver(setup.pods, "MODIFIED", pod_dict("a", version, priority="high"))

    assert setup.handlers.calls == []
    assert setup.handlers.unreadable == [("a", "Expected `int | null`, got `str` - at `$.spec.priority`")] * 2
    assert sample(setup.metrics, "loadmaster_watch_errors_total", resource="pods", reason="unreadable") == 2


@pytest.mark.parametrize("requests", [{"cpu": "lots"}, {f"example.com/{i}": "lots" for i in range(10_000)}])
def test_unreadable_quantities_are_found_when_the_pod_comes_in_and_said_in_bounds(
    setup: Setup, requests: dict[str, str]
) -> None:
    deliver(setup.pods, "ADDED", pod_dict("a", containers=[{"resources": {"requests": requests}}]))

    assert setup.handlers.calls == []
    ((name, problem),) = setup.handlers.unreadable
    assert name == "a"
    assert len(problem) < 600


def test_a_failing_handler_asks_for_a_comparison(setup: Setup) -> None:
    setup.handlers.fail_on = "a"
    deliver(setup.pods, "ADDED", pod_dict("a"))
    deliver(setup.pods, "ADDED", pod_dict("b"))

    assert setup.handlers.calls == ["changed b 1"]
    assert setup.failures == 1
    assert sample(setup.metrics, "loadmaster_watch_errors_total", resource="pods", reason="handler") == 1


DEEP = b'{"f:a":' * 9_000 + b"{}" + b"}" * 9_000
ODD = [
    pytest.param(DEEP, id="deep"),
    pytest.param(b"[" * 100_000 + b"]" * 100_000, id="very deep"),
    pytest.param(rb'{"f:\ud800": {}}', id="half a surrogate pair"),
    pytest.param(b'{"f:\xff": {}}', id="not UTF-8"),
    pytest.param(b'{"f:a": %b}' % (b"9" * 10_000), id="a huge number"),
    pytest.param(b'{"f:a": 1, "f:a": 2, "": NaN}'.replace(b"NaN", b"-0.0e-9"), id="a key that is there twice"),
]


def raw_pod(name: bytes, version: int, managed: bytes = b"{}", spec: bytes = b"{}") -> bytes:
    """A pod as the API server sends it."""
    return (
        b'{"metadata":{"name":"%b","uid":"uid-%b","resourceVersion":"%d","managedFields":[{"fieldsV1":%b}]},"spec":%b}'
        % (name, name, version, managed, spec)
    )


@pytest.mark.parametrize("odd", ODD)
def test_a_pod_is_taken_in_whatever_is_in_parts_that_nobody_reads(setup: Setup, odd: bytes) -> None:
    page = b'{"metadata":{"resourceVersion":"9"},"items":[%b,%b]}' % (raw_pod(b"a", 1, odd), raw_pod(b"b", 2))

    assert setup.pods.from_line(b'{"type":"ADDED","object":%b}' % raw_pod(b"a", 5, odd)) == "5"
    assert setup.pods.from_line(b'{"type":"DELETED","object":%b}' % raw_pod(b"a", 6, odd)) == "6"
    assert [pod.name for pod in setup.pods.read_page(page).items] == ["a", "b"]
    assert setup.handlers.calls == ["changed a 5", "deleted a"]
    assert setup.handlers.unreadable == []


@pytest.mark.parametrize("odd", ODD)
def test_odd_parts_that_we_read_cost_their_pod_once_a_version(setup: Setup, odd: bytes) -> None:
    bad = raw_pod(b"a", 5, spec=b'{"containers":%b}' % odd)
    page = b'{"metadata":{"resourceVersion":"9"},"items":[%b,%b]}' % (bad, raw_pod(b"b", 2))

    for _ in range(2):
        assert setup.pods.from_line(b'{"type":"MODIFIED","object":%b}' % bad) == "5"
        assert [pod.name for pod in setup.pods.read_page(page).items] == ["b"]

    assert setup.handlers.calls == []
    assert [name for name, _ in setup.handlers.unreadable] == ["a"]


def page_of(*pods: bytes) -> bytes:
    return b'{"metadata":{"resourceVersion":"9"},"items":[%b]}' % b",".join(pods)


def test_only_what_has_changed_since_a_list_is_decoded_again(setup: Setup) -> None:
    for pod in setup.pods.read_page(page_of(raw_pod(b"a", 1), raw_pod(b"b", 2))).items:
        setup.pods.take(pod)
    setup.pods.compared("9")
    known = dict(setup.handlers.known_pods())

    same, changed, new = setup.pods.read_page(page_of(raw_pod(b"a", 1), raw_pod(b"b", 7), raw_pod(b"c", 8))).items

    assert same is known["uid-a"]
    assert changed is not known["uid-b"]
    assert [changed.metadata.resource_version, new.name] == ["7", "c"]


def test_what_is_to_be_decoded_in_another_way_is_decoded_again_at_its_version(setup: Setup) -> None:
    deliver(setup.pods, "ADDED", pod_dict("a", 5))
    setup.pods.compared("9")
    setup.pods.decode_into(setup.pods._type)
    known = dict(setup.handlers.known_pods())

    (listed,) = setup.pods.read_page(page_of(msgspec.json.encode(pod_dict("a", 5)))).items

    assert listed is not known[listed.uid]
    assert setup.pods.difference(listed, "9") == "updated"


@pytest.mark.parametrize("odd", ODD)
def test_odd_parts_that_we_read_cost_no_other_pod_of_a_later_list(setup: Setup, odd: bytes) -> None:
    deliver(setup.pods, "ADDED", pod_dict("b", 2))
    setup.pods.compared("3")
    bad = raw_pod(b"a", 5, spec=b'{"containers":%b}' % odd)

    page = setup.pods.read_page(page_of(bad, raw_pod(b"b", 6), b"null", b"7"))

    assert [pod.name for pod in page.items] == ["b"]
    assert page.items[0].metadata.resource_version == "6"


def test_a_list_of_nothing_may_be_null(setup: Setup) -> None:
    assert setup.pods.read_page(b'{"metadata":{"resourceVersion":"9"},"items":null}').items == []


def test_an_item_that_nobody_can_name_is_counted_and_left_out(setup: Setup) -> None:
    body = b'{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":3}},null,7,%b]}' % raw_pod(b"b", 2)

    assert [pod.name for pod in setup.pods.read_page(body).items] == ["b"]
    assert sample(setup.metrics, "loadmaster_watch_errors_total", resource="pods", reason="unreadable") == 3


@pytest.mark.parametrize("body", [b"", b"[]", b'{"items":[]}', b'{"metadata":{},"items":[}', b"\xff", b"[" * 100_000])
def test_what_is_no_page_is_unreadable(setup: Setup, body: bytes) -> None:
    with pytest.raises(Unreadable):
        setup.pods.read_page(body)


def test_objects_of_any_resource_reach_their_handlers() -> None:
    handlers, metrics = FakeObjectHandlers(), Metrics()
    budgets = object_intake(BUDGETS, parse_resource(BUDGETS), handlers, metrics)

    deliver(budgets, "ADDED", object_dict("a", 5, spec={"pool": "blue"}))
    deliver(budgets, "MODIFIED", object_dict("a", 5))
    deliver(budgets, "MODIFIED", object_dict("b", 6, labels=3))

    assert handlers.calls == [f"changed {BUDGETS} a 5"]
    assert handlers.objects["uid-a"]["spec"] == {"pool": "blue"}
    assert sample(metrics, "loadmaster_watch_events_total", resource=BUDGETS, type="ADDED") == 1
    assert sample(metrics, "loadmaster_watch_errors_total", resource=BUDGETS, reason="unreadable") == 1


def test_of_an_object_only_what_plugins_read_is_kept_wherever_it_comes_from() -> None:
    handlers = FakeObjectHandlers()
    budgets = object_intake(BUDGETS, parse_resource(BUDGETS), handlers, Metrics(), Reduction(("spec.pool",)))
    content = {"spec": {"pool": "blue", "text": "x" * 10_000}, "status": {"used": 1}}
    body = b'{"metadata":{"resourceVersion":"9"},"items":[%b]}' % msgspec.json.encode(object_dict("b", 6, **content))

    deliver(budgets, "ADDED", object_dict("a", 5, **content))
    (listed,) = budgets.read_page(body).items

    for each in (handlers.objects["uid-a"], listed):
        assert each.content == {"apiVersion": "example.com/v1", "kind": "Budget", "spec": {"pool": "blue"}}


def test_what_we_have_takes_the_place_of_an_unreadable_version(setup: Setup) -> None:
    deliver(setup.pods, "ADDED", pod_dict("a", 1))
    body = b'{"metadata":{"resourceVersion":"9"},"items":[%b]}' % (
        b'{"metadata":{"name":"a","uid":"uid-a","resourceVersion":"2"},"spec":{"priority":"high"}}'
    )

    page = setup.pods.read_page(body)

    assert [pod.metadata.resource_version for pod in page.items] == ["1"]


@pytest.mark.parametrize(
    ("type_", "raw", "version"),
    [
        pytest.param("ADDED", pod_dict("b", 6), "6", id="a change"),
        pytest.param("DELETED", pod_dict("a", 7), "7", id="a deletion"),
        pytest.param("DELETED", pod_dict("b", 7), "7", id="a deletion of something unknown"),
        pytest.param("MODIFIED", pod_dict("a", 4), "4", id="an old change"),
        pytest.param("MODIFIED", pod_dict("a", 6, priority="high"), "6", id="a pod that cannot be read"),
        pytest.param("DELETED", pod_dict("a", 6, priority="high"), "6", id="the deletion of one"),
        pytest.param("ADDED", {"metadata": {"uid": "a"}}, "", id="no version"),
        pytest.param("ADDED", {"metadata": {"resourceVersion": "5"}}, "", id="no uid"),
        pytest.param("ADDED", None, "", id="no object"),
        pytest.param("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "9"}}, None, id="a bookmark"),
        pytest.param("ERROR", {"kind": "Status", "status": "Failure", "code": 410}, None, id="an error"),
        pytest.param("RENAMED", pod_dict("a", 6), None, id="a type of the future"),
    ],
)
def test_a_line_has_its_version_or_is_not_taken_in(setup: Setup, type_: str, raw: Any, version: str | None) -> None:
    deliver(setup.pods, "ADDED", pod_dict("a", 5))

    assert setup.pods.from_line(watch_line(type_, raw)) == version


@pytest.mark.parametrize("line", [b"{", b"[]", b"null", b'{"object":{}}', b'{"type":7,"object":{}}', b"\xff"])
def test_a_line_that_is_no_event_is_not_taken_in(setup: Setup, line: bytes) -> None:
    assert setup.pods.from_line(line) is None
    assert setup.handlers.calls == []


def test_the_deletion_of_a_pod_needs_no_more_than_its_metadata(setup: Setup) -> None:
    deliver(setup.pods, "ADDED", pod_dict("a", 5))
    deliver(setup.pods, "DELETED", pod_dict("a", 6, containers=[{"resources": {"requests": {"cpu": "lots"}}}]))
    deliver(setup.pods, "ADDED", pod_dict("b", 7))
    deliver(setup.pods, "DELETED", pod_dict("b", 8, priority="high"))

    assert setup.handlers.calls == ["changed a 5", "deleted a", "changed b 7", "deleted b"]
    assert setup.handlers.unreadable == []


def test_pods_that_were_read_without_their_json_are_taken_again_from_the_next_list(setup: Setup) -> None:
    def listed(name: str, version: int) -> Any:
        annotated = pod_dict(name, version)
        annotated["metadata"]["annotations"] = {"tier": "gold"}
        return pod_from_dict(annotated)

    for name in ("old", "gone", "moved"):
        deliver(setup.pods, "ADDED", pod_dict(name, 5))
    assert setup.pods.difference(listed("old", 5), "9") is None

    setup.pods.keep(keep_raw_pod)
    deliver(setup.pods, "MODIFIED", pod_dict("moved", 7))
    deliver(setup.pods, "DELETED", pod_dict("gone", 8))
    setup.handlers.calls.clear()

    assert setup.pods.difference(listed("moved", 7), "9") is None
    assert setup.pods.difference(listed("old", 5), "9") == "updated"
    setup.pods.take(listed("old", 5))
    assert setup.pods.difference(listed("old", 5), "9") is None
    assert setup.handlers.calls == ["repaired old 5"]
    assert setup.handlers.known_pods()[listed("old", 5).uid].annotations == {"tier": "gold"}
