"""Groups of pods as plugins see them, and the places where their members may go."""
