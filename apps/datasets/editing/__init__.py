"""Drafts of a dataset: edited judgments and queries, and the differences to the version before.

It imports the models and records. Views, the API and the judging room import it.
"""
