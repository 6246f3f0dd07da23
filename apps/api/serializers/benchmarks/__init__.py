"""Requests and answers about benchmarks, gates and baselines; imported by the resources of the same name."""
