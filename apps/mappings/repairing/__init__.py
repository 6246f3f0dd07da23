"""Judgments without a document: a list of them with suggestions, and their repair in the draft of the dataset.

Imports the resolving of this room and the editing of datasets; imported by views, results and the API.
"""
