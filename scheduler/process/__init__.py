"""The program as a process: tasks, metrics, logs, progress on a terminal, stack samples and memory.

Nothing here knows pods, nodes or plugins.
"""
