"""The plugin PreemptionToleration: preemption from which a PriorityClass can exempt its pods."""
