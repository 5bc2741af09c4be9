"""Records what a scheduler sees and decides, replays traces of it, and shadows another scheduler.

The command lines are in `scheduler.commands`, the endpoint that serves a recording in `scheduler.serve`.
"""
