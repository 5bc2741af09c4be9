"""`loadmaster plugins`: what is loaded, what a plugin is, a beginning for a new one, and what one costs."""
