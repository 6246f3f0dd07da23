"""Benchmarks over HTTP: making, running and importing them, gates and baselines; imported by the addresses."""
