"""Gates: written rules that a run and its baseline must pass.

Imports `measuring` and the models; imported by views, the API and the command only.
"""
