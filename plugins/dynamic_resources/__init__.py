"""The parts of DynamicResources."""
