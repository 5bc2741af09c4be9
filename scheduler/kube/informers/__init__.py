"""What is learned of the cluster: watches, lists, decoding, and comparisons that repair what a watch has missed.

What the objects mean for cache and queue is in `scheduler.cycle`.
"""
