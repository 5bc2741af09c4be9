"""Text for people: composed, and kept short."""
