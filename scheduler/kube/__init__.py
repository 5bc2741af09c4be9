"""The only place that talks to Kubernetes: credentials, calls, watch, relister, bindings, status patches, events."""
