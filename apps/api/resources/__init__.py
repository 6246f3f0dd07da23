"""Endpoints, one module a thing: parse, call one use case, present."""
