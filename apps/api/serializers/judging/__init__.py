"""Requests and answers about judging rounds; imported by the resources of the same name."""
