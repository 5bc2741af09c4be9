"""Limits the cost of failing, slow or hanging plugins: checks return values, names faults, times calls, keeps limits.

The calls themselves are in `runtime/plugin_calls.py`.
"""
