"""The only place that talks to Kubernetes: credentials, calls, watch, resync, bindings, status patches, events."""
