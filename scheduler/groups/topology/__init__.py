"""Places groups of pods close together: inside one block, rack or other domain of the levels of a topology."""
