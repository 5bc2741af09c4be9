"""How long pods wait when the leader goes: two real replicas under load, stopped in order and killed in turn.

`make failover` runs it on a control plane of its own and writes into build/failover.
"""
