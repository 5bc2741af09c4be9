import os

import pytest

from tests.bench.usage import (
    TICKS,
    busy_of_stat,
    cpu_of_stat,
    peak_memory,
    peak_of_status,
    per_pod,
    requests_of_metrics,
    resident_memory,
)

METRICS = """\
# TYPE apiserver_request_total counter
apiserver_request_total{code="0",component="apiserver",resource="pods",subresource="",verb="WATCH",version="v1"} 7
apiserver_request_total{code="201",component="apiserver",resource="pods",subresource="binding",verb="POST"} 1e+03
apiserver_request_total{code="409",component="apiserver",resource="pods",subresource="binding",verb="POST"} 5
apiserver_request_total{code="200",component="",resource="",subresource="/readyz",verb="GET",version=""} 3
apiserver_request_total{code="200",component="apiserver",resource="nodes",subresource="",verb="LIST"} 2
"""


def test_requests_are_counted_by_what_they_were_whatever_the_answer() -> None:
    assert requests_of_metrics(METRICS) == {"POST pods/binding": 1005, "LIST nodes": 2}


def test_requests_a_pod_are_the_difference_without_rare_ones() -> None:
    before = requests_of_metrics('apiserver_request_total{component="",resource="pods",subresource="",verb="GET"} 2')

    assert per_pod(requests_of_metrics(METRICS) + before, before, 5_000) == {"POST pods/binding": 0.201}


def test_cpu_time_is_found_whatever_the_process_is_called() -> None:
    stat = "42 (a) b (c) S 1 42 42 0 -1 4194304 100 0 0 0 250 150 7 7 20 0 9 0 1000 1 2"

    assert cpu_of_stat(stat) == 400 / TICKS


def test_waiting_is_not_work() -> None:
    assert busy_of_stat("cpu  1 2 4 1000 1000 8 16 32 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n") == 63 / TICKS


def test_the_peak_of_memory_is_in_bytes() -> None:
    assert peak_of_status("Name:\tpython\nVmPeak:\t 900 kB\nVmHWM:\t  300 kB\nVmRSS:\t 200 kB\n") == 300 * 1024
    with pytest.raises(ValueError, match="VmHWM"):
        peak_of_status("Name:\tzombie\n")


def test_a_process_says_what_it_has_now() -> None:
    own = os.getpid()

    assert 0 < resident_memory(own) <= peak_memory(own)
