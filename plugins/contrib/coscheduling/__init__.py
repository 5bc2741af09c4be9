"""The plugin Coscheduling: groups of `scheduling.x-k8s.io`, and those that annotations of pods make."""
