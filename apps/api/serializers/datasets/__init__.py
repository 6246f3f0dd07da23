"""Requests and answers about datasets; imported by the resources of the same name."""
