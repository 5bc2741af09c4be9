"""The devices of a node that a claim gets."""
