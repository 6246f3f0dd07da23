"""Requests and answers about results; imported by the resources of the same name."""
