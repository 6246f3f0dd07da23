"""Gates: rules that somebody wrote down, held against a run and its baseline.

Imports `measuring` and the models; imported by views, the API and the command only.
"""
