"""Benchmarks: a decision, waiting pods, and pods per second against kube-scheduler.

`make bench-cycle`, `make bench-queue`, `make bench`.
"""
