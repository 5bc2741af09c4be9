"""The format of a trace: its lines, its file, its time. What records and replays it is in `scheduler.replay`."""
