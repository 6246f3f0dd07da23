"""Judging rounds over HTTP: the rounds, what judges do in them, and what came of it; imported by the addresses."""
