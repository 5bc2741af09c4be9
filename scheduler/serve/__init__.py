"""HTTP: health checks and metrics."""
