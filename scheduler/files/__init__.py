"""Bytes from files, pipes and devices, within bounds; nothing else in the program opens a file to read it."""
