"""Disk space: what takes it (`sizes`), what may go after some days (`policies`), and deleting that (`pruning`)."""
