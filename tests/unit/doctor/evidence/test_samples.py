"""Metrics as the scheduler shows them."""

import time

import pytest

from scheduler.doctor.evidence.samples import Samples
from scheduler.framework.errors import ClusterError
from tests.unit.doctor.fake_cluster import BUILD


def test_metrics_that_are_none_are_an_error_of_the_cluster() -> None:
    for text in ("<html>", "", "kubernetes_build_info{{{{ 1\n", 'kubernetes_build_info{a="b" x\n'):
        with pytest.raises(ClusterError):
            Samples(text)


def test_metrics_of_a_large_cluster_are_read_quickly() -> None:
    text = BUILD + "".join(f'scheduler_x{{a="{i}"}} 1.0\n' for i in range(100_000))
    began = time.process_time()

    Samples(text)

    assert time.process_time() - began < 2
