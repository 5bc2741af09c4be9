from dataclasses import replace

from tests.bench.measure import KubeScheduler, Load, Loadmaster, Measurement, read_sightings
from tests.bench.rates import Sighting
from tests.bench.report import as_json, ratios, spread, table
from tests.bench.throughput import in_turn

LOAD = Load(nodes=10, pods=100)
PEER = Measurement(
    scheduler="kube-scheduler",
    run=1,
    ready_seconds=1.0,
    first_bind_seconds=1.0,
    all_bound_seconds=3.0,
    pods_per_second=50.0,
    average=50.0,
    p50=50.0,
    p99=50.0,
    samples=(50.0,),
    cpu_seconds=0.2,
    ready_cpu_seconds=0.1,
    told_seconds=0.0,
    peak_memory=2**20,
    server_cpu_seconds=0.1,
    requests={"POST pods/binding": 1.0},
    observer_cpu_seconds=0.1,
    other_load=0.0,
)
OURS = replace(PEER, scheduler="loadmaster", pods_per_second=100.0)


def test_the_table_has_medians_ranges_and_ratios_taken_run_by_run() -> None:
    runs = [OURS, PEER, replace(OURS, run=2, pods_per_second=90.0), replace(PEER, run=2, pods_per_second=30.0)]

    lines = table(runs, LOAD).splitlines()

    assert lines[0] == "|  | loadmaster | kube-scheduler | ratio |"
    assert "| pods/s, first bind to last | 95 (90 to 100) | 40 (30 to 50) | 2.50 (2.00 to 3.00) |" in lines
    assert "| pods/s, first bind to last Event | 50 (50 to 50) | 50 (50 to 50) | 1.00 (1.00 to 1.00) |" in lines
    assert "| CPU a pod, ms | 2.00 (2.00 to 2.00) | 2.00 (2.00 to 2.00) | 1.00 (1.00 to 1.00) |" in lines
    assert "| API calls a pod, loadmaster | POST pods/binding 1.00 |  |  |" in lines


def test_one_scheduler_alone_has_no_ratio() -> None:
    assert "| pods/s, first bind to last | 50 |" in table([PEER], LOAD).splitlines()


def test_a_figure_of_zero_gives_no_ratio() -> None:
    assert ratios([1.0, 3.0], [0.0, 2.0]) == [1.5]
    assert spread([], "{}") == "-"


def test_the_json_has_every_run_and_the_load() -> None:
    written = as_json([OURS], LOAD)

    assert (written["nodes"], written["pods"]) == (10, 100)
    assert written["measurements"][0]["requests"] == {"POST pods/binding": 1.0}


def test_who_goes_first_alternates() -> None:
    both = (Loadmaster(), KubeScheduler())

    assert [in_turn(both, run)[0].name for run in (1, 2, 3)] == ["loadmaster", "kube-scheduler", "loadmaster"]


def test_a_line_that_is_still_being_written_is_left_out() -> None:
    assert read_sightings("watching\n1.5 10\n2.0 2") == [Sighting(1.5, 10)]
