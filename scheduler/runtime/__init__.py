"""Runs plugins: profiles, extension points, stored answers, dry runs.

What belongs to the process rather than to plugins (tasks, metrics, logs) is in `scheduler.process`.
"""
