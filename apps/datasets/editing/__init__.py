"""Drafts of a dataset: edited judgments and queries, and the differences to the version before.

Imports the models and records; imported by views, the API and the judging of other rooms.
"""
