"""Judgments without a document: which ones, what they might mean, and mending them in the draft of the dataset.

Imports the resolving of this room and the editing of datasets; imported by views, results and the API.
"""
