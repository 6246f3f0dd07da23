"""Drafts of a dataset: judgments and queries that are stated anew, and what that changes.

Imports the models and records; imported by views, the API and the judging of other rooms.
"""
