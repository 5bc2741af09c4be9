"""The parts of the volume plugins."""
