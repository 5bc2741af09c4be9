"""The parts of DefaultPreemption."""
