"""Dry runs for preemption: Filter's answers with some pods gone."""
