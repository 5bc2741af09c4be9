"""OpenTelemetry's spans of a pod's way. Only `settings` is loaded while traces are off."""
