"""The format of a trace: its lines, its file, its time. The recorder and the player are in `scheduler.replay`."""
