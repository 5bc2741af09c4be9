from tests.bench.contenders import KubeScheduler, Loadmaster
from tests.bench.run import description, parser, summary, turns_of
from tests.bench.workloads import Workload
from tests.unit.bench.test_report import OURS

ONE, TWO = (Workload("Case", name, ("performance",), {"Gate": True}, {}, (), "misc") for name in ("one", "two"))


def test_who_goes_first_alternates_and_a_round_has_all_workloads() -> None:
    turns = [
        (one.name, who.name, number) for one, who, number in turns_of([ONE, TWO], (Loadmaster(), KubeScheduler()), 2)
    ]

    assert turns == [
        ("one", "loadmaster", 1),
        ("one", "kube-scheduler", 1),
        ("two", "loadmaster", 1),
        ("two", "kube-scheduler", 1),
        ("one", "kube-scheduler", 2),
        ("one", "loadmaster", 2),
        ("two", "kube-scheduler", 2),
        ("two", "loadmaster", 2),
    ]


def test_the_list_says_whether_a_workload_runs() -> None:
    assert description(ONE) == {
        "id": "Case/one",
        "labels": ("performance",),
        "nodes": 0,
        "pods": 0,
        "feature_gates": {"Gate": True},
        "runs": True,
        "skipped_because": "",
    }


def test_both_schedulers_are_measured_unless_one_is_named() -> None:
    assert parser().parse_args([]).only == ["kube-scheduler", "loadmaster"]
    assert parser().parse_args(["--both", "Basic"]).only == ["kube-scheduler", "loadmaster"]
    assert parser().parse_args(["--only", "loadmaster"]).only == ["loadmaster"]


def test_a_run_is_summed_up_in_one_line() -> None:
    assert summary(OURS).startswith("1,000 pods on 500 nodes in 2.0 s: 500 pods/s, mean of seconds 600")
