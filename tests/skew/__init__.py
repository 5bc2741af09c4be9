"""The cluster tests on API servers of several versions of Kubernetes, and the table of docs/versions.md."""
