"""The APIs that describe groups of pods, a file each."""
