"""Groups of pods: decided about at once, without holding anything for a group that does not fit."""
