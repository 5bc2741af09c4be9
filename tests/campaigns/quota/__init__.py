"""Whether quota keeps over time what docs/quota.md says, in random clusters, judged by a model of its own."""
