"""Benchmarks: what a decision costs, and pods per second against kube-scheduler. `make bench-cycle`, `make bench`."""
