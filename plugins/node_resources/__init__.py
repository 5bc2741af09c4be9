"""The parts of NodeResourcesFit and NodeResourcesBalancedAllocation."""
