"""`make demo`: Loadmaster on a real control plane with fake nodes, to look at for a quarter of a minute.

`scenes` has the nodes and Deployments, and what happens in which order; `command` starts everything, plays the scenes,
ends everything, and says what failed.
"""
