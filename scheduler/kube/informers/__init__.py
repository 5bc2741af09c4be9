"""The cluster as seen by watches and lists: decoding, and comparisons that repair what a watch has missed.

Their effect on cache and queue is in `scheduler.cycle`.
"""
