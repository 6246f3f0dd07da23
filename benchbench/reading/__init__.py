"""Parsing of users' files and request bodies: strict JSON and YAML, objects as records, kinds of values.

Depends on no room and no web framework.
"""
