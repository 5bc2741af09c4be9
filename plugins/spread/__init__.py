"""The parts of PodTopologySpread."""
