"""Groups of pods: an adapter for each API that has them, a file each."""
