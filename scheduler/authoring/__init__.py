"""`loadmaster plugins`: what is loaded, what a plugin is, and a beginning for a new one."""
