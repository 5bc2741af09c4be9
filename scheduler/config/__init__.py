"""KubeSchedulerConfiguration: types, defaults, validation, loading."""
