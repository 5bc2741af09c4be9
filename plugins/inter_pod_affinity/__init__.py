"""The parts of InterPodAffinity."""
