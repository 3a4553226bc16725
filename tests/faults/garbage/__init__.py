"""Frames that no client of ours would send, over real sockets: `python -m tests.faults.garbage --frames 100000`."""
