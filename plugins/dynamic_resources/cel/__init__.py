"""The part of CEL that selectors of devices use."""
