"""What the figures of an attack amount to, and how its objects come and go."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import orjson
import pytest

from tests.attacks.__main__ import main
from tests.attacks.attack import Attack, Object, Target
from tests.attacks.load import Figures
from tests.attacks.runner import ALLOWED_GROWTH, ALLOWED_REST, Outcome, line, recreate, under_attack
from tests.bench.api import Api
from tests.bench.wire import Answer, Job, Request
from tests.controlplane import a_node, a_pod

QUIET = Figures(seconds=10.0, pods=1_000, cpu_seconds=2.0, peak_memory=200 << 20, longest_pause=0.1)
TARGET = Target("hostile", ["node-0"])


def test_a_scheduler_that_goes_on_as_before_has_no_problem() -> None:
    assert Outcome(QUIET, QUIET, QUIET).problems == []


def test_a_rate_below_four_fifths_is_a_problem() -> None:
    outcome = Outcome(QUIET, replace(QUIET, pods=799), QUIET)

    assert outcome.problems == ["the rate fell to 79.9%, 80% are wanted"]


def test_no_pod_at_all_is_a_problem_and_has_no_price() -> None:
    stopped = replace(QUIET, pods=0)

    assert Outcome(QUIET, stopped, QUIET).problems == ["the rate fell to 0.0%, 80% are wanted"]
    assert "inf ms CPU per pod" in line("during", stopped)


def test_a_scheduler_that_did_nothing_before_proves_nothing() -> None:
    assert Outcome(replace(QUIET, pods=0), QUIET, QUIET).problems


def test_memory_that_grows_too_much_is_a_problem() -> None:
    grown = replace(QUIET, peak_memory=QUIET.peak_memory + ALLOWED_GROWTH + (1 << 20))

    assert Outcome(QUIET, grown, QUIET).problems == ["memory grew by 101 MiB, 100 MiB are allowed"]


def test_memory_that_stays_is_a_problem() -> None:
    grown = replace(QUIET, peak_memory=QUIET.peak_memory + ALLOWED_REST + (1 << 20))

    assert Outcome(QUIET, QUIET, grown).problems == ["31 MiB of memory stayed, 30 MiB are allowed"]


def test_the_line_of_a_phase_has_its_figures() -> None:
    expected = "  before      100 pods/s      2.00 ms CPU per pod     200 MiB   longest pause   0.1 s"

    assert line("before", QUIET) == expected


class FakeApi(Api):
    """Has the paths of the objects that exist. Only pods are in namespaces."""

    def __init__(self) -> None:
        self.paths: set[str] = set()

    def path(self, kind: str, namespace: str = "", name: str = "", subresource: str = "") -> tuple[str, str]:
        scope = namespace if self.is_namespaced(kind) else "cluster"
        return f"/{scope}/{kind}/{name}", kind

    def is_namespaced(self, kind: str) -> bool:
        return kind == "v1/Pod"

    def bulk(self, jobs: Sequence[Job], done: Callable[[int, float], None]) -> None:
        for [request] in jobs:
            collection = request.path.partition("?")[0]
            self.paths.add(collection + orjson.loads(request.body)["metadata"]["name"])

    def send(self, request: Request) -> Answer:
        deleted = request.path.partition("?")[0]
        self.paths = {path for path in self.paths if not path.startswith(deleted)}
        return Answer(200, b"{}")


def a_pod_and_a_node(_: Target) -> Iterator[Object]:
    yield a_pod("a")
    yield a_node("b")


ATTACK = Attack("both", "A pod and a node.", a_pod_and_a_node)


def test_the_objects_of_an_attack_are_there_within_the_block_only() -> None:
    api = FakeApi()
    api.paths = {"/cluster/v1/Node/other"}

    with under_attack(api, ATTACK, TARGET):
        there = set(api.paths)

    assert there == {"/hostile/v1/Pod/a", "/cluster/v1/Node/b", "/cluster/v1/Node/other"}
    assert api.paths == {"/cluster/v1/Node/other"}


def test_an_attack_is_over_also_when_the_measurement_fails() -> None:
    api = FakeApi()

    with pytest.raises(ZeroDivisionError), under_attack(api, ATTACK, TARGET):
        _ = 1 / 0

    assert api.paths == set()


def test_objects_that_come_and_go_are_created_again() -> None:
    api = FakeApi()
    objects = list(a_pod_and_a_node(TARGET))

    assert recreate(api, objects, TARGET.namespace)

    assert api.paths == {"/hostile/v1/Pod/a", "/cluster/v1/Node/b"}


def test_an_unknown_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-attack"]) == 2

    assert "no-such-attack" in capsys.readouterr().err


def test_all_attacks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0

    assert "One running pod has 3,000" in capsys.readouterr().out
